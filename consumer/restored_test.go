package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// book is a sink in memory that can go back, as a database that is restored from a backup. It has a
// page for each shard with the shard's effects.
type book struct {
	*chaos
	f     *fleet
	mu    sync.Mutex
	pages map[runnel.ShardID]bookPage
	token int
	gaps  []sink.Gap
}

type bookPage struct {
	end     runnel.Position
	token   int // new with each commit
	state   []byte
	effects []runnel.Record
}

func newBook(f *fleet, c *chaos) *book {
	return &book{chaos: c, f: f, pages: map[runnel.ShardID]bookPage{}}
}

// checkOwn checks that a position of a shard is not that of another shard's record.
func (b *book) checkOwn(id runnel.ShardID, at runnel.Position) {
	b.f.stream.mu.Lock()
	defer b.f.stream.mu.Unlock()
	for _, sh := range b.f.stream.shards {
		for _, r := range sh.records {
			if *r.SequenceNumber == string(at.Sequence) && sh.id != id {
				b.f.Errorf("%s has the position of a record of %s", id, sh.id)
			}
		}
	}
}

// copied returns the pages as they are.
func (b *book) copied() map[runnel.ShardID]bookPage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.pages) // effects are appended to copies
}

func (b *book) restore(pages map[runnel.ShardID]bookPage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages = maps.Clone(pages)
}

func (b *book) page(id runnel.ShardID) bookPage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pages[id]
}

func (b *book) count() (n int) {
	for _, p := range b.copied() {
		n += len(p.effects)
	}
	return n
}

func (b *book) Open(_ context.Context, shard sink.Shard) (sink.Writer, error) {
	if b.chance(3) {
		return nil, errCut
	}
	b.checkOwn(shard.ID, shard.Checkpoint)
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &bookWriter{
		book: b, id: shard.ID, parents: shard.Parents, page: b.pages[shard.ID], looked: time.Now(),
	}
	w.known = sink.Committed{End: w.page.end, State: w.page.state}
	if w.page.token != 0 {
		return w, nil
	}
	if err := b.unended(shard.Parents); err != nil {
		return nil, err
	}
	for _, id := range shard.Parents {
		w.known.Parents = append(w.known.Parents, b.pages[id].state)
	}
	return w, nil
}

// unended returns an error for the first parent that has not ended. b.mu is held.
func (b *book) unended(parents []runnel.ShardID) error {
	for _, id := range parents {
		if end := b.pages[id].end; end != runnel.End() {
			return &sink.ParentError{Parent: id, End: end}
		}
	}
	return nil
}

