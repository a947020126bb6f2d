package processes_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/keyspace"
)

// putForeign puts aggregates without units into the first of two shards: of the KPL and of another
// producer, each with a record of that shard and one of the other.
func putForeign(t *testing.T, client *kinesis.Client, stream string) {
	t.Helper()
	inside := keyspace.Key{Lo: 7}.String()
	for _, outer := range []string{aggregate.OuterPartitionKey, "k"} {
		var e aggregate.Encoder
		for _, hash := range []string{inside, keyspace.Uniform(2)[1].Start.String()} {
			place := "outside"
			if hash == inside {
				place = "inside"
			}
			if err := e.Add(aggregate.Record{
				PartitionKey: "k", ExplicitHashKey: hash,
				Data: []byte(`{"id":"` + outer + " " + place + `"}`),
			}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := client.PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: &stream, PartitionKey: aws.String(outer), ExplicitHashKey: &inside,
			Data: slices.Clone(e.Seal(nil)),
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// Every command that reads records has --void, and all read the same records under a policy.
func TestVoidFlag(t *testing.T) {
	r := newKillRun(t, "", 1)
	r.serve("", "--stream", "orders:2")
	cfg, err := awsclient.Load(t.Context(), awsclient.Options{Endpoint: r.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	putForeign(t, awsclient.Kinesis(cfg), "orders")
	dir := t.TempDir()
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		args = append([]string{args[0], "--endpoint", r.endpoint}, args[1:]...)
		status, stdout, stderr := clitest.Run(t.Context(), args...)
		if status != want {
			t.Fatalf("%q: status %d\n%s%s", args, status, stdout, stderr)
		}
		return stdout, stderr
	}
	for policy, want := range map[string]string{
		"":        `{"id":"a inside"} {"id":"k inside"} {"id":"k outside"}`,
		"drop":    "",
		"deliver": `{"id":"a inside"} {"id":"a outside"} {"id":"k inside"} {"id":"k outside"}`,
	} {
		name, flag := policy, []string{"--void", policy}
		if policy == "" {
			name, flag = "auto", nil
		}
		archive := filepath.Join(dir, name)
		table := "sqlite:" + filepath.Join(dir, name+".db")
		with := func(args ...string) []string { return append(args, flag...) }
		lines := func(out string) string {
			all := strings.Split(strings.TrimSpace(out), "\n")
			slices.Sort(all)
			return strings.Join(all, " ")
		}
		tail, said := run(0, with("tail", "--stream", "orders", "--once")...)
		fleet, toldFleet := run(0, with("tail", "--stream", "orders", "--once", "--from", "oldest",
			"--app", "tail-"+name)...)
		if got := lines(tail); got != want || lines(fleet) != want {
			t.Errorf("%s: tail: %s\nas a worker: %s\nwant %s", name, got, fleet, want)
		}
		if !strings.Contains(said, "packed for another shard") ||
			!strings.Contains(toldFleet, "is void") {
			t.Errorf("%s: tail said %s%s", name, said, toldFleet)
		}
		_, line := run(0, with("archive", "--stream", "orders", "--once", "--to", archive,
			"--app", "archive-"+name)...)
		counts := map[string]string{
			"auto":    "1 records of void aggregates skipped, 3 records of void aggregates taken",
			"drop":    "4 records of void aggregates skipped",
			"deliver": "4 records of void aggregates taken",
		}[name]
		if !strings.Contains(line, counts) {
			t.Errorf("%s: archive said %s", name, line)
		}
		_, line = run(0, with("rollup", "--stream", "orders", "--once", "--db", table,
			"--table", "t", "--key", "/id", "--count", "--app", "rollup-"+name)...)
		if !strings.Contains(line, counts) {
			t.Errorf("%s: rollup said %s", name, line)
		}
		run(0, with("verify", archive, "--against-stream", "orders", "--complete")...)
		if name == "auto" {
			run(1, "verify", archive, "--against-stream", "orders", "--void", "deliver")
		}
	}
	for _, args := range [][]string{
		{"tail"},
		{"tail", "--app", "stops", "--from", "oldest"},
		{"archive", "--to", filepath.Join(dir, "stops"), "--app", "stops-archive"},
		{
			"rollup", "--db", "sqlite:" + filepath.Join(dir, "stops.db"), "--table", "t",
			"--key", "/id", "--count", "--app", "stops-rollup",
		},
	} {
		_, said := run(2, append(args, "--stream", "orders", "--once", "--void", "stop")...)
		if !strings.Contains(said, "another --void than stop") {
			t.Errorf("%q said %s", args, said)
		}
	}
	for words, args := range map[string][]string{
		"want one of auto, drop, deliver, stop": {"tail", "--stream", "orders", "--void", "keep"},
		"--void needs --against-stream":         {"verify", dir, "--void", "drop"},
		"want auto, drop or deliver": {
			"verify", dir, "--against-stream", "orders", "--void", "stop",
		},
	} {
		if _, said := run(2, args...); !strings.Contains(said, words) {
			t.Errorf("%q said %s", args, said)
		}
	}
}
