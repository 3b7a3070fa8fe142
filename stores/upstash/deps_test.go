package upstash_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNeedsNoModule: a program that uses this store links the standard library and
// this module, and nothing else.
func TestNeedsNoModule(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	for _, pkg := range strings.Fields(string(out)) {
		require.True(t, strings.HasPrefix(pkg, "github.com/sallyport/sallyport/"), pkg)
		require.NotContains(t, pkg, "upstashtest")
	}
}
