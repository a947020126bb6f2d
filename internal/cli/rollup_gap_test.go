package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// TestRollupThatWasAway is the story of a rollup that was away for longer than the stream keeps
// records. It ends with 1, names the gap and changes nothing; with --allow-gaps it goes on. In a SQL
// database and in a store of rows.
func TestRollupThatWasAway(t *testing.T) {
	r := newLossRun(t)
	file := filepath.Join(t.TempDir(), "counts.db")
	places := [][]string{
		{"--db", "sqlite:" + file, "--table", "counts"}, {"--dynamodb", "counts", "--app", "dynamo"},
	}
	rollup := func(place []string, more ...string) *process {
		return r.start(append(append([]string{
			"rollup", "--endpoint", r.endpoint, "--stream", "one", "--key", "/id", "--count",
			"--failover", killFailover, "--once",
		}, place...), more...)...)
	}
	r.put(10)
	for _, place := range places {
		rollup(place).want(0)
	}
	r.put(1000)
	r.step("25h")
	r.put(20)
	r.trim()
	for _, place := range places {
		away := rollup(place)
		away.want(1)
		for _, words := range []string{"stops at a gap", "nothing between", "--allow-gaps"} {
			if said := away.stderr.String(); !strings.Contains(said, words) {
				t.Errorf("%q is not said:\n%s", words, said)
			}
		}
		again := rollup(place, "--allow-gaps")
		again.want(0)
		if said := again.stderr.String(); !strings.Contains(said, "20 records") ||
			!strings.Contains(said, "1 gaps") {
			t.Errorf("rollup said:\n%s", said)
		}
	}
	var out strings.Builder
	if err := clitest.SQL(&out, file, "select sum(count) from counts"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "30\n" {
		t.Errorf("the table has %s records, want 30", out.String())
	}
}

// TestRollupBeforeAGapWithoutRecords has a gap that no record of the shard follows: at the tip of
// an open shard, and at the end of one that was split. The command stays before it, in a store of
// rows as well.
func TestRollupBeforeAGapWithoutRecords(t *testing.T) {
	for _, isSplit := range []bool{false, true} {
		r := newLossRun(t)
		file := filepath.Join(t.TempDir(), "counts.db")
		places := [][]string{
			{"--db", "sqlite:" + file, "--table", "counts"}, {"--dynamodb", "counts", "--app", "dynamo"},
		}
		rollup := func(place []string, more ...string) *process {
			return r.start(append(append([]string{
				"rollup", "--endpoint", r.endpoint, "--stream", "one", "--key", "/id", "--count",
				"--failover", killFailover, "--once",
			}, place...), more...)...)
		}
		r.put(10)
		for _, place := range places {
			rollup(place).want(0)
		}
		r.put(1000)
		r.step("25h")
		if isSplit {
			r.start("shards", "split", "shardId-000000000000", "--endpoint", r.endpoint, "--stream",
				"one", "--yes").want(0)
			r.put(20)
		}
		r.trim()
		for _, place := range places {
			for range 2 {
				away := rollup(place)
				away.want(1)
				if said := away.stderr.String(); !strings.Contains(said, "stops at a gap") {
					t.Errorf("the gap is not named:\n%s", said)
				}
			}
			rollup(place, "--allow-gaps").want(0)
		}
	}
}
