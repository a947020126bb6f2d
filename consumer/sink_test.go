package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/sink"
)

// chain is a sink in memory. For each shard it holds the effects, their end, and the reader's state
// there. They change together, on condition that the end is the one that the writer knows.
type chain struct {
	*chaos
	batch int // commit when so many records are buffered

	links map[runnel.ShardID]*links
	lag   time.Duration // of a commit
}

type links struct {
	effects []runnel.Record
	end     runnel.Position
	state   []byte
	folds   int // commits with a state that was also made of changes
	commits int
}

func newChain(c *chaos, batch int) *chain {
	return &chain{chaos: c, batch: batch, links: map[runnel.ShardID]*links{}}
}

func (s *chain) Open(ctx context.Context, shard sink.Shard) (sink.Writer, error) {
	if s.chance(3) {
		return nil, errCut
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.links[shard.ID]
	if l == nil {
		l = &links{}
		s.links[shard.ID] = l
	}
	if l.end.Less(shard.Checkpoint) {
		return nil, fmt.Errorf("the checkpoint %s is ahead of the sink, %s", shard.Checkpoint, l.end)
	}
	w := &chainWriter{chain: s, links: l, through: l.end}
	w.found(l.state)
	w.committed = sink.Committed{End: l.end, Token: "t", State: l.state}
	if l.end == runnel.Start() {
		for _, id := range shard.Parents {
			var state []byte
			if parent := s.links[id]; parent != nil && parent.end == runnel.End() {
				state = parent.state
			}
			w.committed.Parents = append(w.committed.Parents, state)
		}
	}
	return w, nil
}

type chainWriter struct {
	*chain
	links     *links
	committed sink.Committed
	buffer    []runnel.Record
	through   runnel.Position
	state     sink.State        // at through
	opened    time.Time         // when through left the last commit
	folded    *aggregate.Filter // of the last commit's state and the changes since; nil: not known
}

// found goes on with the state of a commit.
func (w *chainWriter) found(state []byte) {
	w.state = func() []byte { return state }
	w.base(state)
}

func (w *chainWriter) base(state []byte) {
	if w.folded = nil; len(state) > 0 {
		filter := new(aggregate.Filter)
		if filter.UnmarshalBinary(state) == nil {
			w.folded = filter
		}
	}
}

// change applies a batch's change; the state can be made of the changes.
func (w *chainWriter) change(delta []byte) {
	d := new(aggregate.Delta)
	if delta == nil || w.folded == nil {
		w.folded = nil
	} else if err := d.UnmarshalBinary(delta); err != nil {
		panic(err)
	} else {
		w.folded.Apply(d)
	}
}

func (w *chainWriter) Committed() sink.Committed { return w.committed }

func (w *chainWriter) Write(ctx context.Context, batch sink.Batch) (sink.Committed, error) {
	if w.through == w.committed.End && batch.Through != w.through {
		w.opened = time.Now()
	}
	last := w.through
	for _, r := range batch.Records {
		if !last.Less(r.Position) || batch.Through.Less(r.Position) {
			return w.committed, sink.ErrOutOfOrder
		}
		last = r.Position
	}
	w.buffer = append(w.buffer, batch.Records...)
	w.through, w.state = batch.Through, batch.State
	w.change(batch.Delta)
	old := w.through != w.committed.End && time.Since(w.opened) > 5*time.Second
	if len(w.buffer) >= w.batch || old {
		return w.commit(ctx, w.through)
	}
	return w.committed, nil
}

func (w *chainWriter) Flush(ctx context.Context) (sink.Committed, error) {
	if w.through == w.committed.End {
		return w.committed, nil
	}
	return w.commit(ctx, w.through)
}

func (w *chainWriter) End(ctx context.Context) (sink.Committed, error) {
	return w.commit(ctx, runnel.End())
}

func (w *chainWriter) Close() error { return nil }

func (w *chainWriter) commit(ctx context.Context, end runnel.Position) (sink.Committed, error) {
	w.mu.Lock()
	lag := w.lag
	w.mu.Unlock()
	<-time.After(lag)
	if w.chance(3) {
		return w.committed, errCut
	}
	lost := w.chance(5)
	state := w.state.Bytes()
	if w.folded != nil {
		if folded, _ := w.folded.MarshalBinary(); !bytes.Equal(folded, state) {
			panic(fmt.Sprintf("the changes make the state\n%x\nwant\n%x", folded, state))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.folded != nil {
		w.links.folds++
	}
	if w.links.end != w.committed.End {
		w.committed.End, w.committed.State = w.links.end, w.links.state
		w.committed.Parents = nil
		w.buffer, w.through = nil, w.links.end
		w.found(w.links.state)
		return w.committed, &sink.MovedError{To: w.committed}
	}
	w.links.effects = append(w.links.effects, w.buffer...)
	w.links.end, w.links.state, w.links.commits = end, state, w.links.commits+1
	if lost {
		return w.committed, errCut
	}
	w.committed = sink.Committed{End: end, Token: "t"}
	w.base(state)
	w.buffer = nil
	return w.committed, nil
}

// check compares the effects with the stream: each record once, in order.
func (s *chain) check(f *fleet) {
	f.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	f.wantEffects(func(id runnel.ShardID) []runnel.Record {
		if l := s.links[id]; l != nil {
			return l.effects
		}
		return nil
	})
}

// wantEffects compares the effects of each shard with its records.
func (f *fleet) wantEffects(of func(runnel.ShardID) []runnel.Record) {
	f.Helper()
	for _, sh := range f.stream.shards {
		effects := of(sh.id)
		if len(effects) != len(sh.records) {
			f.Errorf("%s: %d effects of %d records", sh.id, len(effects), len(sh.records))
			continue
		}
		for i, r := range sh.records {
			if got := effects[i].Position.String(); got != *r.SequenceNumber {
				f.Errorf("%s: effect %d is %s, want %s", sh.id, i, got, *r.SequenceNumber)
				break
			}
		}
	}
}

func (s *chain) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.links {
		n += len(l.effects)
	}
	return n
}

func intoSink(s sink.Sink) func(*consumer.Config) {
	return func(c *consumer.Config) { c.Handler, c.Sink = nil, s }
}

// The workers of a fleet are cut off, paused, robbed and killed. The fleet writes each record
// exactly once into a sink that keeps the contract.
func TestSinkExactlyOnce(t *testing.T) {
	for i := range 6 * soak() {
		seed := uint64(i + 1)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, 3, func(f *fleet) { exactlyOnce(f, seed) })
		})
	}
	t.Logf("soak: %d seeds", 6*soak())
}

