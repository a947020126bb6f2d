package processes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// An archive may have records that no stream takes: programs pack them into aggregates. restore
// puts all others, and names these.
func TestRestoreRefused(t *testing.T) {
	dir := t.TempDir()
	place, state := filepath.Join(dir, "archive"), filepath.Join(dir, "state")
	kept := filepath.Join(dir, "kept")
	oddRecords(t, place)
	r := newKillRun(t, "", 1)
	server := r.serveWith("serve", "--addr", r.addr, "--memory", "--stream", "copy:1,other:1")
	run := func(status int, args ...string) string {
		t.Helper()
		p := r.start(append([]string{"restore", place, "--endpoint", r.endpoint}, args...)...)
		p.want(status)
		return p.stderr.String()
	}
	for name, text := range map[string]string{
		"plain":  run(1, "--stream", "other"),
		"state":  run(1, "--stream", "copy", "--resume", state),
		"second": run(1, "--stream", "copy", "--resume", state),
	} {
		for _, want := range []string{
			"shardId-000000000000 at 102: not in the stream",
			"shardId-000000000000 at 103: not in the stream", "2 of the ",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in: %s", name, want, text)
			}
		}
	}
	run(0, "--stream", "copy", "--resume", state, "--skip-refused", kept)
	if text := run(0, "--stream", "copy", "--resume", state); !strings.Contains(text, "nothing to do") {
		t.Errorf("behind --skip-refused: %s", text)
	}
	lines, err := os.ReadFile(kept)
	if err != nil || strings.Count(string(lines), "\n") != 2 ||
		!strings.Contains(string(lines), `"partitionKey":"`+strings.Repeat("k", 257)+`"`) {
		t.Errorf("kept: %s, %v", lines, err)
	}
	server.stop()
	p := r.start("restore", place, "--skip-refused", kept)
	p.want(2)
}

// oddRecords makes an archive of four records, of which two have keys that no stream takes.
func oddRecords(t *testing.T, place string) {
	t.Helper()
	a, err := archive.New(archive.Config{Dir: place})
	if err != nil {
		t.Fatal(err)
	}
	w, err := a.Open(t.Context(), sink.Shard{
		Stream: "orders", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	})
	if err != nil {
		t.Fatal(err)
	}
	batch := sink.Batch{}
	for i, key := range []string{"a", "", strings.Repeat("k", 257), "b"} {
		batch.Through.Sequence = nouns.SequenceNumber([]string{"101", "102", "103", "104"}[i])
		batch.Records = append(batch.Records, nouns.Record{
			PartitionKey: key, Data: []byte(`{"n":1}`), ShardID: "shardId-000000000000",
			Position: batch.Through, ArrivalTime: time.UnixMilli(1_700_000_000_001),
		})
	}
	if _, err = w.Write(t.Context(), batch); err == nil {
		_, err = w.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}
