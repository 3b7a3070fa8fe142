package sallyport_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
	"github.com/sallyport/sallyport/stores/memory"
	"github.com/sallyport/sallyport/stores/upstash"
)

// part is a piece of template.yaml. CloudFormation's short forms are spelt out:
// !Ref x is {"Ref": "x"}, !GetAtt x is {"Fn::GetAtt": "x"}.
type part struct {
	t    *testing.T
	path string
	v    any
}

func template(t *testing.T) part {
	text, err := os.ReadFile("template.yaml")
	require.NoError(t, err)
	var root yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &root))
	return part{t, "template", spelt(t, root.Content[0])}
}

func spelt(t *testing.T, n *yaml.Node) (v any) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any)
		for i := 0; i < len(n.Content); i += 2 {
			require.NotContains(t, m, n.Content[i].Value, "line %d", n.Content[i].Line)
			m[n.Content[i].Value] = spelt(t, n.Content[i+1])
		}
		v = m
	case yaml.SequenceNode:
		s := []any{}
		for _, c := range n.Content {
			s = append(s, spelt(t, c))
		}
		v = s
	default:
		v = n.Value
	}
	switch name, short := strings.CutPrefix(n.Tag, "!"); {
	case !short || strings.HasPrefix(name, "!"): // !!str and its like
		return v
	case name == "Ref" || name == "Condition":
		return map[string]any{name: v}
	default:
		return map[string]any{"Fn::" + name: v}
	}
}

// at goes down a path; what is not there fails the test.
func (p part) at(names ...string) part {
	p.t.Helper()
	for _, name := range names {
		m, ok := p.v.(map[string]any)
		require.True(p.t, ok, "%s is no mapping", p.path)
		require.Contains(p.t, m, name, p.path)
		p = part{p.t, p.path + "." + name, m[name]}
	}
	return p
}

func (p part) text() string {
	p.t.Helper()
	require.IsType(p.t, "", p.v, p.path)
	return p.v.(string)
}

func (p part) list() (parts []part) {
	p.t.Helper()
	require.IsType(p.t, []any{}, p.v, p.path)
	for _, v := range p.v.([]any) {
		parts = append(parts, part{p.t, p.path + "[]", v})
	}
	return parts
}

func (p part) texts() (texts []string) {
	p.t.Helper()
	for _, e := range p.list() {
		texts = append(texts, e.text())
	}
	return texts
}