func (b *book) Unended(context.Context, string, time.Time) (ids []runnel.ShardID, err error) {
	for id, p := range b.copied() {
		if p.end != runnel.End() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

type bookWriter struct {
	*book
	id      runnel.ShardID
	parents []runnel.ShardID
	page    bookPage
	known   sink.Committed
	last    sink.Batch
	looked  time.Time
}

func (w *bookWriter) Committed() sink.Committed { return w.known }

func (w *bookWriter) Write(_ context.Context, batch sink.Batch) (sink.Committed, error) {
	through := w.page.end
	if w.last.Through != runnel.Start() {
		through = w.last.Through
	}
	if err := batch.Follows(w.id, through); err != nil {
		return w.known, err
	}
	w.last = batch
	if len(batch.Records) > 0 || batch.Gap != nil && batch.Through != through {
		return w.commit(batch.Through, batch.Records)
	}
	if time.Since(w.looked) > 5*time.Second {
		w.looked = time.Now()
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.known, w.current()
	}
	return w.known, nil
}

// current returns an error if the page is not as the writer knows it. Its book is locked.
func (w *bookWriter) current() error {
	now := w.pages[w.id]
	if now.token != w.page.token {
		return w.moved(now)
	}
	if now.token == 0 {
		return w.unended(w.parents)
	}
	return nil
}

func (w *bookWriter) moved(now bookPage) error {
	if now.token == 0 {
		return errors.New("the page is gone")
	}
	w.page, w.last = now, sink.Batch{}
	w.known = sink.Committed{End: now.end, State: now.state}
	return &sink.MovedError{To: w.known}
}

func (w *bookWriter) Flush(context.Context) (sink.Committed, error) {
	if w.last.Through.Compare(w.page.end) <= 0 {
		return w.known, nil
	}
	return w.commit(w.last.Through, nil)
}

func (w *bookWriter) End(context.Context) (sink.Committed, error) {
	return w.commit(runnel.End(), nil)
}

func (w *bookWriter) Close() error { return nil }

func (w *bookWriter) commit(
	end runnel.Position, records []runnel.Record,
) (sink.Committed, error) {
	if w.chance(3) {
		return w.known, errCut
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.current(); err != nil {
		return w.known, err
	}
	w.token++
	next := bookPage{end: end, token: w.token, state: w.last.State.Bytes()}
	if w.last.State == nil {
		next.state = w.page.state
	}
	next.effects = append(slices.Clone(w.page.effects), records...)
	if w.last.Gap != nil {
		w.gaps = append(w.gaps, *w.last.Gap)
	}
	w.pages[w.id], w.page, w.last = next, next, sink.Batch{}
	w.known = sink.Committed{End: end}
	return w.known, nil
}

// check compares the effects with the stream: each record once, in order.
func (b *book) check(f *fleet) {
	f.Helper()
	f.wantEffects(func(id runnel.ShardID) []runnel.Record { return b.page(id).effects })
}

// The sink is restored from a copy of an earlier moment, several times, while workers run, are
// killed and cut off, and while shards split and merge. Each record takes effect once.
func TestSinkThatGoesBack(t *testing.T) {
	for i := range 8 * soak() {
		seed := uint64(i + 1)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, 2, func(f *fleet) { goesBack(f, seed) })
		})
	}
	t.Logf("soak: %d seeds", 8*soak())
}

func goesBack(f *fleet, seed uint64) {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 3))}
	b := newBook(f, c)
	workers, puts, restores := 0, 0, 0
	start := func() *member {
		workers++
		return f.start(fmt.Sprintf("w%d", workers), intoSink(b), func(cfg *consumer.Config) {
			cfg.MaxRecords, cfg.AuditInterval = 9, 30*time.Second
		})
	}
	live := []*member{start(), start()}
	backup := b.copied()
	for range 60 {
		puts += len(f.stream.put("x", keys(1+c.pick(20))...))
		switch i := c.pick(len(live)); c.pick(12) {
		case 0, 1:
			f.stream.split(c.pick(100))
		case 2, 3:
			f.stream.merge(c.pick(100))
		case 4:
			live[i].kill()
			<-live[i].err
			live[i] = start()
		case 5:
			mend := live[i].link.cut()
			time.AfterFunc(time.Duration(c.pick(30))*time.Second, mend)
		case 6, 7:
			backup = b.copied()
		case 8, 9:
			b.restore(backup)
			restores++
		}
		<-time.After(time.Duration(c.pick(20_000)) * time.Millisecond)
	}
	b.restore(backup)
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	f.await(60*failover, fmt.Sprintf("%d records (seed %d)", puts, seed), func() bool {
		return b.count() >= puts
	})
	<-time.After(3 * failover) // a double would come now
	b.check(f)
	for _, e := range f.happened(consumer.EventCheckpointed) {
		b.checkOwn(e.ShardID, e.Position)
	}
	f.Logf("seed %d: %d shards, %d workers, %d records, %d restores, %d moved", seed,
		len(f.stream.shards), workers, puts, restores+1, len(f.happened(consumer.EventMoved)))
}

