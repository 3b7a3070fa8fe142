package sallyport_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// imports is the direction of the house: what of this module and of others each
// shipped package may import; a trailing slash means everything below.
var imports = map[string][]string{
	"":                 nil,
	"stores":           nil,
	"stores/memory":    {"stores", "internal/clock", "internal/meter", "internal/table"},
	"stores/upstash":   {"stores", "internal/clock", "internal/fault", "internal/meter", "internal/table"},
	"stores/dynamo":    {"stores", "internal/fault", "internal/meter", "internal/table", "github.com/aws/aws-sdk-go-v2/", "github.com/aws/smithy-go/"},
	"stores/failover":  {"stores", "stores/memory", "internal/clock", "internal/fault", "internal/meter", "internal/table"},
	"stores/storetest": {"stores"},
	"handler":          {"stores", "stores/failover", "stores/memory", "internal/claims", "golang.org/x/text/unicode/norm"},
	"handler/form":     {"handler", "stores", "stores/memory"},
	"handler/webhook":  {"handler", "stores", "stores/memory"},
	"lambda":           {"handler", "stores", "internal/claims", "github.com/aws/aws-lambda-go/"},
	// What the shipped packages share knows none of them.
	"internal/claims": nil,
	"internal/clock":  nil,
	"internal/fault":  nil,
	"internal/meter":  {"stores"},
	"internal/table":  nil,
}

// Whoever adds a package finds its place here.
func TestImportsPointOneWay(t *testing.T) {
	standard := make(map[string]bool)
	for _, p := range goList(t, "std") {
		standard[p.ImportPath] = true
	}
	seen := make(map[string]bool)
	for _, p := range goList(t, "./...") {
		if free(p) {
			continue
		}
		allowed, known := imports[p.own()]
		require.True(t, known, "%s has no place in the direction of imports", p.ImportPath)
		seen[p.own()] = true
		for _, path := range p.Imports {
			if standard[path] {
				continue
			}
			require.True(t, slices.ContainsFunc(allowed, func(a string) bool {
				return own(path) == a || strings.TrimSuffix(a, "/") == path || strings.HasSuffix(a, "/") && strings.HasPrefix(path, a)
			}), "%s must not import %s", p.ImportPath, path)
		}
	}
	for path := range imports {
		require.True(t, seen[path], "%s is not there", path)
	}
}

// free packages are not shipped: programs to copy, and what serves tests alone, which
// is all of internal that no shipped package may import.
func free(p pkg) bool {
	_, known := imports[p.own()]
	return !known && (strings.HasPrefix(p.own(), "internal/") || strings.HasPrefix(p.own(), "examples/"))
}

// A program links what it uses: no AWS SDK beside Upstash, and nothing that makes a
// Lambda start slowly.
func TestLinkedPackages(t *testing.T) {
	const (
		sdk    = "github.com/aws/aws-sdk-go-v2"
		events = "github.com/aws/aws-lambda-go"
	)
	// Templates switch off the linker's pruning of methods, which costs megabytes. The
	// others are for tests.
	never := []string{"html/template", "text/template", "testing", "github.com/stretchr/testify", "github.com/alicebob", "github.com/truora", "gopkg.in/yaml.v3",
		module + "/internal/upstashtest", module + "/internal/dynamotest", module + "/examples", module + "/stores/storetest"}
	for from, without := range map[string][]string{
		"./stores":          {sdk, events, "net/http"},
		"./stores/memory":   {sdk, events, "net/http"},
		"./stores/failover": {sdk, events, "net/http"},
		"./stores/upstash":  {sdk, events},
		"./stores/dynamo":   {events, sdk + "/config", sdk + "/feature", module + "/stores/upstash"},
		"./handler":         {sdk, events, module + "/stores/upstash", module + "/stores/dynamo"},
		"./handler/form":    {sdk, events, module + "/stores/upstash", module + "/stores/dynamo"},
		"./handler/webhook": {sdk, events, module + "/stores/upstash", module + "/stores/dynamo"},
		"./lambda":          {sdk, module + "/stores/upstash", module + "/stores/dynamo"},
	} {
		t.Run(from, func(t *testing.T) {
			linked := goList(t, "-tags", "lambda.norpc", "-deps", from)
			require.NotEmpty(t, linked)
			for _, p := range linked {
				for _, path := range append(without, never...) {
					require.False(t, p.ImportPath == path || strings.HasPrefix(p.ImportPath, path+"/"), "%s links %s", from, p.ImportPath)
				}
			}
		})
	}
}

// The contract needs nothing but the standard library, its tests' runner included.
func TestContractIsStandard(t *testing.T) {
	for _, from := range []string{"./stores", "./stores/storetest"} {
		for _, p := range goList(t, "-deps", from) {
			require.True(t, p.Standard || p.own() == "stores" || p.own() == "stores/storetest", "%s links %s", from, p.ImportPath)
		}
	}
}
