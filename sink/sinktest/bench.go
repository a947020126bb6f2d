package sinktest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// bench is the fixture of the tests: a shard, its records, and a failing test.
type bench struct {
	*testing.T
	target  Target
	shard   sink.Shard
	records []runnel.Record
}

func newBench(t *testing.T, target Target, count int) *bench {
	rng := rand.New(rand.NewPCG(1, 2))
	source := newSource(rng, "shardId-000000000000")
	b := &bench{T: t, target: target, shard: source.shard}
	for n := range count {
		source.put(rng, created.Add(time.Duration(n)*time.Millisecond), delivered)
		b.records = append(b.records, source.items[n].record)
	}
	return b
}

func (b *bench) open(row sink.Committed) sink.Writer {
	b.Helper()
	s, err := b.target.NewSink()
	if err != nil {
		b.Fatal(err)
	}
	shard := b.shard
	shard.Checkpoint, shard.Token = row.End, row.Token
	w, err := s.Open(b.Context(), shard)
	for open := new(sink.ParentError); errors.As(err, &open); {
		b.endParent(s, open.Parent)
		w, err = s.Open(b.Context(), shard)
	}
	if err != nil {
		b.Fatalf("open: %v", err)
	}
	return w
}

// endParent ends a shard of which the sink knows nothing, as a worker does if the stream no longer
// has it.
func (b *bench) endParent(s sink.Sink, id runnel.ShardID) {
	b.Helper()
	shard := b.shard
	shard.ID, shard.Parents = id, nil
	w, err := s.Open(b.Context(), shard)
	if err != nil {
		b.Fatalf("open the parent: %v", err)
	}
	b.wantEnd(w.Committed(), runnel.Start())
	b.end(w)
}

func (b *bench) write(w sink.Writer, from, to int) sink.Committed {
	b.Helper()
	c, err := w.Write(b.Context(), sink.Batch{
		Records: b.records[from:to], Through: b.records[to-1].Position,
	})
	if err != nil {
		b.Fatalf("write [%d,%d): %v", from, to, err)
	}
	return c
}

// commit writes and flushes; a sink may commit with either.
func (b *bench) commit(w sink.Writer, from, to int) (sink.Committed, error) {
	c, err := w.Write(b.Context(), sink.Batch{
		Records: b.records[from:to], Through: b.records[to-1].Position,
	})
	if err == nil {
		c, err = w.Flush(b.Context())
	}
	return c, err
}

func (b *bench) flush(w sink.Writer) sink.Committed {
	b.Helper()
	c, err := w.Flush(b.Context())
	if err != nil {
		b.Fatalf("flush: %v", err)
	}
	if !c.Equal(w.Committed()) {
		b.Fatalf("flush returned %v, the writer knows %v", c, w.Committed())
	}
	return c
}

func (b *bench) wantEnd(got sink.Committed, want runnel.Position) {
	b.Helper()
	if got.End != want {
		b.Fatalf("committed up to %s, want %s", got.End, want)
	}
}

// wantMoved checks that the writer found another writer's commit, and at which position.
func (b *bench) wantMoved(w sink.Writer, err error, want runnel.Position) {
	b.Helper()
	moved := new(sink.MovedError)
	if !errors.As(err, &moved) {
		b.Fatalf("got error %v, want a MovedError", err)
	}
	b.wantEnd(moved.To, want)
	b.wantEnd(w.Committed(), want)
}

// wantRecords checks that the sink holds the first n records and no others.
func (b *bench) wantRecords(n int) {
	b.Helper()
	var want []item
	for _, record := range b.records[:n] {
		want = append(want, item{record: record})
	}
	got, err := b.target.Records(b.Context(), b.shard)
	if err == nil {
		err = compare(got, want)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// read writes the records [from, to). It delivers the records up to kept; the reader has dropped
// the others. state is the reader's state at the end.
func (b *bench) read(w sink.Writer, from, kept, to int, state string) sink.Committed {
	b.Helper()
	c, err := w.Write(b.Context(), sink.Batch{
		Records: b.records[from:kept], Through: b.records[to-1].Position, State: always(state),
	})
	if err != nil {
		b.Fatalf("write [%d,%d): %v", from, to, err)
	}
	return c
}

// always returns the state of a reader that reads no further.
func always(state string) func() []byte { return func() []byte { return []byte(state) } }

// wantState checks a commit. A writer may leave out a state that the caller supplied.
func (b *bench) wantState(got sink.Committed, end runnel.Position, state string) {
	b.Helper()
	b.wantEnd(got, end)
	if got.State != nil && string(got.State) != state || got.Parents != nil {
		b.Fatalf("the commit up to %s has the state %q and the parents' %q, want %q", end,
			got.State, got.Parents, state)
	}
}

// wantFound checks the commit that a writer has found, including its state.
func (b *bench) wantFound(got sink.Committed, end runnel.Position, state string) {
	b.Helper()
	b.wantState(got, end, state)
	if string(got.State) != state {
		b.Fatalf("the state that was found at %s is %q, want %q", end, got.State, state)
	}
}

func (b *bench) end(w sink.Writer) sink.Committed {
	b.Helper()
	c, err := w.End(b.Context())
	if err != nil {
		b.Fatalf("end: %v", err)
	}
	b.wantEnd(c, runnel.End())
	if !c.Equal(w.Committed()) {
		b.Fatalf("end returned %v, the writer knows %v", c, w.Committed())
	}
	return c
}

// compare checks the sink's records against the expected ones: every item once and in order, except
// for items that a filter drops or may drop.
func compare(got []runnel.Record, want []item) error {
	n := 0
	for _, item := range want {
		if n < len(got) && got[n].Position == item.record.Position && item.filter != dropped {
			if got[n].PartitionKey != item.record.PartitionKey ||
				!bytes.Equal(got[n].Data, item.record.Data) {
				return fmt.Errorf("record %d is %q %q, want %q %q", n, got[n].PartitionKey,
					got[n].Data, item.record.PartitionKey, item.record.Data)
			}
			n++
		} else if item.filter == delivered {
			at := "nothing"
			if n < len(got) {
				at = got[n].Position.String()
			}
			return fmt.Errorf("record %d is missing: it is at %s, and %s stands there", n,
				item.record.Position, at)
		}
	}
	if n < len(got) {
		return fmt.Errorf("record %d, at %s, is one too many", n, got[n].Position)
	}
	return nil
}
