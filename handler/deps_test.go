package handler

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that uses this package links no shared store that it did not choose, no
// template engine, and nothing that is there for tests.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for dep := range strings.FieldsSeq(string(out)) {
		for _, unwanted := range []string{
			"html/template", "text/template", "github.com/aws", "github.com/sallyport/sallyport/stores/upstash",
			"github.com/sallyport/sallyport/stores/dynamo", "testify", "httpsfv", "testing",
		} {
			require.False(t, dep == unwanted || strings.Contains(unwanted, "/") && strings.HasPrefix(dep, unwanted) || strings.Contains(dep, "/"+unwanted), dep)
		}
	}
}
