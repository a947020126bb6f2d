package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/sink/archive"
)

// Deriver writes a table. Its goroutines run from Start to Close. It is safe for concurrent use.
type Deriver struct {
	table   *Table
	options Options
	cancel  context.CancelFunc
	stop    func() bool
	group   sync.WaitGroup

	mu     sync.Mutex
	shards map[shardKey]*shard
	queue  []*shard
	wake   *sync.Cond // the queue, busy or ended has changed
	busy   int        // shards under way
	ended  bool
	held   int   // bytes of all pending objects
	failed error // the first one that ended a shard
	counts Counts
}

// Options are the options of a Deriver. The zero value is useful.
type Options struct {
	// Parallel is the number of shards that are derived at a time, each with one link in memory.
	// Default 4.
	Parallel int
	// MaxHeld bounds the memory for commits that wait to be derived; later ones are read from the
	// archive again. Default 64 MiB, in bytes of compressed objects.
	MaxHeld int
	// Again derives all links anew, whatever the progress says. Default: false.
	Again bool
	// Persist tries again after each error that may pass, as that of a full disk. By default only
	// an outage of the store is waited out.
	Persist bool
	// OnOutage is called when a call has failed and will be tried again. Default: none.
	OnOutage func(error)
	// OnFailure is called when the deriving of a shard ends, as by a damaged link. Default: none.
	OnFailure func(runnel.ShardID, error)
}

// Counts are the counts of a Deriver.
type Counts struct {
	Links   int64 // derived
	Records int64 // in these
	Read    int64 // links that were read from the archive, and not taken from memory
}

type shardKey struct {
	stream archive.Stream
	id     runnel.ShardID
}

// shard is the deriving of one shard. Only one goroutine at a time works on it.
type shard struct {
	chain   archive.Chain
	queued  bool // in the queue or under way
	again   bool // there was news while it was under way
	pending []*archive.Stored
	target  runnel.Position // the furthest tip that was taken
	asked   int             // calls of All: derive as far as the archive goes, and not to target
	done    int             // of those
	// These belong to the goroutine that works on it.
	known bool // at is
	at    runnel.Position
	stuck bool // it has failed
}

// outages are the waits while the store cannot be reached.
var outages = retry.Backoff{Min: 250 * time.Millisecond, Max: 15 * time.Second}

// progressEvery is the number of links after which the progress is written while others follow.
const progressEvery = 16

// Start returns a running Deriver of the table.
func (t *Table) Start(ctx context.Context, options Options) *Deriver {
	if options.Parallel == 0 {
		options.Parallel = 4
	}
	if options.MaxHeld == 0 {
		options.MaxHeld = 64 << 20
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &Deriver{table: t, options: options, cancel: cancel, shards: map[shardKey]*shard{}}
	d.wake = sync.NewCond(&d.mu)
	for range options.Parallel {
		d.group.Go(func() { d.work(ctx) })
	}
	d.stop = context.AfterFunc(ctx, d.end)
	return d
}

// end wakes all that wait.
func (d *Deriver) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.wake.Broadcast()
}

// Take takes a writer's tip: see archive.Config.OnTip. It does not block.
func (d *Deriver) Take(tip archive.Tip) {
	if tip.Stream.Name != d.table.stream {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.shard(archive.Chain{Stream: tip.Stream, ShardID: tip.ShardID})
	if s.target.Less(tip.End) {
		s.target = tip.End
	}
	if own := tip.Stored; own != nil && d.held+own.Size() <= d.options.MaxHeld {
		d.held += own.Size()
		s.pending = append(s.pending, own)
	}
	d.enqueue(s)
}

// All takes all shards of the archive, in a random order: several processes that begin together
// then seldom do the same.
func (d *Deriver) All(ctx context.Context) error {
	var chains []archive.Chain
	err := d.persist(ctx, func() (err error) {
		if err := d.table.sweep(ctx, progressFolder); err != nil {
			return err
		}
		chains, err = d.table.chains(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("table %s: %w", d.table.name, err)
	}
	rand.Shuffle(len(chains), func(i, j int) { chains[i], chains[j] = chains[j], chains[i] })
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, chain := range chains {
		s := d.shard(chain)
		s.asked++
		d.enqueue(s)
	}
	return nil
}

func (d *Deriver) shard(chain archive.Chain) *shard {
	key := shardKey{chain.Stream, chain.ShardID}
	s := d.shards[key]
	if s == nil {
		s = &shard{chain: chain}
		d.shards[key] = s
	}
	return s
}

func (d *Deriver) enqueue(s *shard) {
	if s.queued {
		s.again = true
		return
	}
	s.queued = true
	d.queue = append(d.queue, s)
	d.wake.Broadcast()
}

// Wait waits until the taken shards are derived as far as the archive goes, and returns the first
// failure so far.
func (d *Deriver) Wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.wake.Broadcast()
	})
	defer stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for (len(d.queue) > 0 || d.busy > 0) && !d.ended && ctx.Err() == nil {
		d.wake.Wait()
	}
	switch {
	case d.failed == nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case d.failed == nil && d.ended:
		return ErrClosed
	}
	return d.failed
}

// ErrClosed is returned by Wait after Close, or when the context of Start has ended.
var ErrClosed = errors.New("the deriver is closed")

// Counts returns the counts so far.
func (d *Deriver) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// Close ends the goroutines. The next Deriver derives the rest.
func (d *Deriver) Close() {
	if d.stop() {
		d.end()
	}
	d.cancel()
	d.group.Wait()
}

