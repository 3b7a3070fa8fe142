package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
)

// part is a piece of template.yaml, in which CloudFormation's short forms are plain
// text: "!Ref Instances" is "Ref Instances".
type part struct {
	t    *testing.T
	path string
	node *yaml.Node
}

func template(t *testing.T) part {
	text, err := os.ReadFile("template.yaml")
	require.NoError(t, err)
	var root yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &root))
	return part{t, "template", root.Content[0]}
}

// at goes down a path; what is not there fails the test.
func (p part) at(names ...string) part {
	p.t.Helper()
	for _, name := range names {
		i := slices.Index(p.keys(), name)
		require.GreaterOrEqual(p.t, i, 0, "%s has no %s", p.path, name)
		p = part{p.t, p.path + "." + name, p.node.Content[2*i+1]}
	}
	return p
}

func (p part) keys() (keys []string) {
	p.t.Helper()
	require.Equal(p.t, yaml.MappingNode, p.node.Kind, p.path)
	for i := 0; i < len(p.node.Content); i += 2 {
		keys = append(keys, p.node.Content[i].Value)
	}
	return keys
}

func (p part) text() string {
	p.t.Helper()
	require.Equal(p.t, yaml.ScalarNode, p.node.Kind, p.path)
	if form, short := strings.CutPrefix(p.node.Tag, "!"); short && !strings.HasPrefix(form, "!") {
		return form + " " + p.node.Value
	}
	return p.node.Value
}

func (p part) texts() (texts []string) {
	p.t.Helper()
	for _, e := range p.list() {
		texts = append(texts, e.text())
	}
	return texts
}

func (p part) list() (parts []part) {
	p.t.Helper()
	require.Equal(p.t, yaml.SequenceNode, p.node.Kind, p.path)
	for _, n := range p.node.Content {
		parts = append(parts, part{p.t, p.path + "[]", n})
	}
	return parts
}

func (p part) number() int {
	p.t.Helper()
	n, err := strconv.Atoi(p.text())
	require.NoError(p.t, err, p.path)
	return n
}

func (p part) seconds() time.Duration { return time.Duration(p.number()) * time.Second }

func resource(t *testing.T, name string) part {
	return template(t).at("Resources", name, "Properties")
}

// The queue and the code agree about how often and for how long a message comes again.
func TestTemplateQueue(t *testing.T) {
	f, queue := resource(t, "JobsFunction"), resource(t, "JobsQueue")
	source := f.at("Events", "Jobs", "Properties")
	require.Equal(t, "GetAtt JobsQueue.Arn", source.at("Queue").text())
	require.Equal(t, []string{"ReportBatchItemFailures"}, source.at("FunctionResponseTypes").texts(), "Handle returns them")
	require.GreaterOrEqual(t, queue.at("VisibilityTimeout").seconds(), 6*f.at("Timeout").seconds())
	require.Equal(t, retention, queue.at("MessageRetentionPeriod").seconds(), "a mark lasts as long as a message")
	require.Greater(t, resource(t, "DeadLetters").at("MessageRetentionPeriod").seconds(), retention)
	require.Equal(t, "GetAtt DeadLetters.Arn", queue.at("RedrivePolicy", "deadLetterTargetArn").text())
	require.Equal(t, "Ref MaxReceives", queue.at("RedrivePolicy", "maxReceiveCount").text())
	require.GreaterOrEqual(t, f.at("Timeout").seconds(), 2*reserve, "there must be time to begin a job")

	// Who is limited gets his turn before the dead letters do.
	parameters := template(t).at("Parameters")
	limit, err := stores.ParseLimit(parameters.at("Limit", "Default").text())
	require.NoError(t, err)
	patience := queue.at("VisibilityTimeout").seconds() * time.Duration(parameters.at("MaxReceives", "Default").number())
	require.Greater(t, patience, 10*limit.Window)
	require.Less(t, patience, retention, "and before the queue drops him")

	// Lambda takes 2 to 1000 for MaximumConcurrency.
	require.Equal(t, "Ref Instances", source.at("ScalingConfig", "MaximumConcurrency").text())
	require.Equal(t, 2, parameters.at("Instances", "MinValue").number())
	require.Equal(t, 1000, parameters.at("Instances", "MaxValue").number())
	require.NotContains(t, f.keys(), "ReservedConcurrentExecutions")
	require.Equal(t, "true", parameters.at("KeySecret", "NoEcho").text())
	require.NotContains(t, parameters.at("KeySecret").keys(), "Default")
}