func (p part) keys() (keys []string) {
	p.t.Helper()
	require.IsType(p.t, map[string]any{}, p.v, p.path)
	for k := range p.v.(map[string]any) {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// function is the one function, without its Metadata.
func function(t *testing.T) part { return template(t).at("Resources", "WebhookFunction", "Properties") }

func TestTemplateFunction(t *testing.T) {
	f := function(t)
	require.Equal(t, "provided.al2023", f.at("Runtime").text())
	require.Equal(t, "bootstrap", f.at("Handler").text())
	require.Equal(t, []string{"arm64"}, f.at("Architectures").texts())
	require.Equal(t, ".", f.at("CodeUri").text())
	event := f.at("Events", "Webhook")
	require.Equal(t, "HttpApi", event.at("Type").text())
	require.Equal(t, "2.0", event.at("Properties", "PayloadFormatVersion").text(), "lambda.HTTPAPI reads no other")
}

// Each function is built by a target of the Makefile, for its own architecture, and
// no such target is left without a function.
func TestTemplateMakefile(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	recipes := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^build-(\w+):.*\n((?:\t.*\n?)+)`).FindAllStringSubmatch(string(makefile), -1) {
		recipes[m[1]] = m[2]
	}
	resources := template(t).at("Resources")
	functions := 0
	for _, id := range resources.keys() {
		r := resources.at(id)
		if r.at("Type").text() != "AWS::Serverless::Function" {
			continue
		}
		functions++
		require.Equal(t, "makefile", r.at("Metadata", "BuildMethod").text())
		recipe := recipes[id]
		require.NotEmpty(t, recipe, "the Makefile has no target build-%s", id)
		require.Contains(t, recipe, "CGO_ENABLED=0 GOOS=linux GOARCH="+r.at("Properties", "Architectures").texts()[0]+" ")
		require.Contains(t, recipe, `-o "$(ARTIFACTS_DIR)/`+r.at("Properties", "Handler").text()+`"`)
		require.Contains(t, recipe, "-tags lambda.norpc")
		program := regexp.MustCompile(`\./examples/\w+`).FindString(recipe)
		require.NotEmpty(t, program, recipe)
		require.DirExists(t, program)
	}
	require.Len(t, recipes, functions, "a target build-... has no function: %v", recipes)
}

// secrets are the variables that the function takes from Parameter Store.
var secrets = []string{"SALLYPORT_KEY_SECRET", "SALLYPORT_WEBHOOK_SECRET", "SALLYPORT_WEBHOOK_SECRET_NEXT", "UPSTASH_REDIS_REST_TOKEN"}

// What the template sets is read by the program, and what the program reads of the
// kit's own is set.
func TestTemplateEnvironment(t *testing.T) {
	variables := function(t).at("Environment", "Variables")
	read := variablesRead(t, "./examples/webhook")
	for _, name := range variables.keys() {
		require.Contains(t, read, name, "examples/webhook and what it links do not read it")
	}
	for _, name := range read {
		if slices.Contains(secrets, name) {
			require.NotContains(t, variables.keys(), name, "whoever may read the function's configuration reads it")
		} else if strings.HasPrefix(name, "SALLYPORT_") || strings.HasPrefix(name, "UPSTASH_") {
			require.Contains(t, variables.keys(), name, "examples/webhook reads it")
		}
	}
	for name, parameter := range map[string]string{
		"SALLYPORT_LIMIT":          "Limit",
		"SALLYPORT_INSTANCES":      "Instances",
		"SALLYPORT_SECRETS":        "Secrets",
		"SALLYPORT_WEBHOOK_SCHEME": "WebhookScheme",
	} {
		require.Equal(t, parameter, variables.at(name, "Ref").text())
	}
	require.Equal(t, "Instances", function(t).at("ReservedConcurrentExecutions", "Ref").text(),
		"SALLYPORT_INSTANCES says how many instances may run")
	for name, want := range map[string][2]string{
		"SALLYPORT_TABLE":        {"UseDynamoDB", "LimitsTable"},
		"UPSTASH_REDIS_REST_URL": {"UseUpstash", "UpstashUrl"},
	} {
		choice := variables.at(name, "Fn::If").list()
		require.Len(t, choice, 3)
		require.Equal(t, want[0], choice[0].text(), name)
		require.Equal(t, want[1], choice[1].at("Ref").text(), name)
		require.Equal(t, "AWS::NoValue", choice[2].at("Ref").text(), "%s must be absent, not empty, with the other store", name)
	}
}

func TestTemplateParameters(t *testing.T) {
	parameters := template(t).at("Parameters")
	for _, name := range parameters.keys() {
		require.NotContains(t, parameters.at(name).keys(), "NoEcho", "%s: a secret's place is Parameter Store", name)
		require.NotEmpty(t, parameters.at(name, "Description").text(), name)
	}
	require.Regexp(t, parameters.at("Secrets", "AllowedPattern").text(), parameters.at("Secrets", "Default").text())
	text := paper(t, "template.yaml")
	for _, name := range secrets {
		require.Contains(t, text, name, "how it comes to Parameter Store")
	}
	limit, err := stores.ParseLimit(parameters.at("Limit", "Default").text())
	require.NoError(t, err)

	// Neither store calls anybody before it counts.
	table, err := dynamo.New(dynamo.Config{Client: dynamodb.New(dynamodb.Options{Region: "us-east-1"}), Table: "limits"})
	require.NoError(t, err)
	require.NoError(t, table.Supports(limit))
	redis, err := upstash.New(upstash.Config{URL: "http://127.0.0.1:1", Token: "token"})
	require.NoError(t, err)
	require.NoError(t, redis.Supports(limit))
}

func TestTemplateTable(t *testing.T) {
	table := template(t).at("Resources", "LimitsTable", "Properties")
	require.Equal(t, "PAY_PER_REQUEST", table.at("BillingMode").text())
	require.Equal(t, dynamo.TTLAttribute, table.at("TimeToLiveSpecification", "AttributeName").text())
	require.Equal(t, "true", table.at("TimeToLiveSpecification", "Enabled").text())
	keys, attributes := table.at("KeySchema").list(), table.at("AttributeDefinitions").list()
	require.Len(t, keys, 1)
	require.Equal(t, dynamo.KeyAttribute, keys[0].at("AttributeName").text())
	require.Equal(t, "HASH", keys[0].at("KeyType").text())
	require.Len(t, attributes, 1)
	require.Equal(t, dynamo.KeyAttribute, attributes[0].at("AttributeName").text())
	require.Equal(t, "S", attributes[0].at("AttributeType").text())
	require.Equal(t, "MaxWritesPerSecond", table.at("OnDemandThroughput", "MaxWriteRequestUnits", "Ref").text(),
		"an attacker must not run up the bill")
}

// The function may read its own secrets, may call what the store calls, on the one
// table, and nothing else.
func TestTemplatePolicy(t *testing.T) {
	var want []string
	client := reflect.TypeFor[dynamo.Client]()
	for i := range client.NumMethod() {
		want = append(want, "dynamodb:"+client.Method(i).Name)
	}
	policies := function(t).at("Policies").list()
	require.Len(t, policies, 2)
	read := policies[0].at("Statement").list()
	require.Len(t, read, 1)
	require.Equal(t, "Allow", read[0].at("Effect").text())
	require.Equal(t, "ssm:GetParameters", read[0].at("Action").text())
	require.Equal(t, "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter${Secrets}/*", read[0].at("Resource", "Fn::Sub").text())
	choice := policies[1].at("Fn::If").list()
	require.Len(t, choice, 3)
	require.Equal(t, "UseDynamoDB", choice[0].text())
	require.Equal(t, "AWS::NoValue", choice[2].at("Ref").text())
	statements := choice[1].at("Statement").list()
	require.Len(t, statements, 1)
	require.Equal(t, "Allow", statements[0].at("Effect").text())
	require.ElementsMatch(t, want, statements[0].at("Action").texts())
	require.Equal(t, "LimitsTable.Arn", statements[0].at("Resource", "Fn::GetAtt").text())
}

// Scripts may read every field that the kit writes.
func TestTemplateExposesHeaders(t *testing.T) {
	cors := template(t).at("Resources", "Api", "Properties", "CorsConfiguration")
	exposed := cors.at("ExposeHeaders").texts()

	counters, err := memory.New(memory.Config{})
	require.NoError(t, err)
	guard, err := handler.New(handler.Config{Store: counters, ClientIP: handler.Direct(), Policies: []handler.Policy{
		{Name: "webhook", Limit: stores.FixedWindow(1, time.Minute), Key: handler.ByIP()},
	}})
	require.NoError(t, err)
	h := guard.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	// Scripts read these without leave (Fetch standard, "CORS-safelisted
	// response-header name"); Vary is for caches.
	known := []string{"Cache-Control", "Content-Type", "Vary"}
	var emitted []string
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "POST", "/", nil))
		require.Equal(t, want, w.Code)
		for name := range w.Header() {
			if !slices.Contains(known, name) && !slices.Contains(emitted, strings.ToLower(name)) {
				emitted = append(emitted, strings.ToLower(name))
			}
		}
	}
	require.ElementsMatch(t, emitted, exposed)
}
