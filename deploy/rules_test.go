package deploy_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/runnel-stream/runnel/internal/metricspage"
)

const rulesFile = "prometheus/runnel.rules.yml"

type rules struct {
	Groups []struct {
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert  string            `yaml:"alert"`
	Expr   string            `yaml:"expr"`
	Labels map[string]string `yaml:"labels"`
}

func readRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var all rules
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all.Groups[0].Rules
}

// ruleNames returns the names of the alerts, without their prefix.
func ruleNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, r := range readRules(t) {
		names = append(names, strings.TrimPrefix(r.Alert, "Runnel"))
	}
	return names
}

// seriesOf returns a series as Prometheus would store it.
func seriesOf(s metricspage.Series, instance string) string {
	labels := maps.Clone(s.Labels)
	labels["instance"] = instance
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", name, labels[name]))
	}
	return s.Name + "{" + strings.Join(parts, ",") + "}"
}

// worst reports whether a value of each of the last n scrapes of a metric is so, by the function
// that combines the values of one scrape.
func (f *fleet) worst(n int, name string, combine func(values []float64) float64) []float64 {
	var found []float64
	for at := f.scrapes - n; at < f.scrapes; at++ {
		var values []float64
		for id, all := range f.scraped {
			if strings.HasPrefix(id, name+"{") && at < len(all) && all[at] != nil {
				values = append(values, *all[at])
			}
		}
		if len(values) > 0 {
			found = append(found, combine(values))
		}
	}
	return found
}

// metricsShow reports whether the last scrapes show exactly these conditions, without promtool.
func metricsShow(f *fleet, want []string) bool {
	const n = 10
	least := func(v []float64) float64 { return slices.Min(v) }
	most := func(v []float64) float64 { return slices.Max(v) }
	total := func(v []float64) (sum float64) {
		for _, x := range v {
			sum += x
		}
		return sum
	}
	all := func(v []float64, is func(float64) bool) bool {
		return len(v) > 0 && !slices.ContainsFunc(v, func(x float64) bool { return !is(x) })
	}
	positive := func(x float64) bool { return x > 0 }
	var got []string
	add := func(name string, is bool) {
		if is {
			got = append(got, name)
		}
	}
	add("Churning", all(f.worst(n, metricspage.WorkerUnclaimedLeases, most), positive))
	leases := f.worst(n, metricspage.WorkerTotalLeases, least)
	shards := f.worst(n, metricspage.WorkerTotalShards, least)
	add("FewerLeasesThanShards", len(leases) > 0 && len(leases) == len(shards) &&
		slices.Max(leases) < slices.Min(shards))
	growth := map[string]float64{}
	for id, v := range f.scraped {
		if strings.HasPrefix(id, metricspage.ShardBytes+"{") && len(v) == f.scrapes && v[f.scrapes-n] != nil {
			growth[id] = *v[f.scrapes-1] - *v[f.scrapes-n]
		}
	}
	rates := slices.Collect(maps.Values(growth))
	add("HotShard", len(rates) > 0 && most(rates) > 3*total(rates)/float64(len(rates)) &&
		most(rates) > n*scrapeEvery.Seconds()*100_000*0.8)
	behind := f.worst(n, metricspage.ShardBehindSeconds, most)
	kept := f.worst(n, metricspage.WorkerRetentionSeconds, most)
	add("NearRetention", len(behind) == n && len(kept) == n && slices.Min(behind)/kept[0] > 0.5)
	add("NoWorker", !all(f.worst(n, metricspage.WorkerLeases, total), positive))
	add("ShardStopped", all(f.worst(n, metricspage.ShardState, func([]float64) float64 {
		for id, v := range f.scraped {
			if strings.Contains(id, `state="stopped"`) && len(v) == f.scrapes {
				return 1
			}
		}
		return 0
	}), positive))
	add("UnderProvisioned", all(f.worst(n, metricspage.ShardBehindSeconds, least), positive))
	slices.Sort(want)
	return slices.Equal(got, want)
}

// ruleTest is a test of promtool's, and its file has several.
type ruleTest struct {
	Name    string      `yaml:"name"`
	Every   string      `yaml:"interval"`
	Series  []ruleInput `yaml:"input_series"`
	Queries []ruleQuery `yaml:"promql_expr_test"`
}

type ruleInput struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type ruleQuery struct {
	Expr    string       `yaml:"expr"`
	At      string       `yaml:"eval_time"`
	Samples []ruleSample `yaml:"exp_samples"`
}

type ruleSample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// ruleTest returns the test of the fleet's pages: the condition's alerts fire, and no other ones.
func (f *fleet) ruleTest(c condition) ruleTest {
	test := ruleTest{Name: c.name, Every: scrapeEvery.String()}
	for _, id := range slices.Sorted(maps.Keys(f.scraped)) {
		values := make([]string, f.scrapes)
		for i := range values {
			values[i] = "_"
			if all := f.scraped[id]; i < len(all) && all[i] != nil {
				values[i] = strconv.FormatFloat(*all[i], 'f', -1, 64)
			}
		}
		test.Series = append(test.Series, ruleInput{id, strings.Join(values, " ")})
	}
	firing := ruleQuery{
		Expr:    `count by (alertname) (ALERTS{alertstate="firing",app="` + app + `"})`,
		At:      (time.Duration(f.scrapes-1) * scrapeEvery).String(),
		Samples: []ruleSample{},
	}
	for _, name := range c.rules {
		firing.Samples = append(firing.Samples,
			ruleSample{`{alertname="Runnel` + name + `"}`, 1})
	}
	test.Queries = []ruleQuery{firing}
	return test
}

// promtool returns the program's path. The test skips if there is none.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("RUNNEL_PROMTOOL"), "promtool"))
	if err != nil {
		t.Skip("promtool is not there: make alerts, after interop/install, or Debian's prometheus")
	}
	return path
}

// TestRules runs the unit tests of the rules.
func TestRules(t *testing.T) {
	tool := promtool(t)
	for _, args := range [][]string{
		{"check", "rules", rulesFile}, {"test", "rules", "prometheus/runnel.rules.test.yml"},
	} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// runRuleTests runs the rules on the pages of fleets.
func runRuleTests(t *testing.T, tests []ruleTest) {
	t.Helper()
	tool := promtool(t)
	file, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(map[string]any{
		"rule_files": []string{file}, "evaluation_interval": "30s", "tests": tests,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fleet.test.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%.5000s", err, out)
	}
}
