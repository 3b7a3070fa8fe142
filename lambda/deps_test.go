package lambda_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a function links beside the standard library: aws-lambda-go, this module, and
// what package handler needs for e-mail addresses. Every cold start pays for more.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	allowed := []string{
		"github.com/sallyport/sallyport/lambda",
		"github.com/sallyport/sallyport/handler",
		"github.com/sallyport/sallyport/internal/",
		"github.com/sallyport/sallyport/stores",
		"github.com/sallyport/sallyport/stores/failover",
		"github.com/sallyport/sallyport/stores/memory",
		"github.com/aws/aws-lambda-go/",
		"golang.org/x/text/",
	}
	packages := strings.Fields(string(out))
	require.Contains(t, packages, "github.com/aws/aws-lambda-go/lambda")
	for _, p := range packages {
		ok := false
		for _, a := range allowed {
			ok = ok || p == a || (strings.HasSuffix(a, "/") && strings.HasPrefix(p, a))
		}
		require.True(t, ok, p)
	}

	// Without the tag, which every build for Lambda should have, aws-lambda-go links
	// net/rpc, and that links text/template.
	out, err = exec.Command("go", "list", "-deps", "-tags", "lambda.norpc", ".").Output()
	require.NoError(t, err)
	for _, p := range strings.Fields(string(out)) {
		require.NotContains(t, []string{"text/template", "html/template", "testing"}, p)
	}
}
