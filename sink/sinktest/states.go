package sinktest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// testStates checks that a sink commits each state with its own position, and with no other.
func testStates(t *testing.T, target Target) {
	b := newBench(t, target, 12)
	ends := map[runnel.Position]string{}
	w := b.open(sink.Committed{})
	var rows []sink.Committed
	for n, state := range []string{"", "one", "two", "\x00\xff", "", "five"} {
		ends[b.records[2*n].Position] = state
		c := b.read(w, 2*n, 2*n+1, 2*n+1, state)
		b.wantState(c, c.End, ends[c.End]) // of an earlier batch, as long as this one waits
		ends[b.records[2*n+1].Position] = state + "'"
		c = b.read(w, 2*n+1, 2*n+2, 2*n+2, state+"'")
		b.wantState(c, c.End, ends[c.End])
		row := b.flush(w)
		b.wantState(row, b.records[2*n+1].Position, state+"'")
		b.wantFound(b.open(row).Committed(), row.End, state+"'")
		rows = append(rows, row)
	}
	for _, row := range append(rows, sink.Committed{}) { // wherever the lease row points
		b.wantFound(b.open(row).Committed(), rows[5].End, "five'")
	}
	// A state without a commit is lost.
	unused := b.open(sink.Committed{})
	if _, err := unused.Write(t.Context(), sink.Batch{
		Through: rows[5].End, State: always("of a reader that dies"),
	}); err != nil {
		t.Fatal(err)
	}
	if err := unused.Close(); err != nil {
		t.Fatal(err)
	}
	last := b.open(rows[0])
	b.wantState(b.end(last), runnel.End(), "five'") // no new read, so the same state
	b.wantFound(b.open(rows[0]).Committed(), runnel.End(), "five'")
	b.wantRecords(12)
}

// testAdoptedStates has a writer that comes too late adopt the state of the other writer's reader.
func testAdoptedStates(t *testing.T, target Target) {
	b := newBench(t, target, 20)
	first, second := b.open(sink.Committed{}), b.open(sink.Committed{})
	b.read(second, 0, 4, 5, "second at 5")
	row := b.flush(second)
	late := func(w sink.Writer, from, to int, end runnel.Position, state string) {
		t.Helper()
		_, err := w.Write(t.Context(), sink.Batch{
			Records: b.records[from:to], Through: b.records[to-1].Position,
			State: always("of one that comes too late"),
		})
		if err == nil {
			_, err = w.Flush(t.Context())
		}
		b.wantMoved(w, err, end)
		b.wantFound(w.Committed(), end, state)
	}
	late(first, 0, 8, b.records[4].Position, "second at 5")
	b.read(first, 5, 9, 9, "first at 9")
	b.flush(first)
	b.read(first, 9, 9, 12, "first at 12") // nothing but doubles
	b.flush(first)
	late(second, 5, 6, b.records[11].Position, "first at 12")
	b.read(second, 12, 14, 14, "second at 14")
	b.wantState(b.flush(second), b.records[13].Position, "second at 14")

	third := b.open(row)
	b.read(third, 14, 15, 15, "third at 15")
	b.wantState(b.end(third), runnel.End(), "third at 15")
	late(first, 12, 13, runnel.End(), "third at 15")
	_, err := second.End(t.Context())
	b.wantMoved(second, err, runnel.End())
	b.wantFound(second.Committed(), runnel.End(), "third at 15")
	b.records = slices.Delete(b.records, 9, 12)
	b.records = slices.Delete(b.records, 4, 5)
	b.wantRecords(11)
}

// testParentStates checks that a shard begins with the states of its parents' readers at their
// ends.
func testParentStates(t *testing.T, target Target) {
	const low, high, merged, last = runnel.ShardID("shardId-000000000001"),
		runnel.ShardID("shardId-000000000002"), runnel.ShardID("shardId-000000000003"),
		runnel.ShardID("shardId-000000000004")
	b := newBench(t, target, 4)
	open := func(id runnel.ShardID, parents ...runnel.ShardID) sink.Writer {
		t.Helper()
		b.shard.ID, b.shard.Parents = id, parents
		return b.open(sink.Committed{})
	}
	want := func(w sink.Writer, states ...[]byte) {
		t.Helper()
		c := w.Committed()
		if c.End != runnel.Start() || len(c.State) > 0 ||
			!slices.EqualFunc(c.Parents, states, bytes.Equal) {
			t.Fatalf("at its start a shard has %q and of its parents %q, want %q", c.State,
				c.Parents, states)
		}
	}
	for _, id := range []runnel.ShardID{low, high} {
		w := open(id)
		want(w)
		for n := range b.records {
			b.records[n].ShardID = id
		}
		b.read(w, 0, 1, 2, "early")
		b.flush(w)
		b.read(w, 2, 3, 4, "end of "+string(id))
		b.end(w)
	}
	ofLow, ofHigh := []byte("end of "+string(low)), []byte("end of "+string(high))
	want(open(merged, low, high), ofLow, ofHigh)
	want(open(merged, high, low), ofHigh, ofLow)
	want(open(last, "shardId-000000000009", high), nil, ofHigh) // one parent has no archive
	late := open(merged, high, low)
	w := open(merged, high, low)
	want(w, ofHigh, ofLow)

	// There is no record and no progress, but the end hands on the state that the reader has
	// merged.
	if _, err := w.Write(t.Context(), sink.Batch{State: always("union")}); err != nil {
		t.Fatal(err)
	}
	want(w, ofHigh, ofLow)
	b.flush(w)
	want(w, ofHigh, ofLow)
	b.wantState(b.end(w), runnel.End(), "union")
	_, err := late.End(t.Context())
	b.wantMoved(late, err, runnel.End())
	b.wantFound(late.Committed(), runnel.End(), "union")
	want(open(last, merged), []byte("union"))
}

// testProgress checks that records that the reader dropped count as done.
func testProgress(t *testing.T, target Target) {
	b := newBench(t, target, 8)
	w := b.open(sink.Committed{})
	b.read(w, 0, 0, 2, "dropped 2")
	row := b.flush(w)
	b.wantState(row, b.records[1].Position, "dropped 2")
	b.wantFound(b.open(sink.Committed{}).Committed(), row.End, "dropped 2")
	b.read(w, 2, 2, 3, "dropped 3")
	b.read(w, 3, 4, 6, "kept 1")
	b.wantState(b.flush(w), b.records[5].Position, "kept 1")
	late := b.open(row)
	b.read(w, 6, 6, 7, "dropped 7")
	b.flush(w)
	_, err := late.End(t.Context())
	b.wantMoved(late, err, b.records[6].Position)
	b.wantFound(late.Committed(), b.records[6].Position, "dropped 7")
	b.read(late, 7, 7, 8, "dropped all")
	b.wantState(b.end(late), runnel.End(), "dropped all")
	b.records = b.records[3:4]
	b.wantRecords(1)
}