func exactlyOnce(f *fleet, seed uint64) {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 2))}
	s := newChain(c, 20)
	f.stream.fault = func(string, runnel.ShardID) error {
		if c.chance(1) {
			return errCut
		}
		return nil
	}
	workers, puts := 0, 0
	start := func() *member {
		workers++
		return f.start(fmt.Sprintf("w%d", workers), intoSink(s), func(cfg *consumer.Config) {
			cfg.MaxRecords = 9
			cfg.AuditInterval = 30 * time.Second
		})
	}
	live := []*member{start(), start(), start()}
	for range 100 {
		puts += len(f.stream.put("x", keys(1+c.pick(40))...))
		switch i := c.pick(len(live)); c.pick(10) {
		case 0:
			f.stream.split(c.pick(100))
		case 1, 2:
			f.stream.merge(c.pick(100))
		case 3:
			live[i].kill()
			<-live[i].err
			live[i] = start()
		case 4, 5: // alive, writing, and unable to renew: others take over meanwhile
			mend := live[i].link.cut()
			time.AfterFunc(time.Duration(c.pick(30))*time.Second, mend)
		case 6: // as a pause: a commit that takes longer than the failover time
			s.mu.Lock()
			s.lag = time.Duration(c.random.IntN(2)*c.random.IntN(20)) * time.Second
			s.mu.Unlock()
		}
		<-time.After(time.Duration(c.pick(20_000)) * time.Millisecond)
	}
	c.mu.Lock()
	c.calm, s.lag = true, 0
	c.mu.Unlock()
	f.await(40*failover, fmt.Sprintf("%d records (seed %d)", puts, seed), func() bool {
		return s.count() >= puts
	})
	s.check(f)
	f.Logf("seed %d: %d shards, %d workers, %d records, %d moved", seed, len(f.stream.shards),
		workers, puts, len(f.happened(consumer.EventMoved)))
}

