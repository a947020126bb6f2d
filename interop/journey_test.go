package interop

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// client is a client of another language.
type client struct {
	name    string
	command []string // run in this folder
	needs   string   // a file of its installation
	scheme  string
	fansOut bool
}

func clients(t *testing.T) []client {
	tools, err := filepath.Abs("../.tools/interop")
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(tools, "python", "bin", "python")
	script := filepath.Join(tools, "javascript", "journey.mjs") // beside its node_modules
	classes := filepath.Join(tools, "java", "classes")
	cli := filepath.Join(tools, "awscli", "aws")
	return []client{
		{"python", []string{python, "python/journey.py"}, python, "http", true},
		{"python over TLS", []string{python, "python/journey.py"}, python, "https", true},
		{"javascript", []string{"node", script}, script, "http", true},
		{"java", []string{
			"java", "-Xmx256m", "-cp", filepath.Join(tools, "java", "lib", "*") + ":" + classes,
			"Journey",
		}, classes, "http", true},
		{"awscli", []string{"awscli/journey", cli}, cli, "http", false},
	}
}

// result is a client's output at the end of its journey: the records that it read, each as its
// partition key, a space and its data in base64.
type result struct {
	Polled    []string `json:"polled"`
	FannedOut []string `json:"fannedOut"`
	Open      int      `json:"open"` // open shards before the deletion
}

// TestJourney lets every client make the journey, one after the other, against one server.
func TestJourney(t *testing.T) {
	if os.Getenv("RUNNEL_INTEROP") == "" {
		t.Skip("make interop installs the clients of other languages and runs this")
	}
	p := serve(t)
	for i, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(c.needs); err != nil {
				t.Fatalf("%v: run interop/install", err)
			}
			c.check(t, c.travel(t, p.environment(c.scheme, fmt.Sprintf("journey-%d", i))))
		})
	}
}

// travel runs the client and reads its result.
func (c *client) travel(t *testing.T, environment []string) (r result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), journeyTime)
	defer cancel()
	command := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	command.Env = environment
	var messages bytes.Buffer
	command.Stderr = &messages
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v (%v)\n%s%s", c.name, err, ctx.Err(), out, &messages)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%s printed %q: %v\n%s", c.name, out, err, &messages)
	}
	return r
}

// check compares the records that the client read with those that it put.
func (c *client) check(t *testing.T, r result) {
	t.Helper()
	var want []string
	record := func(key, data string) {
		want = append(want, key+" "+base64.StdEncoding.EncodeToString([]byte(data+"\xff\x00")))
	}
	for _, batch := range []string{"before", "after"} {
		record(batch+"-one", batch+"-one")
		for i := range 20 {
			record(fmt.Sprintf("%s-ключ-%d", batch, i), fmt.Sprintf("%s %d", batch, i))
		}
	}
	slices.Sort(want)
	slices.Sort(r.Polled)
	slices.Sort(r.FannedOut)
	if !slices.Equal(r.Polled, want) {
		t.Errorf("polled %d records, want %d:\n%q", len(r.Polled), len(want), r.Polled)
	}
	if c.fansOut && !slices.Equal(r.FannedOut, want) {
		t.Errorf("fan-out gave %d records, want %d:\n%q", len(r.FannedOut), len(want), r.FannedOut)
	}
	if r.Open != 2 {
		t.Errorf("%d shards are open, want 2", r.Open)
	}
	does := polling
	if c.fansOut {
		does = both
	}
	report(t, c.name, does, row{records: len(want)})
}
