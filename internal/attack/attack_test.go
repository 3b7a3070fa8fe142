package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBarsHold(t *testing.T) {
	var out bytes.Buffer
	require.True(t, report(&out, []int{320}, []int{1, 5, 100}), out.String())
	require.Equal(t, 113, strings.Count(out.String(), "\n"), out.String())
}

func TestPlainLRUForgivesAfterItsCap(t *testing.T) {
	require.Equal(t, 1000, plainLRU(1000, 6))
}
