package rollup

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/sink/sinktest"
)

// simDefinition has a column of each kind.
var simDefinition = Definition{
	Keys: []Field{{Pointer: "/k"}},
	Columns: []Column{
		{Op: Count},
		{Op: Sum, Field: Field{Pointer: "/v", Type: Int}},
		{Op: Min, Field: Field{Pointer: "/v", Type: Int}},
		{Op: Max, Field: Field{Pointer: "/v", Type: Int}},
		{Op: Last, Field: Field{Pointer: "/v", Type: Int}},
	},
}.WithDefaults()

// world is a stream, the processes that read it and the database.
//
// A shard may be read by several readers at once: only one of them is its owner, and the others
// were paused when they lost the shard. A child's readers begin when a reader has come to the end
// of each parent; the parents' other readers live on. The scheduler runs one call of the database
// at a time, in any order. A call may be paused, may fail before or after it takes effect, may take
// effect after its failure, and a process may die in it.
type world struct {
	random *rand.Rand
	store  *model
	shards []*simShard
	procs  []*Rows
	step   int
	begun  int // readers so far
	late   []*call
	stats  simStats

	mu      sync.Mutex
	waiting []*call
	alive   int
}

type simShard struct {
	id          runnel.ShardID
	parents     []*simShard
	closed      bool
	records     []runnel.Record
	checkpoints []int // those that were ever written: numbers of records
	done        bool  // a reader came to the end
	readers     int
}

type simStats struct {
	calls, paused, lost, failed, late, deaths, stale, afterEnd, conflicts int
}

// reader is a reader of a shard, in a process.
type reader struct {
	number int
	shard  *simShard
	rows   *Rows
	random *rand.Rand
	die    context.CancelFunc
}

func newWorld(seed uint64, f flaw) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 1)),
		store:  &model{flaw: f, rows: map[string]StoredRow{}, bad: map[string]bool{}},
	}
	w.makeStream()
	for range 3 {
		w.procs = append(w.procs, w.process())
	}
	return w
}

// makeStream puts records into shards that split and merge.
func (w *world) makeStream() {
	open := []*simShard{w.shard(), w.shard()}
	for sequence := range 60 + w.random.IntN(120) {
		switch draw := w.random.IntN(30); {
		case draw == 0 && len(open) < 5:
			i := w.random.IntN(len(open))
			open[i].closed = true
			open = append(slices.Delete(slices.Clone(open), i, i+1), w.shard(open[i]), w.shard(open[i]))
		case draw == 1 && len(open) > 1:
			i := w.random.IntN(len(open) - 1)
			open[i].closed, open[i+1].closed = true, true
			open = append(slices.Delete(slices.Clone(open), i, i+2), w.shard(open[i], open[i+1]))
		}
		s := open[w.random.IntN(len(open))]
		data := fmt.Sprintf(`{"k":"%c","v":%d}`, 'a'+w.random.IntN(3), w.random.IntN(1000)-300)
		if w.random.IntN(25) == 0 {
			data = `{"k":"a"}`
		}
		s.records = append(s.records, runnel.Record{
			Data: []byte(data), ShardID: s.id,
			Position: runnel.Position{
				Sequence: runnel.SequenceNumber(fmt.Sprint(100 + sequence/2)), Sub: int64(sequence % 2),
			},
			ArrivalTime: time.UnixMilli(int64(1_700_000_000_000 + sequence/4)).UTC(),
		})
	}
}

func (w *world) shard(parents ...*simShard) *simShard {
	s := &simShard{
		id: runnel.ShardID(shardid.Of(uint32(len(w.shards)))), parents: parents,
		checkpoints: []int{0},
	}
	w.shards = append(w.shards, s)
	return s
}

// process returns the Rows of a new process. Its cache has room for all rows or for none: with
// evictions a run would depend on the order of goroutines.
func (w *world) process() *Rows {
	rows := newRows(RowsConfig{
		Definition: simDefinition, Kinesis: w, Stream: "s",
		Store: &simStore{w: w, seen: map[string]StoredRow{}}, CacheBytes: 1 + w.random.IntN(2)<<20, Parallel: 1000,
	}.withDefaults())
	rows.backoff = retry.Backoff{} // the scheduler has the pauses
	return rows
}

func (w *world) DescribeStreamSummary(
	context.Context, *kinesis.DescribeStreamSummaryInput, ...func(*kinesis.Options),
) (*kinesis.DescribeStreamSummaryOutput, error) {
	return nil, errLost
}

func (w *world) ListShards(
	context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	out := &kinesis.ListShardsOutput{}
	for _, s := range w.shards {
		shard := types.Shard{
			ShardId: aws.String(string(s.id)),
			HashKeyRange: &types.HashKeyRange{
				StartingHashKey: aws.String("0"), EndingHashKey: aws.String("1"),
			},
			SequenceNumberRange: &types.SequenceNumberRange{StartingSequenceNumber: aws.String("1")},
		}
		if len(s.parents) > 0 {
			shard.ParentShardId = aws.String(string(s.parents[0].id))
		}
		if len(s.parents) > 1 {
			shard.AdjacentParentShardId = aws.String(string(s.parents[1].id))
		}
		out.Shards = append(out.Shards, shard)
	}
	return out, nil
}