// What the template sets, the program reads: it starts with the template's defaults.
func TestTemplateEnvironment(t *testing.T) {
	variables := resource(t, "JobsFunction").at("Environment", "Variables")
	for name, want := range map[string]string{
		"SALLYPORT_LIMIT":      "Ref Limit",
		"SALLYPORT_INSTANCES":  "Ref Instances",
		"SALLYPORT_KEY_SECRET": "Ref KeySecret",
		"SALLYPORT_TABLE":      "Ref LimitsTable",
	} {
		require.Equal(t, want, variables.at(name).text())
	}
	require.Len(t, variables.keys(), 4)
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	for _, name := range variables.keys() {
		require.Contains(t, string(source), name, "what main.go says of its environment")
	}

	parameters := template(t).at("Parameters")
	t.Setenv("SALLYPORT_LIMIT", parameters.at("Limit", "Default").text())
	t.Setenv("SALLYPORT_INSTANCES", parameters.at("Instances", "Default").text())
	t.Setenv("SALLYPORT_KEY_SECRET", strings.Repeat("k", 32))
	t.Setenv("SALLYPORT_TABLE", "limits")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for _, name := range upstashVariables {
		t.Setenv(name, "")
	}
	_, err = newGuard()
	require.NoError(t, err)

	for name, set := range map[string][2]string{
		"an odd limit":      {"SALLYPORT_LIMIT", "many"},
		"an odd number":     {"SALLYPORT_INSTANCES", "many"},
		"two stores at all": {"KV_REST_API_URL", "https://example.com"},
		"no store":          {"SALLYPORT_TABLE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(set[0], set[1])
			_, err := newGuard()
			require.Error(t, err)
		})
	}
}

func TestTemplateTable(t *testing.T) {
	table := resource(t, "LimitsTable")
	require.Equal(t, "PAY_PER_REQUEST", table.at("BillingMode").text())
	require.Equal(t, dynamo.TTLAttribute, table.at("TimeToLiveSpecification", "AttributeName").text())
	require.Equal(t, "true", table.at("TimeToLiveSpecification", "Enabled").text())
	require.Len(t, table.at("KeySchema").list(), 1)
	require.Equal(t, dynamo.KeyAttribute, table.at("KeySchema").list()[0].at("AttributeName").text())
	require.Equal(t, "Ref MaxWritesPerSecond", table.at("OnDemandThroughput", "MaxWriteRequestUnits").text())

	policies := resource(t, "JobsFunction").at("Policies").list()
	require.Len(t, policies, 1)
	statements := policies[0].at("Statement").list()
	require.Len(t, statements, 1)
	// Take and Peek; nothing here resets.
	require.Equal(t, []string{"dynamodb:UpdateItem", "dynamodb:GetItem"}, statements[0].at("Action").texts())
	require.Equal(t, "GetAtt LimitsTable.Arn", statements[0].at("Resource").text())
}

// sam build calls make in this folder, and what comes out is the template's handler.
func TestTemplateBuild(t *testing.T) {
	function := template(t).at("Resources", "JobsFunction")
	require.Equal(t, "makefile", function.at("Metadata", "BuildMethod").text())
	require.Equal(t, ".", function.at("Metadata", "ContextPath").text(), "where the Makefile is")
	root := function.at("Properties", "CodeUri").text()
	require.FileExists(t, filepath.Join(root, "go.mod"))
	require.Equal(t, "provided.al2023", function.at("Properties", "Runtime").text())
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	target := regexp.MustCompile(`(?m)^build-JobsFunction:\n((?:\t.*\n)+)`).FindStringSubmatch(string(makefile))
	require.NotNil(t, target)
	require.Contains(t, target[1], "GOARCH="+function.at("Properties", "Architectures").texts()[0]+" ")
	require.Contains(t, target[1], `"$(ARTIFACTS_DIR)/`+function.at("Properties", "Handler").text()+`"`)

	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is missing")
	}
	dir := t.TempDir()
	here, err := filepath.Abs("Makefile")
	require.NoError(t, err)
	build := func(dir string) ([]byte, error) {
		cmd := exec.Command("make", "--makefile", here, "build-JobsFunction", "ARTIFACTS_DIR="+dir)
		cmd.Dir = root
		return cmd.CombinedOutput()
	}
	out, err := build(dir)
	require.NoError(t, err, "%s", out)
	require.FileExists(t, filepath.Join(dir, "bootstrap"))
	_, err = build("")
	require.Error(t, err)
}