// A sink that is ahead of the checkpoint decides where reading begins. A sink that has the shard's
// end ends the shard. The row has neither.
func TestSinkIsTheTruth(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		c := &chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true}
		s := newChain(c, 1000)
		f.stream.put("a", keys(20)...)
		f.stream.split(0)
		f.stream.put("b", keys(20)...)
		first, second := f.stream.shards[0], f.stream.shards[1]
		done := &links{end: runnel.End()}
		for _, r := range first.records {
			done.effects = append(done.effects, effect(r))
		}
		half := &links{}
		for _, r := range second.records[:5] {
			half.effects = append(half.effects, effect(r))
			half.end = effect(r).Position
		}
		s.links[first.id], s.links[second.id] = done, half
		f.start("w1", intoSink(s), func(c *consumer.Config) { c.Once = true })
		if err := <-f.workers["w1"].err; err != nil {
			f.Fatal(err)
		}
		s.check(f)
		if done.commits != 0 {
			f.Errorf("%d commits to a shard that had ended", done.commits)
		}
	})
}

func effect(r types.Record) runnel.Record {
	return runnel.Record{
		Position: runnel.Position{Sequence: runnel.SequenceNumber(*r.SequenceNumber)},
	}
}

// A sink that buffers notices the passing of time by writes without records, and is flushed when
// the worker stops.
func TestSinkCommitsByAge(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		s := newChain(&chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true}, 1000)
		m := f.start("w1", intoSink(s))
		<-time.After(time.Second)
		f.stream.put("a", keys(5)...)
		took := f.await(failover, "a commit by age", func() bool { return s.count() == 5 })
		if took < 5*time.Second || took > 6*time.Second {
			f.Errorf("committed after %s", took)
		}
		f.stream.put("b", keys(5)...)
		<-time.After(time.Second)
		m.stop()
		if err := <-m.err; err != nil {
			f.Fatal(err)
		}
		s.check(f)
		if l := f.leases()[0]; l.Processed() != s.links[l.Key].end || l.Token != "t" || l.Owner != "" {
			f.Errorf("handed over as %+v", l)
		}
	})
}

// slowChain is a chain with writes that take a second and ignore their context.
type slowChain struct{ *chain }

type slowWriter struct{ sink.Writer }

func (s slowChain) Open(ctx context.Context, shard sink.Shard) (sink.Writer, error) {
	w, err := s.chain.Open(ctx, shard)
	return slowWriter{w}, err
}

func (w slowWriter) Write(ctx context.Context, batch sink.Batch) (sink.Committed, error) {
	<-time.After(time.Second)
	return w.Writer.Write(ctx, batch)
}

// A killed worker flushes no record and releases no lease, also when it finds out late.
func TestKillFlushesNothing(t *testing.T) {
	for range 20 {
		bubble(t, 1, killed)
	}
}

func killed(f *fleet) {
	s := newChain(&chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true}, 1000)
	ctx, kill := context.WithCancelCause(f.Context())
	cfg := f.config("w1", &link{DynamoDBAPI: f.table})
	intoSink(slowChain{s})(&cfg)
	w, err := consumer.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.stream.put("a", keys(5)...)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-time.After(2500 * time.Millisecond)
	kill(seam.ErrKilled)
	if err := <-done; !errors.Is(err, seam.ErrKilled) {
		f.Errorf("got %v", err)
	}
	if s.count() != 0 || f.leases()[0].Owner != "w1" {
		f.Errorf("%d effects; %+v", s.count(), f.leases()[0])
	}
	if err := w.Run(ctx); !errors.Is(err, consumer.ErrAlreadyRan) {
		f.Errorf("a second run: %v", err)
	}
}