// run runs the world to its end, and returns the first fault of the database.
func (w *world) run(ctx context.Context) error {
	for ; ; w.step++ {
		synctest.Wait()
		w.begin(ctx)
		synctest.Wait()
		w.settleLate()
		c := w.next()
		switch {
		case c != nil:
			w.answer(c)
		case w.over():
			return w.check()
		}
	}
}

func (w *world) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alive == 0 && len(w.late) == 0 &&
		!slices.ContainsFunc(w.shards, func(s *simShard) bool { return !s.done })
}

// begin begins a reader of a shard that lacks one, and now and then another one. Two in one step
// would race for the locks of rows, and a seed would not repeat.
func (w *world) begin(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.shards {
		startable := !slices.ContainsFunc(s.parents, func(p *simShard) bool { return !p.done })
		if !startable || s.readers > 2 {
			continue
		}
		needed := s.readers == 0 && !s.done
		if !needed && (w.begun > 12*len(w.shards) || w.random.IntN(60) > 0) {
			continue
		}
		from := s.checkpoints[len(s.checkpoints)-1]
		if !needed && w.random.IntN(2) == 0 { // it read the checkpoint long ago
			from = s.checkpoints[w.random.IntN(len(s.checkpoints))]
			w.stats.stale++
		}
		if s.done {
			w.stats.afterEnd++
		}
		if w.random.IntN(20) == 0 {
			w.procs[w.random.IntN(len(w.procs))] = w.process() // one is restarted
		}
		w.begun++
		r := &reader{
			number: w.begun, shard: s, rows: w.procs[w.random.IntN(len(w.procs))],
			random: rand.New(rand.NewPCG(w.random.Uint64(), 2)),
		}
		ctx, die := context.WithCancel(context.WithValue(ctx, readerKey{}, r))
		r.die = die
		w.alive++
		s.readers++
		go w.read(ctx, r, from)
		return
	}
}

// read reads a shard to its end, in batches of any size.
func (w *world) read(ctx context.Context, r *reader, from int) {
	defer r.die()
	for ctx.Err() == nil {
		to := min(from+1+r.random.IntN(8), len(r.shard.records))
		if from == to {
			break
		}
		batch := &consumer.Batch{Stream: "s", ShardID: r.shard.id, Records: r.shard.records[from:to]}
		handle := r.rows.Handle
		if w.store.flaw == articleGuard {
			handle = r.guard
		}
		// It is a call of the scheduler: two readers that run at once would not repeat.
		if w.ask(ctx, "checkpoint", true, func() error { return r.shard.save(from) }) != nil {
			continue
		}
		if handle(ctx, batch) == nil && ctx.Err() == nil {
			from = to
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive--
	r.shard.readers--
	r.shard.done = r.shard.done || ctx.Err() == nil
}

// save saves a checkpoint, unless there is a later one.
func (s *simShard) save(at int) error {
	if at > s.checkpoints[len(s.checkpoints)-1] {
		s.checkpoints = append(s.checkpoints, at)
	}
	return nil
}

// next takes the call that is to be run; nil if there is none.
func (w *world) next() *call {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil
	}
	slices.SortFunc(w.waiting, func(a, b *call) int { // goroutines come in any order
		return cmp.Or(cmp.Compare(a.reader.number, b.reader.number), cmp.Compare(a.what, b.what))
	})
	var ready []int
	for i, c := range w.waiting {
		if c.after < 0 {
			c.after = 0
			if w.random.IntN(12) == 0 {
				c.after = w.step + w.random.IntN(300)
				w.stats.paused++
			}
		}
		if c.after <= w.step {
			ready = append(ready, i)
		}
	}
	i := w.random.IntN(len(w.waiting))
	if len(ready) > 0 {
		i = ready[w.random.IntN(len(ready))]
	}
	c := w.waiting[i]
	w.waiting = slices.Delete(w.waiting, i, i+1)
	return c
}

// answer runs a call, and answers it in one of the ways that a network has.
func (w *world) answer(c *call) {
	w.stats.calls++
	switch draw := w.random.IntN(100); {
	case draw < 5:
		w.stats.lost++
		_ = c.run()
		c.answer <- errLost
	case draw < 9:
		w.stats.failed++
		c.answer <- errLost
	case draw < 14 && !c.reads:
		w.stats.late++
		c.after = w.step + w.random.IntN(60)
		w.late = append(w.late, c)
		c.answer <- errLost
	case draw < 16:
		w.stats.deaths++
		if w.random.IntN(2) == 0 {
			_ = c.run()
		}
		c.reader.die()
		c.answer <- errLost
	default:
		c.answer <- c.run()
	}
}

// settleLate lets calls take effect whose senders have given them up.
func (w *world) settleLate() {
	w.late = slices.DeleteFunc(w.late, func(c *call) bool {
		due := c.after <= w.step
		if due {
			_ = c.run()
		}
		return due
	})
}

// check compares the database with a fold of all records.
func (w *world) check() error {
	w.stats.conflicts = w.store.conflicts
	folder, err := NewFolder(simDefinition)
	if err != nil {
		return err
	}
	bad := 0
	for _, s := range w.shards {
		for i := range s.records {
			record := &s.records[i]
			if folder.Add(record) != nil {
				bad++
				if id := string(s.id) + " " + record.Position.SortText(); !w.store.bad[id] {
					return fmt.Errorf("the bad record %s was not kept", id)
				}
			}
		}
	}
	if bad != len(w.store.bad) {
		return fmt.Errorf("%d bad records are kept, of %d", len(w.store.bad), bad)
	}
	want := folder.Rows()
	for i := range want {
		got := w.store.rows[simDefinition.RowKey(&want[i])]
		if fmt.Sprint(got.Row) != fmt.Sprint(want[i]) {
			return fmt.Errorf("a row is %v, want %v", got.Row, want[i])
		}
	}
	if len(want) != len(w.store.rows) {
		return fmt.Errorf("%d rows, want %d", len(w.store.rows), len(want))
	}
	return nil
}

// simulate runs a world of a seed.
func simulate(t *testing.T, seed uint64, f flaw) (stats simStats, err error) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed, f)
		err = w.run(t.Context())
		stats = w.stats
	})
	return stats, err
}