// The sink is restored to a time before a shard that the stream no longer has. The gap is reported
// once, and the shard's children go on.
func TestSinkThatGoesBackTooFar(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		b := newBook(f, &chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true})
		f.start("w1", intoSink(b))
		f.stream.put("a", keys(5)...)
		f.await(failover, "the first records", func() bool { return b.count() == 5 })
		backup := b.copied()
		f.stream.split(0)
		f.stream.put("b", keys(6)...)
		f.await(6*failover, "those of the children", func() bool { return b.count() == 11 })
		f.stream.split(0)
		f.stream.split(2)
		f.stream.put("c", keys(6)...)
		f.await(6*failover, "those of the grandchildren", func() bool { return b.count() == 17 })
		f.mustStop(f.workers["w1"])
		f.stream.mu.Lock()
		for _, gone := range f.stream.shards[:3] {
			gone.unlisted = true
		}
		const lost = 6 // of the children
		f.stream.mu.Unlock()
		b.restore(backup)
		f.start("w2", intoSink(b))
		f.await(6*failover, "what is left", func() bool { return b.count() == 17-lost })
		<-time.After(3 * failover)
		if n := b.count(); n != 17-lost {
			f.Errorf("%d effects, want %d", n, 17-lost)
		}
		if len(b.gaps) != 1 || b.gaps[0].Before != runnel.End() {
			f.Errorf("the gaps are %v, want that of the first shard", b.gaps)
		}
		if n := len(f.happened(consumer.EventTrimmed)); n != 1 {
			f.Errorf("%d gaps were reported, want 1", n)
		}
	})
}

// A worker with Once ends when every record is in the sink, although the lease table said so already
// when the sink had gone back: behind a live worker, to a time before the shard was split.
func TestOnceBesideASinkThatGoesBack(t *testing.T) {
	for _, isSplit := range []bool{false, true} {
		t.Run(fmt.Sprint("split ", isSplit), func(t *testing.T) {
			bubble(t, 1, func(f *fleet) {
				b := newBook(f, &chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true})
				f.start("w1", intoSink(b))
				f.stream.put("a", keys(5)...)
				f.await(failover, "the first records", func() bool { return b.count() == 5 })
				backup := b.copied()
				f.stream.put("b", keys(6)...)
				if isSplit {
					f.stream.split(0)
				}
				f.stream.put("c", keys(7)...)
				f.await(6*failover, "the others", func() bool { return b.count() == 18 })
				<-time.After(2 * failover) // the lease rows have them
				b.restore(backup)
				once := f.start("w2", intoSink(b), func(c *consumer.Config) { c.Once = true })
				if err := <-once.err; err != nil || b.count() != 18 {
					f.Errorf("Run ended with %v after %d of 18 records", err, b.count())
				}
				once.err <- nil // for the end of the test
			})
		})
	}
}

// A sink goes back to a time before a split. As long as the rows of the children or that of the
// parent say that they are paused, no record of the parent goes to the sink again.
func TestSinkThatGoesBackWhilePaused(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		b := newBook(f, &chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true})
		f.start("w1", intoSink(b))
		f.stream.put("a", keys(5)...)
		f.await(failover, "the first records", func() bool { return b.count() == 5 })
		backup := b.copied()
		f.stream.put("b", keys(6)...)
		f.stream.split(0)
		f.stream.put("c", keys(7)...)
		f.await(6*failover, "the others", func() bool { return b.count() == 18 })
		f.mustStop(f.workers["w1"])
		b.restore(backup)
		leases, table := f.leases(), f.leaseTable()
		change := func(do func(context.Context, lease.Lease) (lease.Lease, error), of []lease.Lease) {
			for _, l := range of {
				if _, err := do(f.Context(), l); err != nil {
					f.Fatal(err)
				}
			}
		}
		stays := func(when string) {
			<-time.After(3 * failover)
			if n := b.count(); n != 5 {
				f.Errorf("%s: %d effects, want 5", when, n)
			}
		}
		change(table.Pause, leases)
		f.start("w2", intoSink(b))
		stays("all are paused")
		change(table.Resume, leases[:1])
		stays("the children are paused")
		change(table.Pause, leases[:1])
		<-time.After(2 * failover)
		change(table.Resume, leases[1:])
		stays("the parent is paused")
		change(table.Resume, leases[:1])
		f.await(3*failover, "the others again", func() bool { return b.count() == 18 })
		b.check(f)
	})
}

