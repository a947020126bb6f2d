package deploy_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"go.yaml.in/yaml/v3"
)

const templateFile = "cloudformation/alarms.yml"

// template is the CloudFormation template with the defaults of its parameters.
type template struct {
	Parameters map[string]struct {
		Default yaml.Node `yaml:"Default"`
	} `yaml:"Parameters"`
	Resources map[string]struct {
		Type       string `yaml:"Type"`
		Properties alarm  `yaml:"Properties"`
	} `yaml:"Resources"`
	alarms map[string]alarm
}

type alarm struct {
	metric             `yaml:",inline"`
	Statistic          string    `yaml:"Statistic"`
	Period             int       `yaml:"Period"`
	Metrics            []query   `yaml:"Metrics"`
	EvaluationPeriods  yaml.Node `yaml:"EvaluationPeriods"`
	ComparisonOperator string    `yaml:"ComparisonOperator"`
	Threshold          yaml.Node `yaml:"Threshold"`
	TreatMissingData   string    `yaml:"TreatMissingData"`
}

type metric struct {
	Namespace  yaml.Node `yaml:"Namespace"`
	MetricName string    `yaml:"MetricName"`
	Dimensions []struct {
		Name  string    `yaml:"Name"`
		Value yaml.Node `yaml:"Value"`
	} `yaml:"Dimensions"`
}

type query struct {
	ID         string    `yaml:"Id"`
	Expression yaml.Node `yaml:"Expression"`
	MetricStat *struct {
		Metric metric `yaml:"Metric"`
		Period int    `yaml:"Period"`
		Stat   string `yaml:"Stat"`
	} `yaml:"MetricStat"`
}

func readTemplate(t *testing.T) *template {
	t.Helper()
	text, err := os.ReadFile(templateFile)
	if err != nil {
		t.Fatal(err)
	}
	of := &template{alarms: map[string]alarm{}}
	if err := yaml.Unmarshal(text, of); err != nil {
		t.Fatal(err)
	}
	for name, r := range of.Resources {
		if r.Type != "AWS::CloudWatch::Alarm" {
			t.Errorf("%s is a %s", name, r.Type)
		}
		of.alarms[name] = r.Properties
	}
	return of
}

// number reads a number, or the default of the parameter that a node refers to.
func (of *template) number(t *testing.T, node yaml.Node) float64 {
	t.Helper()
	if node.Tag == "!Ref" {
		node = of.Parameters[node.Value].Default
	}
	n, err := strconv.ParseFloat(node.Value, 64)
	if err != nil {
		t.Fatalf("%+v: %v", node, err)
	}
	return n
}

// expressions are the meanings of the expressions in the template.
var expressions = map[string]func(map[string]float64) float64{
	"IF(most > 1048576, most / mean, 0)": func(of map[string]float64) float64 {
		if of["most"] > 1048576 {
			return of["most"] / of["mean"]
		}
		return 0
	},
	"shards - leases": func(of map[string]float64) float64 { return of["shards"] - of["leases"] },
	"behind / (${RetentionHours} * 36000)": func(of map[string]float64) float64 {
		return of["behind"] / (24 * 36000)
	},
}

// alarming returns the alarms that CloudWatch would raise with these data by that time.
func (of *template) alarming(t *testing.T, data []cwtypes.MetricDatum, now time.Time) []string {
	t.Helper()
	var raised []string
	for _, name := range slices.Sorted(maps.Keys(of.alarms)) {
		a := of.alarms[name]
		threshold, all := of.number(t, a.Threshold), true
		for n := range int(of.number(t, a.EvaluationPeriods)) {
			end := now.Add(-time.Duration(n) * time.Minute)
			value, ok := of.value(t, a, data, end)
			switch {
			case !ok:
				all = all && a.TreatMissingData == "breaching"
			case a.ComparisonOperator == "GreaterThanThreshold":
				all = all && value > threshold
			case a.ComparisonOperator == "LessThanThreshold":
				all = all && value < threshold
			default:
				t.Fatalf("%s: %s", name, a.ComparisonOperator)
			}
		}
		if all {
			raised = append(raised, name)
		}
	}
	return raised
}

// value returns the value of an alarm in the minute before end.
func (of *template) value(
	t *testing.T, a alarm, data []cwtypes.MetricDatum, end time.Time,
) (float64, bool) {
	t.Helper()
	if len(a.Metrics) == 0 {
		return statistic(a.metric, a.Statistic, a.Period, data, end)
	}
	values, expression := map[string]float64{}, ""
	for _, q := range a.Metrics {
		if q.MetricStat == nil {
			expression = q.Expression.Value
			continue
		}
		value, ok := statistic(q.MetricStat.Metric, q.MetricStat.Stat, q.MetricStat.Period, data, end)
		if !ok {
			return 0, false
		}
		values[q.ID] = value
	}
	meaning := expressions[expression]
	if meaning == nil {
		t.Fatalf("the test does not know the expression %q", expression)
	}
	return meaning(values), true
}

func statistic(
	m metric, name string, period int, data []cwtypes.MetricDatum, end time.Time,
) (float64, bool) {
	least, most, sum, count := math.Inf(1), math.Inf(-1), 0.0, 0.0
	for _, d := range data {
		age := end.Sub(*d.Timestamp)
		if *d.MetricName != m.MetricName || len(d.Dimensions) != len(m.Dimensions) ||
			*d.Dimensions[0].Name != m.Dimensions[0].Name || *d.Dimensions[0].Value != app ||
			age < 0 || age >= time.Duration(period)*time.Second {
			continue
		}
		for i, value := range d.Values {
			least, most = min(least, value), max(most, value)
			sum, count = sum+value*d.Counts[i], count+d.Counts[i]
		}
	}
	values := map[string]float64{
		"Minimum": least, "Maximum": most, "Sum": sum, "Average": sum / count,
	}
	value, known := values[name]
	if !known {
		panic(fmt.Sprintf("the test does not know the statistic %q", name))
	}
	return value, count > 0
}
