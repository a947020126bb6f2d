package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		value float64
		want  string
	}{
		{0, "0"},
		{0.4567, "0.457"},
		{1.8, "1.8"},
		{8, "8"},
		{27.66, "27.7"},
		{99.96, "100"},
		{100, "100"},
		{148.4, "148"},
		{1234, "1,230"},
		{9999, "10,000"},
		{157499, "157,000"},
		{1290000, "1,290,000"},
	} {
		if got := figure(c.value); got != c.want {
			t.Errorf("figure(%v) = %s, want %s", c.value, got, c.want)
		}
	}
}

func TestMedianAndRatio(t *testing.T) {
	m := newMeasured()
	a, b := &server{name: "a"}, &server{name: "b"}
	for _, v := range []float64{30, 10, 20} {
		m.add(a, putKiB, viaSDK, v)
	}
	for _, v := range []float64{4, 6} {
		m.add(b, putKiB, viaSDK, v)
	}
	m.add(b, getKiB, viaSDK, 0)
	m.add(a, getKiB, viaSDK, 1)
	if got, ok := m.median("a", putKiB, viaSDK); got != 20 || !ok {
		t.Errorf("the median of three is %v, %v", got, ok)
	}
	if got, ok := m.ratio("a", "b", putKiB, viaSDK); got != 4 || !ok {
		t.Errorf("the ratio to the median of two is %v, %v", got, ok)
	}
	if _, ok := m.ratio("a", "b", putKiB, viaPrepared); ok {
		t.Error("a ratio of what was not measured")
	}
	if _, ok := m.ratio("a", "b", getKiB, viaSDK); ok {
		t.Error("a ratio to nothing")
	}
}

// TestReport checks the tables for invented values.
func TestReport(t *testing.T) {
	cfg := Config{Only: regexp.MustCompile("runnel|ferro|kinesalite"), Rounds: 3}
	all := servers(cfg)
	m := newMeasured()
	for _, s := range all {
		value := map[string]float64{
			runnelDurable: 120_000, runnelMemory: 200_000, ferroMemory: 70_000,
			kinesaliteName: 15_000,
		}[s.name]
		if value != 0 {
			m.add(s, putKiB, viaSDK, value)
		}
	}
	m.add(all[0], idleMemory, noClient, 20.5)
	m.add(all[0], firstAnswer, noClient, 25)
	m.failed(turn{server: all[3], group: groupKiB}, errors.New("not\ninstalled"))
	m.failed(turn{server: all[3], group: groupKiB, round: 1}, errors.New("not\ninstalled"))
	out := report(cfg, all, m)
	for _, want := range []string{
		"| " + runnelDurable + " | 120,000 | – |",
		"| " + kinesaliteName + " | 8 | – |",
		"| " + runnelDurable + ": PutRecords, 1 KiB, beside " + kinesaliteName +
			" | at least 8 times | 8, met | – |",
		"| " + runnelDurable + ": PutRecords, 1 KiB, beside " + ferroMemory +
			" | at least 1.8 times | 1.71, **not met** | – |",
		"| " + runnelDurable + ": PutRecords, 1 KiB, beside " + ferroDurable +
			" | at least 30 times | – | – |",
		"| " + runnelDurable + ": memory idle, MB | below 30 | 20.5, met | |",
		"| " + runnelDurable + ": start to first answer, ms | below 25 | 25, **not met** | |",
		"Note: " + ferroDurable + ", batches of 1 KiB: not installed\n",
	} {
		if strings.Count(out, want) != 1 {
			t.Errorf("the report has not, or not once:\n%s", want)
		}
	}
	if strings.Contains(out, dynaliteName) {
		t.Error("a server that was left out is in the report")
	}
	if m.runnelFailed {
		t.Error("a peer's failure counts as runnel's")
	}
	if m.failed(turn{server: all[1]}, errors.New("x")); !m.runnelFailed {
		t.Error("runnel's failure does not count")
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestGoals checks that every goal names an existing server and row.
func TestGoals(t *testing.T) {
	all := servers(Config{Only: regexp.MustCompile("")})
	known := map[string]bool{"": true}
	for _, s := range all {
		known[s.name] = true
	}
	for _, g := range goals() {
		if !known[g.own] || !known[g.peer] || g.value <= 0 {
			t.Errorf("%+v", g)
		}
	}
}
