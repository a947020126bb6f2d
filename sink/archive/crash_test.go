package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/sinktest"
)

// story is a small life of an archive: a shard of three links and its end, and its child. Its
// second and fourth links hold the state's change.
type story struct {
	rows map[runnel.ShardID]sink.Committed // the acknowledged commits
}

var created = time.UnixMilli(1_700_000_000_123).UTC()

const parent, child runnel.ShardID = "shardId-000000000000", "shardId-000000000001"

func (s *story) records(id runnel.ShardID) []runnel.Record {
	var records []runnel.Record
	for n := range 6 {
		records = append(records, runnel.Record{
			PartitionKey: "key", ShardID: id, Data: fmt.Appendf(nil, `{"n":%d}`, n),
			Position:    runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(97 + n))},
			ArrivalTime: created.Add(time.Duration(n) * time.Second),
		})
	}
	return records
}

// tell continues the story from the end of the archive, to its own end or the first error.
func (s *story) tell(ctx context.Context, fsys vfs.FS) error {
	made, err := archive.New(archive.Config{Store: archive.NewDirStoreOn(fsys, "a/to"), Whole: 2})
	if err != nil {
		return err
	}
	for _, id := range []runnel.ShardID{parent, child} {
		if err := s.shard(ctx, made, id); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) shard(ctx context.Context, made sink.Sink, id runnel.ShardID) error {
	shard := sink.Shard{
		Stream: "orders", Created: created, ID: id,
		Checkpoint: s.rows[id].End, Token: s.rows[id].Token,
	}
	if id == child {
		shard.Parents = []runnel.ShardID{parent}
	}
	w, err := made.Open(ctx, shard)
	if err != nil {
		return err
	}
	found := w.Committed()
	if found.End.Less(s.rows[id].End) {
		return fmt.Errorf("%w: %s", errForgotten, s.rows[id].End)
	}
	if found.End != runnel.Start() && !bytes.Equal(found.State, stateOf(s.knows(id, found.End))) {
		return fmt.Errorf("the state at %s is %x", found.End, found.State)
	}
	if found.End == runnel.Start() && id == child &&
		(len(found.Parents) != 1 || !bytes.Equal(found.Parents[0], stateOf(s.knows(parent, runnel.End())))) {
		return fmt.Errorf("the parent's state is %x", found.Parents)
	}
	reader := &knower{filter: s.knows(id, found.End), based: found.End != runnel.Start()}
	reader.filter.Track()
	for _, record := range s.records(id) {
		if !w.Committed().End.Less(record.Position) {
			continue
		}
		through := record.Position
		batch := sink.Batch{Through: through}
		s.meet(reader.filter, record)
		reader.finish(&batch)
		if through.Sequence != "99" && through.Sequence != "100" { // 99 and 100 are doubles
			batch.Records = []runnel.Record{record}
		}
		if _, err = w.Write(ctx, batch); err != nil {
			return err
		}
		if n := record.Position.Sequence; n == "98" || n == "100" {
			if s.rows[id], err = w.Flush(ctx); err != nil {
				return err
			}
		}
	}
	end := sink.Batch{Through: w.Committed().End}
	if end.Through != runnel.End() {
		end.Through = s.records(id)[5].Position
	}
	reader.finish(&end)
	if _, err = w.Write(ctx, end); err != nil {
		return err
	}
	committed, err := w.End(ctx)
	if err == nil {
		s.rows[id] = committed
	}
	return err
}

// always returns the state of a reader that reads no further.
func always(state string) sink.State { return func() []byte { return []byte(state) } }

// meet has a reader meet a record, which is a unit.
func (s *story) meet(filter *aggregate.Filter, r runnel.Record) {
	n := uint64(len(r.ShardID)) + uint64(r.ArrivalTime.Sub(created)/time.Second)
	unit := aggregate.Unit{Producer: aggregate.ProducerID{r.ShardID[len(r.ShardID)-1]}, Number: n, Low: n}
	filter.Admit(unit, aggregate.LaneOf(r.PartitionKey, ""), r.ArrivalTime)
}

// knows returns the filter of the story's reader at a position.
func (s *story) knows(id runnel.ShardID, at runnel.Position) *aggregate.Filter {
	filter := new(aggregate.Filter)
	if id == child {
		filter = aggregate.Union(s.knows(parent, runnel.End()))
	}
	for _, record := range s.records(id) {
		if !at.Less(record.Position) {
			s.meet(filter, record)
		}
	}
	return filter
}

func stateOf(filter *aggregate.Filter) []byte {
	state, _ := filter.MarshalBinary()
	return state
}

var errForgotten = errors.New("an acknowledged commit is gone")

// TestEveryCrash cuts the power before and after every single operation on the files, then finishes
// the story on the remaining files.
func TestEveryCrash(t *testing.T) {
	for at := 1; ; at++ {
		cut := false
		for seed := range uint64(6 * sinktest.Soak()) {
			for _, after := range []bool{false, true} {
				var err error
				if cut, err = crashAt(t.Context(), at, after, seed); err != nil {
					t.Fatalf("operation %d (done: %v), seed %d: %v", at, after, seed, err)
				}
			}
		}
		if !cut {
			seeds := 6 * sinktest.Soak()
			t.Logf("soak: %d seeds, %d crashes", seeds, seeds*2*(at-1))
			if at < 50 {
				t.Error("the story is too short")
			}
			return
		}
	}
}

// crashAt runs the story with a power cut at an operation; cut is false if there was none.
func crashAt(ctx context.Context, at int, after bool, seed uint64) (cut bool, err error) {
	disk := vfs.NewCrashable()
	count := 0
	failing := vfs.Inject(disk, func(vfs.Op) error {
		if count++; count > at || count == at && !after {
			cut = true
			return errInjected
		}
		return nil
	})
	s := &story{rows: map[runnel.ShardID]sink.Committed{}}
	if err := s.tell(ctx, failing); err != nil && !errors.Is(err, errInjected) {
		return cut, err
	}
	disk = disk.Crash(rand.New(rand.NewPCG(seed, uint64(at))))
	if err := s.tell(ctx, disk); err != nil {
		return cut, fmt.Errorf("after the crash: %w", err)
	}
	return cut, s.check(ctx, disk)
}

func (s *story) check(ctx context.Context, disk *vfs.Mem) error {
	reader := archive.NewReader(archive.NewDirStoreOn(disk, "a/to"))
	report, err := reader.Verify(ctx, archive.VerifyOptions{})
	if err != nil {
		return err
	}
	if !report.OK() || report.Shards != 2 || report.Ended != 2 || report.Others.Count > 0 {
		return fmt.Errorf("verify: %+v", report)
	}
	stream := archive.Stream{Name: "orders", Created: created}
	want := append(s.records(parent), s.records(child)...)
	want = slices.DeleteFunc(want, func(r runnel.Record) bool {
		return r.Position.Sequence == "99" || r.Position.Sequence == "100"
	})
	for record, err := range reader.All(ctx, stream) {
		if err != nil {
			return err
		}
		if len(want) == 0 || !equal(record, want[0]) {
			return fmt.Errorf("%+v stands where %d records are to come", record, len(want))
		}
		want = want[1:]
	}
	if len(want) > 0 {
		return fmt.Errorf("%d records are missing", len(want))
	}
	for _, id := range []runnel.ShardID{parent, child} {
		changes := 0
		for link, err := range reader.Links(ctx, archive.Chain{Stream: stream, ShardID: id}) {
			if err != nil {
				return err
			}
			if link.Change != nil {
				changes++
			}
		}
		if changes == 0 {
			return errors.New("no link holds a change")
		}
		names, err := disk.List("a/to/" + stream.String() + "/" + string(id))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, ".") }) {
			return fmt.Errorf("a temporary file is left: %v", names)
		}
	}
	return nil
}

func equal(a, b runnel.Record) bool {
	return a.PartitionKey == b.PartitionKey && a.ExplicitHashKey == b.ExplicitHashKey &&
		string(a.Data) == string(b.Data) && a.ShardID == b.ShardID && a.Position == b.Position &&
		a.ArrivalTime.Equal(b.ArrivalTime)
}
