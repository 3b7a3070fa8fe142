package sallyport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
)

// written are the metrics that lambda.EMF writes, by "namespace,dimension,...".
func written(t *testing.T) map[string][]string {
	var out bytes.Buffer
	observe := lambda.EMF(&out)
	limit := stores.FixedWindow(5, time.Minute)
	outcome := func(source stores.Source, allowed bool) handler.Outcome {
		return handler.Outcome{Policy: "webhook", Limit: limit, Decision: stores.Decision{Source: source, Allowed: allowed}}
	}
	for _, v := range []handler.Verdict{
		{Allowed: true, Outcomes: []handler.Outcome{outcome(stores.Shared, true)}, Elapsed: time.Millisecond},
		{Allowed: true, Outcomes: []handler.Outcome{outcome(stores.Local, true)}},
		{Status: 429, Outcomes: []handler.Outcome{outcome(stores.Remembered, false)}},
		{Status: 503, Outcomes: []handler.Outcome{outcome(stores.None, false)}},
		{Status: 499},
	} {
		observe(context.Background(), v)
	}
	observe(context.Background(), handler.Verdict{}) // what is left
	metrics := make(map[string][]string)
	for d := json.NewDecoder(&out); d.More(); {
		var line struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		require.NoError(t, d.Decode(&line))
		for _, directive := range line.AWS.CloudWatchMetrics {
			for _, dimensions := range directive.Dimensions {
				set := strings.Join(append([]string{directive.Namespace}, dimensions...), ",")
				for _, m := range directive.Metrics {
					metrics[set] = append(metrics[set], m.Name)
				}
			}
		}
	}
	require.NotEmpty(t, metrics)
	return metrics
}

// An alarm on a metric that nobody writes is silent for ever.
func TestTemplateAlarms(t *testing.T) {
	metrics := written(t)
	resources := template(t).at("Resources")
	alarms := 0
	for _, id := range resources.keys() {
		if resources.at(id, "Type").text() != "AWS::CloudWatch::Alarm" {
			continue
		}
		alarms++
		p := resources.at(id, "Properties")
		require.Equal(t, "notBreaching", p.at("TreatMissingData").text(), "what is zero is not written")
		for _, action := range []string{"AlarmActions", "OKActions"} {
			require.Equal(t, "AlarmTopic", p.at(action).list()[0].at("Fn::If").list()[1].at("Ref").text())
		}
		expression, ids := "", 0
		for _, m := range p.at("Metrics").list() {
			if expression == "" { // the first is what is alarmed on
				expression = m.at("Expression").text()
				require.NotContains(t, m.keys(), "ReturnData")
				continue
			}
			ids++
			require.Equal(t, "false", m.at("ReturnData").text())
			require.Regexp(t, `\b`+m.at("Id").text()+`\b`, expression)
			metric := m.at("MetricStat", "Metric")
			set := metric.at("Namespace").text()
			for _, d := range metric.at("Dimensions").list() {
				set += "," + d.at("Name").text()
				switch d.at("Name").text() {
				case "FunctionName":
					require.Equal(t, "WebhookFunction", d.at("Value", "Ref").text())
				case "Policy":
					require.Contains(t, paper(t, "examples/webhook/main.go"), `Name:  "`+d.at("Value").text()+`"`)
				case "ApiId":
					require.Equal(t, "Api", d.at("Value", "Ref").text())
				}
			}
			if metric.at("Namespace").text() == "AWS/ApiGateway" {
				continue // an HTTP API's own: 4xx, 5xx, Count, by ApiId
			}
			require.Contains(t, metrics[set], metric.at("MetricName").text(), id)
		}
		require.Equal(t, 2, ids, id)
	}
	require.Equal(t, 2, alarms)
	require.Contains(t, paper(t, "examples/webhook/main.go"), "Observe: lambda.EMF(nil)", "who writes them")
}

// searched is what a widget asks CloudWatch for: "{namespace,dimension,...} MetricName="name"".
var searched = regexp.MustCompile(`SEARCH\('\{([A-Za-z/,]+)\} MetricName="([A-Za-z]+)"', '([A-Za-z0-9]+)'\)`)

// The dashboard shows every metric, and none that nobody writes.
func TestDashboard(t *testing.T) {
	type widget struct {
		Type                string
		X, Y, Width, Height int
		Properties          struct {
			Title, Region, View string
			Metrics             [][]json.RawMessage
		}
	}
	var board struct{ Widgets []widget }
	text, err := os.ReadFile("examples/dashboard.json")
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	require.NoError(t, d.Decode(&board))
	require.False(t, d.More())

	metrics := written(t)
	shown := make(map[string]bool)
	taken := make(map[[2]int]string)
	for _, w := range board.Widgets {
		require.Equal(t, "metric", w.Type)
		require.NotEmpty(t, w.Properties.Title)
		require.Equal(t, "us-east-1", w.Properties.Region, "README: the one name to replace")
		require.LessOrEqual(t, w.X+w.Width, 24, "the board is 24 wide")
		for x := w.X; x < w.X+w.Width; x++ {
			for y := w.Y; y < w.Y+w.Height; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s lies over it", w.Properties.Title)
				taken[[2]int{x, y}] = w.Properties.Title
			}
		}
		ids := make(map[string]bool)
		for _, m := range w.Properties.Metrics {
			var e struct{ Expression, ID, Label string }
			require.Len(t, m, 1)
			require.NoError(t, json.Unmarshal(m[0], &e))
			require.Regexp(t, `^[a-z][a-zA-Z0-9_]*$`, e.ID)
			require.False(t, ids[e.ID], e.ID)
			ids[e.ID] = true
			found := searched.FindAllStringSubmatch(e.Expression, -1)
			require.Equal(t, strings.Count(e.Expression, "SEARCH("), len(found), e.Expression)
			for _, f := range found {
				require.Contains(t, metrics[f[1]], f[2], e.Expression)
				shown[f[1]+" "+f[2]] = true
			}
		}
	}
	for set, names := range metrics {
		for _, name := range names {
			require.True(t, shown[set+" "+name], "no widget shows %s of %s", name, set)
		}
	}
}