// A fresh application that begins now reads nothing of the parents of the shards that are open.
func TestNewSinkBehindClosedParents(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		b := newBook(f, &chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true})
		f.stream.put("old", keys(5)...)
		f.stream.split(0)
		<-time.After(time.Minute)
		f.start("w1", intoSink(b), func(c *consumer.Config) { c.From = runnel.FromLatest() })
		f.await(failover, "both shards", func() bool { return f.loads()["w1"] == 2 })
		<-time.After(2 * time.Second)
		f.stream.put("new", keys(6)...)
		f.await(failover, "the new records", func() bool { return b.count() == 6 })
		<-time.After(failover)
		if n := b.count(); n != 6 {
			f.Errorf("%d effects, want 6", n)
		}
	})
}

// The sink is restored to a position whose next records the stream has removed since, or to a time
// before the first one. The gap is reported, though the lease row says that the shard is complete
// up to now.
func TestSinkThatGoesBackToRemovedRecords(t *testing.T) {
	for _, standing := range []int{5, 0} {
		t.Run(fmt.Sprint(standing, " records"), func(t *testing.T) {
			bubble(t, 1, func(f *fleet) {
				b := newBook(f, &chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true})
				f.start("w1", intoSink(b), fewPolls)
				backup := b.copied()
				f.stream.put("a", keys(5)...)
				f.await(failover, "the first records", func() bool { return b.count() == 5 })
				if standing > 0 {
					backup = b.copied()
				}
				f.stream.put("b", keys(6)...)
				f.await(failover, "the others", func() bool { return b.count() == 11 })
				<-time.After(30 * time.Hour) // longer than the stream keeps records
				f.stream.put("c", keys(2)...)
				f.await(failover, "the last records", func() bool { return b.count() == 13 })
				f.stream.mu.Lock()
				f.stream.shards[0].trimmed = 11
				f.stream.mu.Unlock()
				b.restore(backup)
				f.await(6*failover, "what is left", func() bool { return b.count() == standing+2 })
				if len(b.gaps) != 1 || len(f.happened(consumer.EventTrimmed)) != 1 {
					f.Errorf("the gaps are %v, want one", b.gaps)
				}
			})
		})
	}
}

// fewPolls makes a test of more than a day cheaper.
func fewPolls(c *consumer.Config) { c.PollInterval = 5 * time.Second }

// A parent that is read again has lost records to the stream's retention period. The gap is
// reported, though its child is complete up to now.
func TestParentWithRemovedRecords(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		b := newBook(f, &chaos{random: rand.New(rand.NewPCG(1, 1)), calm: true})
		f.start("w1", intoSink(b), fewPolls)
		f.stream.put("a", keys(5)...)
		f.await(failover, "the first records", func() bool { return b.count() == 5 })
		backup := b.copied()
		f.stream.put("b", keys(6)...)
		f.await(failover, "the others", func() bool { return b.count() == 11 })
		f.stream.split(0)
		f.stream.put("c", keys(7)...)
		f.await(6*failover, "those of the children", func() bool { return b.count() == 18 })
		<-time.After(30 * time.Hour) // longer than the stream keeps records
		f.stream.mu.Lock()
		f.stream.shards[0].trimmed = 9
		f.stream.mu.Unlock()
		b.restore(backup)
		f.await(6*failover, "what is left", func() bool { return b.count() == 18-4 })
		if len(b.gaps) != 1 || len(f.happened(consumer.EventTrimmed)) != 1 {
			f.Errorf("the gaps are %v, want one", b.gaps)
		}
	})
}
