package processes_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
	counts := []func() string{
		func() string { return countInSQLite(t, file) }, r.countInDynamoDB,
	}
	r.put(10)
	for _, place := range places {
		rollup(place).want(0)
	}
	r.put(1000)
	r.step("25h passed")
	r.put(20)
	r.trim()
	for i, place := range places {
		away := rollup(place)
		away.want(1)
		if n := counts[i](); n != "10" {
			t.Errorf("%v: the table has %s records at the gap, want 10", place, n)
		}
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
		if n := counts[i](); n != "30" {
			t.Errorf("%v: the table has %s records, want 30", place, n)
		}
	}
}

// countInSQLite returns the number of records in the table counts.
func countInSQLite(t *testing.T, file string) string {
	t.Helper()
	var out strings.Builder
	if err := clitest.SQL(&out, file, "select sum(count) from counts"); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// countInDynamoDB returns the number of records in the table counts.
func (r *lossRun) countInDynamoDB() string {
	r.t.Helper()
	out, err := r.tables.Scan(r.t.Context(), &dynamodb.ScanInput{TableName: aws.String("counts")})
	if err != nil {
		r.t.Fatal(err)
	}
	sum := 0
	for _, item := range out.Items {
		count, isRow := item["count"].(*types.AttributeValueMemberN)
		if !isRow {
			continue // the table's setup
		}
		n, err := strconv.Atoi(count.Value)
		if err != nil {
			r.t.Fatal(err)
		}
		sum += n
	}
	return strconv.Itoa(sum)
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
		r.step("25h passed")
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
