package main

import (
	"flag"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/runneltest"
)

var update = flag.Bool("update", false, "write docs/fidelity.md")

const fidelity = "../docs/fidelity.md"

// TestFidelity checks runnel's server against every fact that does not take minutes, and compares
// the results with docs/fidelity.md.
func TestFidelity(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithCredentials("000000000000", "conformance"),
		// A busy machine needs this long to see the states CREATING, UPDATING and DELETING.
		runneltest.WithStreamDelay(500*time.Millisecond))
	k := newKit(t.Context(), target{
		endpoint: mustParse(t, server.Endpoint()), region: "us-east-1",
		credentials: server.AWSConfig().Credentials, prefix: "conformance-ci-",
	})
	results := k.run(t.Context(), facts(), func(result) {})
	for _, r := range results {
		switch reason := known[r.fact.id]; {
		case r.outcome == outcomeDiffers && reason == "":
			t.Errorf("%s differs: %s (%s)\nexpected %s\ngot      %s", r.fact.id, r.fact.says,
				r.fact.source, r.expected, r.got)
		case r.outcome == outcomeError:
			t.Errorf("%s: %s", r.fact.id, r.reason)
		case r.outcome == outcomeSkipped && r.fact.needs&patience == 0:
			t.Errorf("%s was skipped: %s", r.fact.id, r.reason)
		case r.outcome == outcomeOK && reason != "":
			t.Errorf("%s is ok: take it out of the known differences", r.fact.id)
		}
	}
	if left := k.deleteStreams(t.Context()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	compare(t, report(results, k.prefix, known))
}

// compare compares the page with docs/fidelity.md, or writes it with -update.
func compare(t *testing.T, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(fidelity, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(fidelity)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("docs/fidelity.md is out of date: run make fidelity")
	}
}

func mustParse(t *testing.T, s string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
