package storetest_test

import "testing"

func TestTheExamplesStoreConforms(t *testing.T) { conformance(t) }