// work derives shards of the queue.
func (d *Deriver) work(ctx context.Context) {
	for {
		d.mu.Lock()
		for len(d.queue) == 0 && !d.ended {
			d.wake.Wait()
		}
		if d.ended {
			d.mu.Unlock()
			return
		}
		s := d.queue[0]
		d.queue = d.queue[1:]
		d.busy++
		d.mu.Unlock()

		err := d.catchUp(ctx, s)

		d.mu.Lock()
		d.busy--
		s.queued = false
		if err != nil && ctx.Err() == nil {
			s.stuck = true
			d.release(s)
			if d.failed == nil {
				d.failed = err
			}
		}
		if s.again && !s.stuck {
			s.again = false
			d.enqueue(s)
		}
		d.wake.Broadcast()
		d.mu.Unlock()
		if err != nil && ctx.Err() == nil && d.options.OnFailure != nil {
			d.options.OnFailure(s.chain.ShardID, err)
		}
	}
}

// catchUp derives a shard as far as the archive goes.
func (d *Deriver) catchUp(ctx context.Context, s *shard) error {
	if s.stuck {
		d.drop(s)
		return nil
	}
	afresh := !s.known
	if d.options.Again {
		s.known = true
	}
	if !s.known {
		err := d.persist(ctx, func() (err error) {
			s.at, err = d.table.reached(ctx, s.chain)
			return err
		})
		if err != nil {
			return err
		}
		s.known = true
	}
	written := s.at
	for n := 1; ; n++ {
		asked, target, more := d.more(s)
		if !more {
			break
		}
		stored, err := d.next(ctx, s)
		if errors.Is(err, archive.ErrObjectNotFound) {
			if err := d.atTip(ctx, s, asked, target); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = d.persist(ctx, func() error { return d.table.derive(ctx, stored, afresh) })
		}
		if err != nil {
			return err
		}
		s.at, afresh = stored.Link.End, false
		d.count(stored.Link.Count)
		if n%progressEvery == 0 {
			if err := d.progress(ctx, s); err != nil {
				return err
			}
			written = s.at
		}
	}
	if s.at == written {
		return nil
	}
	return d.progress(ctx, s)
}

// more reports whether the archive may have a link behind s.at that is to be derived, and what was
// taken before.
func (d *Deriver) more(s *shard) (asked int, target runnel.Position, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.asked, s.target, s.at != runnel.End() && (s.asked > s.done || s.at.Less(s.target))
}

// atTip ends a reading that found no link behind s.at. The answer counts for what was taken before
// it alone: a link may have come since.
func (d *Deriver) atTip(
	ctx context.Context, s *shard, asked int, target runnel.Position,
) error {
	came := false
	err := d.persist(ctx, func() (err error) {
		came, err = d.table.goesOn(ctx, s.chain, s.at)
		return err
	})
	if err != nil || came {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.done = asked; s.target == target {
		s.target = s.at
	}
	return nil
}

func (d *Deriver) progress(ctx context.Context, s *shard) error {
	return d.persist(ctx, func() error { return d.table.advance(ctx, s.chain, s.at) })
}

func (d *Deriver) count(records int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts.Links++
	d.counts.Records += records
}

// next returns the link that follows s.at, from memory or from the archive.
func (d *Deriver) next(ctx context.Context, s *shard) (stored *archive.Stored, err error) {
	if stored := d.own(s); stored != nil {
		return stored, nil
	}
	err = d.persist(ctx, func() (err error) {
		stored, err = d.table.reader.Stored(ctx, s.chain, s.at)
		return err
	})
	if err == nil {
		d.mu.Lock()
		d.counts.Read++
		d.mu.Unlock()
	}
	return stored, err
}

// own takes the link that follows s.at from the pending ones, and drops those before it.
func (d *Deriver) own(s *shard) *archive.Stored {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(s.pending) > 0 {
		first := s.pending[0]
		if s.at.Less(first.Link.Previous) {
			return nil
		}
		s.pending[0] = nil
		s.pending = s.pending[1:]
		d.held -= first.Size()
		if first.Link.Previous == s.at {
			return first
		}
	}
	return nil
}

// drop drops the pending links.
func (d *Deriver) drop(s *shard) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release(s)
}

func (d *Deriver) release(s *shard) {
	for _, stored := range s.pending {
		d.held -= stored.Size()
	}
	s.pending = nil
}

// lasting are the errors that another try does not change.
var lasting = []error{
	archive.ErrObjectNotFound, archive.ErrUnusableLink, archive.ErrContentsDiffer,
	archive.ErrStoreRefused, archive.ErrFolderGone, ErrDamaged,
}

func (d *Deriver) mayPass(err error) bool {
	return errors.Is(err, archive.ErrStoreUnavailable) || err != nil && d.options.Persist &&
		!slices.ContainsFunc(lasting, func(l error) bool { return errors.Is(err, l) })
}

// persist makes a call until the store can be reached, or the Deriver is closed.
func (d *Deriver) persist(ctx context.Context, call func() error) error {
	for failures := 1; ; failures++ {
		err := call()
		if !d.mayPass(err) || ctx.Err() != nil {
			return err
		}
		if d.options.OnOutage != nil {
			d.options.OnOutage(err)
		}
		if outages.Wait(ctx, failures) != nil {
			return err
		}
	}
}
