package rollup

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
)

const eventsFile = "gh-events-20150101.ndjson.gz"

// readEvents returns the real events as records.
func readEvents(tb testing.TB) (records []runnel.Record) {
	tb.Helper()
	dir := os.Getenv("RUNNEL_DATA")
	if dir == "" {
		tb.Skip("RUNNEL_DATA is not set: it names the folder of " + eventsFile)
	}
	file, err := os.Open(filepath.Join(dir, eventsFile))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		records = append(records, runnel.Record{
			Data:    []byte(lines.Text()),
			ShardID: "shardId-000000000000",
			Position: runnel.Position{
				Sequence: runnel.SequenceNumber(fmt.Sprint(1 + len(records))),
			},
			ArrivalTime: time.UnixMilli(1_420_070_400_000),
		})
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return records
}

var eventsDefinition = Definition{
	Keys:   []Field{{Pointer: "/type"}},
	Bucket: time.Minute,
	Time:   "/created_at",
	Columns: []Column{
		{Op: Count},
		{Op: Sum, Field: Field{Pointer: "/actor_id", Type: Int}},
		{Op: Max, Field: Field{Pointer: "/actor_id", Type: Int}},
		{Op: Last, Field: Field{Pointer: "/repo"}},
	},
}

// TestEvents compares the rows of real events, cut into batches of 1,000, with those of a plain
// program.
func TestEvents(t *testing.T) {
	type key struct{ kind, minute string }
	type total struct {
		count, sum, largest int64
		last                string
		lastTime            time.Time
	}
	want := map[key]*total{}
	got := map[key]*Row{}
	f := newFolder(t, eventsDefinition)
	records := readEvents(t)
	for i := range records {
		var event struct {
			Type, Repo string
			CreatedAt  time.Time `json:"created_at"`
			ActorID    int64     `json:"actor_id"`
		}
		if err := json.Unmarshal(records[i].Data, &event); err != nil {
			t.Fatal(err)
		}
		k := key{event.Type, event.CreatedAt.Format("2006-01-02T15:04")}
		if want[k] == nil {
			want[k] = &total{}
		}
		w := want[k]
		w.count++
		w.sum += event.ActorID
		w.largest = max(w.largest, event.ActorID)
		if !event.CreatedAt.Before(w.lastTime) { // all arrive at one time, in this order
			w.last, w.lastTime = event.Repo, event.CreatedAt
		}
		add(t, f, &records[i])
		if i%1000 < 999 && i < len(records)-1 {
			continue
		}
		rows := f.Rows()
		for j := range rows {
			k := key{rows[j].Keys[0].Text, rows[j].Bucket.Format("2006-01-02T15:04")}
			if got[k] == nil {
				got[k] = &rows[j]
			} else if err := eventsDefinition.Merge(got[k], &rows[j]); err != nil {
				t.Fatal(err)
			}
		}
		f.Reset()
	}
	if len(records) != 23_402 || len(want) != 1_867 || len(got) != len(want) {
		t.Errorf("%d records in %d rows, want 23402 in %d, which are 1867", len(records), len(got), len(want))
	}
	for k, w := range want {
		values := []Value{{Int: w.count}, {Int: w.sum}, {Int: w.largest}, {Text: w.last}}
		if got[k] == nil || fmt.Sprint(got[k].Values) != fmt.Sprint(values) {
			t.Errorf("%v: %v, want %v", k, got[k], values)
		}
	}
}

func BenchmarkAddEvents(b *testing.B) {
	records := readEvents(b)
	f, err := NewFolder(eventsDefinition)
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	for i := range records {
		size += len(records[i].Data)
	}
	b.SetBytes(int64(size / len(records)))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if err := f.Add(&records[n%len(records)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(f.Len()), "rows")
}