// TestSimulation has several workers alive for each shard, and batches cut anyhow: each row equals
// the fold of all records.
func TestSimulation(t *testing.T) {
	seeds := uint64(200 * sinktest.Soak())
	var total simStats
	for seed := range seeds {
		stats, err := simulate(t, seed, noFlaw)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		total.add(stats)
	}
	t.Logf("soak: %d seeds; %+v", seeds, total)
	for _, met := range []int{
		total.paused, total.lost, total.failed, total.late, total.deaths, total.stale, total.afterEnd,
		total.conflicts,
	} {
		if met == 0 {
			t.Fatal("the simulation has not met what it is for")
		}
	}
}

func (s *simStats) add(o simStats) {
	s.calls += o.calls
	s.paused += o.paused
	s.lost += o.lost
	s.failed += o.failed
	s.late += o.late
	s.deaths += o.deaths
	s.stale += o.stale
	s.afterEnd += o.afterEnd
	s.conflicts += o.conflicts
}

// TestSimulationRepeats runs seeds twice: a seed gives the same run.
func TestSimulationRepeats(t *testing.T) {
	for seed := range uint64(10) {
		first, _ := simulate(t, seed, noFlaw)
		for range 3 {
			if again, _ := simulate(t, seed, noFlaw); again != first {
				t.Fatalf("seed %d: %+v, and again %+v", seed, first, again)
			}
		}
	}
}

// TestSimulationFindsFlaws shows that each of the designs that look right does damage.
func TestSimulationFindsFlaws(t *testing.T) {
	seeds := uint64(50 * sinktest.Soak())
	for _, f := range []flaw{noVersion, ownEntryOnly, ancestorsRemoved, articleGuard} {
		t.Run(string(f), func(t *testing.T) {
			found := 0
			var first error
			for seed := range seeds {
				if _, err := simulate(t, seed, f); err != nil {
					found++
					first = cmp.Or(first, err)
				}
			}
			t.Logf("%d of %d runs do damage, such as: %v", found, seeds, first)
			if found == 0 {
				t.Error("the simulation finds no damage")
			}
		})
	}
}

// guard handles a batch by the guard of articles: a row takes all of the batch's records for it,
// unless its entry is at the batch's end or behind it.
func (r *reader) guard(ctx context.Context, batch *consumer.Batch) error {
	parts, bad, err := r.rows.split(batch)
	if err != nil {
		return err
	}
	if err := r.rows.refuse(ctx, bad); err != nil {
		return err
	}
	own, end := entryName(r.shard.id), batch.Records[len(batch.Records)-1].Position
	for _, p := range parts {
		for written := false; !written; {
			rows, err := r.rows.cfg.Store.Read(ctx, []string{p.key})
			if err != nil {
				return err
			}
			at, err := entryOf(rows[0], own)
			if err != nil {
				return err
			}
			if !at.Less(end) {
				break
			}
			next := rows[0]
			next.Key, next.Version = p.key, next.Version+1
			if next.Entries == nil {
				next.Entries, next.Row = map[string]string{}, p.row
			} else if err := simDefinition.Merge(&next.Row, &p.row); err != nil {
				return err
			}
			next.Entries[own] = end.SortText()
			err = r.rows.cfg.Store.Write(ctx, next, rows[0].Version)
			if written = err == nil; !written && ctx.Err() != nil {
				return err
			}
		}
	}
	return nil
}
