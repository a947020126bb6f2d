// Package sinktest is the conformance suite of sink.Sink. It tests the promises of every sink under
// several writers on one shard, lost answers, stale and lost checkpoints, batches cut anywhere, and
// crashes. The sink must hold each record's effect exactly once and in order, and each commit must
// hold the reader's state at its end.
package sinktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Target is the place to which the sinks under test write.
type Target interface {
	// NewSink returns a sink in the state that a newly started process gives it. All sinks of a
	// target write to the same place, and several are in use at once.
	NewSink() (sink.Sink, error)
	// Records returns the shard's records with committed effects, in order. A record with two
	// effects appears twice. Position, PartitionKey and Data are compared.
	Records(ctx context.Context, shard sink.Shard) ([]runnel.Record, error)
}

// Crasher is a Target that can lose all data that is not durable, as a machine does that loses
// power. Sinks made before the crash are not used again.
type Crasher interface {
	Target
	// Crash loses the data that is not durable.
	Crash() error
}

// Run tests the sinks of a target; open returns a new, empty one. The random parts take their
// number of seeds from RUNNEL_SOAK, a multiplier (default 1), and print the seed on failure.
func Run(t *testing.T, open func(t *testing.T) Target) {
	for name, test := range map[string]func(*testing.T, Target){
		"in order":          testInOrder,
		"nothing written":   testNothing,
		"shard end":         testEnd,
		"two writers":       testTwoWriters,
		"two ends":          testTwoEnds,
		"stale checkpoints": testStaleCheckpoints,
		"disorder refused":  testDisorder,
		"closed writer":     testClosed,
		"several shards":    testShards,
		"parallel writers":  testParallel,
		"states":            testStates,
		"adopted states":    testAdoptedStates,
		"parents' states":   testParentStates,
		"no records":        testProgress,
		"gaps":              testGaps,
		"arrivals":          testArrivals,
		"ahead":             testAhead,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	t.Run("random", func(t *testing.T) {
		const seeds = 40
		var total Stats
		for seed := range uint64(seeds * Soak()) {
			stats, err := Simulate(t.Context(), open(t), Plan{Seed: seed})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			total.add(stats)
		}
		t.Logf("soak: %d seeds; %+v", seeds*Soak(), total)
		if total.Moved == 0 || total.Lost == 0 || total.Stale == 0 || total.Doubles == 0 ||
			total.Empty == 0 || total.Inherited == 0 {
			t.Error("the simulation has not met what it is for")
		}
	})
}

// Soak returns the multiplier of random tests, from RUNNEL_SOAK.
func Soak() int {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

func testInOrder(t *testing.T, target Target) {
	b := newBench(t, target, 40)
	w := b.open(sink.Committed{})
	b.wantEnd(w.Committed(), runnel.Start())
	b.write(w, 0, 10)
	b.write(w, 10, 11)
	row := b.flush(w)
	b.wantEnd(row, b.records[10].Position)
	b.wantRecords(11)
	b.write(w, 11, 25)
	row = b.flush(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	next := b.open(row)
	b.wantEnd(next.Committed(), b.records[24].Position)
	b.write(next, 25, 40)
	b.flush(next)
	b.wantRecords(40)
}

func testNothing(t *testing.T, target Target) {
	b := newBench(t, target, 3)
	w := b.open(sink.Committed{})
	c, err := w.Write(t.Context(), sink.Batch{Through: runnel.Start()})
	if err != nil {
		t.Fatal(err)
	}
	b.wantEnd(c, runnel.Start())
	b.wantEnd(b.flush(w), runnel.Start())
	b.wantRecords(0)
	// Filtered records advance the position; the next batch goes on from there.
	if _, err := w.Write(t.Context(), sink.Batch{Through: b.records[0].Position}); err != nil {
		t.Fatal(err)
	}
	b.records = b.records[1:]
	b.write(w, 0, 2)
	if _, err := w.Write(t.Context(), sink.Batch{Through: b.records[1].Position}); err != nil {
		t.Fatal(err)
	}
	b.wantEnd(b.flush(w), b.records[1].Position)
	b.wantRecords(2)
}

func testEnd(t *testing.T, target Target) {
	b := newBench(t, target, 5)
	w := b.open(sink.Committed{})
	b.write(w, 0, 5)
	row, err := w.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.wantEnd(row, runnel.End())
	b.wantRecords(5)
	if row, err = w.End(t.Context()); err != nil || row.End != runnel.End() {
		t.Fatalf("the second end: %v, %v", row, err)
	}
	for _, row := range []sink.Committed{row, {}, {End: b.records[2].Position}} {
		again := b.open(row)
		b.wantEnd(again.Committed(), runnel.End())
		if c, err := again.End(t.Context()); err != nil || c.End != runnel.End() {
			t.Fatalf("an end after the end: %v, %v", c, err)
		}
		if c, err := again.Flush(t.Context()); err != nil || c.End != runnel.End() {
			t.Fatalf("a flush after the end: %v, %v", c, err)
		}
		_, err := again.Write(t.Context(), sink.Batch{
			Records: b.records[:1], Through: b.records[0].Position,
		})
		if !errors.Is(err, sink.ErrOutOfOrder) {
			t.Fatalf("a write after the end: %v, want ErrOrder", err)
		}
	}
	b.wantRecords(5)

	b.shard.ID = "shardId-000000000001" // without a record
	w = b.open(sink.Committed{})
	if c, err := w.End(t.Context()); err != nil || c.End != runnel.End() {
		t.Fatalf("the end of an empty shard: %v, %v", c, err)
	}
	b.wantEnd(b.open(sink.Committed{}).Committed(), runnel.End())
	b.wantRecords(0)
}

func testTwoWriters(t *testing.T, target Target) {
	b := newBench(t, target, 30)
	first, second := b.open(sink.Committed{}), b.open(sink.Committed{})
	row, err := b.commit(second, 0, 7)
	if err != nil {
		t.Fatal(err)
	}
	b.wantEnd(row, b.records[6].Position)
	_, err = b.commit(first, 0, 10)
	b.wantMoved(first, err, b.records[6].Position)
	b.wantRecords(7)

	b.write(first, 7, 20) // it remains usable, and now the other one is behind
	b.flush(first)
	b.write(first, 20, 22)
	b.flush(first)
	_, err = b.commit(second, 7, 8)
	b.wantMoved(second, err, b.records[21].Position)
	if c, err := second.Flush(t.Context()); err != nil || c.End != b.records[21].Position {
		t.Fatalf("a flush after moving: %v, %v", c, err)
	}
	b.wantRecords(22)

	third := b.open(row) // a checkpoint of long ago
	b.wantEnd(third.Committed(), b.records[21].Position)
	b.write(third, 22, 30)
	b.flush(third)
	b.wantRecords(30)
}

func testTwoEnds(t *testing.T, target Target) {
	b := newBench(t, target, 6)
	first, second, third := b.open(sink.Committed{}), b.open(sink.Committed{}),
		b.open(sink.Committed{})
	b.write(second, 0, 4)
	b.flush(second)
	_, err := b.commit(first, 0, 6)
	b.wantMoved(first, err, b.records[3].Position)
	b.wantRecords(4)
	b.write(first, 4, 6)
	if _, err := first.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = third.End(t.Context())
	b.wantMoved(third, err, runnel.End())
	_, err = b.commit(second, 4, 5)
	b.wantMoved(second, err, runnel.End())
	b.wantRecords(6)
}

func testStaleCheckpoints(t *testing.T, target Target) {
	b := newBench(t, target, 12)
	w := b.open(sink.Committed{})
	var rows []sink.Committed
	for i := range 6 {
		b.write(w, 2*i, 2*i+2)
		rows = append(rows, b.flush(w))
	}
	rows = append(rows, sink.Committed{}, sink.Committed{End: rows[3].End, Token: rows[1].Token},
		sink.Committed{End: rows[1].End, Token: rows[3].Token},
		sink.Committed{Token: rows[5].Token}, sink.Committed{End: rows[5].End},
		sink.Committed{End: b.records[4].Position, Token: "a token of something else"},
		sink.Committed{End: runnel.Position{Sequence: runnel.TrimHorizon}},
		sink.Committed{End: runnel.Position{Sequence: runnel.Latest}})
	for _, row := range rows {
		b.wantEnd(b.open(row).Committed(), b.records[11].Position)
	}
	b.wantRecords(12)
}

func testDisorder(t *testing.T, target Target) {
	b := newBench(t, target, 9)
	swapped := []runnel.Record{b.records[4], b.records[3]}
	for name, call := range map[string]func(w sink.Writer) error{
		"not after what was written": func(w sink.Writer) error {
			_, err := w.Write(t.Context(), sink.Batch{
				Records: b.records[1:4], Through: b.records[3].Position,
			})
			return err
		},
		"out of order": func(w sink.Writer) error {
			_, err := w.Write(t.Context(), sink.Batch{
				Records: swapped, Through: b.records[4].Position,
			})
			return err
		},
		"beyond through": func(w sink.Writer) error {
			_, err := w.Write(t.Context(), sink.Batch{
				Records: b.records[3:5], Through: b.records[3].Position,
			})
			return err
		},
		"of another shard": func(w sink.Writer) error {
			record := b.records[5]
			record.ShardID = "shardId-000000000009"
			_, err := w.Write(t.Context(), sink.Batch{
				Records: []runnel.Record{record}, Through: record.Position,
			})
			return err
		},
	} {
		w := b.open(sink.Committed{})
		if w.Committed().End == runnel.Start() {
			b.write(w, 0, 2)
			b.flush(w)
		}
		if err := call(w); !errors.Is(err, sink.ErrOutOfOrder) {
			t.Errorf("%s: %v, want ErrOrder", name, err)
		}
		if _, err := w.Flush(t.Context()); err == nil {
			t.Errorf("%s: the writer is usable after it", name)
		}
	}
	b.wantRecords(2)
}

func testClosed(t *testing.T, target Target) {
	b := newBench(t, target, 4)
	w := b.open(sink.Committed{})
	b.write(w, 0, 1)
	before := b.flush(w).End
	b.write(w, 1, 2)
	committed := w.Committed().End // a sink may commit at once
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Flush(t.Context()); err == nil {
		t.Error("a closed writer flushed")
	}
	if _, err := w.Write(t.Context(), sink.Batch{
		Records: b.records[2:3], Through: b.records[2].Position,
	}); err == nil {
		t.Error("a closed writer wrote")
	}
	if _, err := w.End(t.Context()); err == nil {
		t.Error("a closed writer ended the shard")
	}
	if committed == before {
		b.wantRecords(1)
	} else {
		b.wantRecords(2)
	}
}

func testShards(t *testing.T, target Target) {
	for seed := range uint64(10) {
		if _, err := Simulate(t.Context(), target, Plan{
			Seed: seed, Writers: 1, Records: 30, Calm: true, Stream: fmt.Sprintf("calm-%d", seed),
		}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// testParallel has writers race for one shard. Each cuts the records into batches differently.
func testParallel(t *testing.T, target Target) {
	b := newBench(t, target, 400)
	var group sync.WaitGroup
	for n := range 4 {
		s, err := target.NewSink()
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			w, err := s.Open(t.Context(), b.shard)
			if err == nil {
				err = b.race(w, n+1)
			}
			if err != nil {
				t.Errorf("writer %d: %v", n, err)
			}
		})
	}
	group.Wait()
	b.wantRecords(400)
}

// race writes the records in batches of the given size until the shard's end is committed.
func (b *bench) race(w sink.Writer, batch int) error {
	deadline := time.Now().Add(time.Minute)
	at := w.Committed().End
	for at != runnel.End() && time.Now().Before(deadline) {
		rest := after(b.records, at)
		records := rest[:min(batch, len(rest))]
		var err error
		if len(records) == 0 {
			_, err = w.End(b.Context())
			at = runnel.End()
		} else {
			at = records[len(records)-1].Position
			_, err = w.Write(b.Context(), sink.Batch{Records: records, Through: at})
			if err == nil {
				_, err = w.Flush(b.Context())
			}
		}
		if moved := new(sink.MovedError); errors.As(err, &moved) {
			at = moved.To.End
		} else if err != nil {
			return err
		}
	}
	return nil
}

// after returns the records behind a position.
func after(records []runnel.Record, at runnel.Position) []runnel.Record {
	for i := range records {
		if at.Less(records[i].Position) {
			return records[i:]
		}
	}
	return nil
}
