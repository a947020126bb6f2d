package follow

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// run holds the state of one Run.
type run struct {
	cfg      Config
	reads    *awscbor.Client // by cfg.Kinesis
	since    time.Time       // with Once: the stream's time at the start, or a little later
	parallel chan struct{}   // held by a reader that reads and handles a page
	handling sync.Mutex      // Handle is called one at a time
	ended    chan outcome
	horizon  atomic.Pointer[shardmap.Horizon] // as of the last look
	identity *shardmap.Identity

	// These belong to the coordinator. A finished shard is in neither map, so neither grows with
	// the stream's age.
	waiting map[runnel.ShardID]*node
	reading map[runnel.ShardID]bool
}

// node is a shard with parents that are not done.
type node struct {
	shard   runnel.Shard
	filters []*aggregate.Filter // of the parents that are done
	parents int                 // that are not
	start   start
	// complete is the latest Page.Complete of the shard's parents: the shard's first record arrived
	// after it. It is zero for a shard at which the reading begins.
	complete time.Time
}

// start is the point at which the reading of a shard begins, and the condition for its end.
type start struct {
	from    runnel.From
	mustEnd bool // with Once: it was closed at the start, and is done at its end alone
}

// outcome is the result of the reading of a shard.
type outcome struct {
	shard    runnel.Shard
	filter   *aggregate.Filter
	children []runnel.Shard
	complete time.Time // node.complete of the children
	err      error
}

// Run reads the stream until ctx ends, and returns the cause of ctx. It returns nil when the work
// of Config.Once or Config.Shard is done. It also ends with an error of Handle, or with an API
// error that a retry does not mend, for example if there is no such stream. It waits until outages
// and throttling end. When Run returns, all its goroutines have ended.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	r := &run{
		cfg: cfg.withDefaults(), reads: awscbor.New(cfg.Kinesis), ended: make(chan outcome),
		waiting: map[runnel.ShardID]*node{}, reading: map[runnel.ShardID]bool{},
	}
	r.parallel = make(chan struct{}, r.cfg.Parallel)
	r.identity = shardmap.NewIdentity(r.look)
	if err := r.begin(ctx); err != nil {
		return fmt.Errorf("read stream %s: %w", cfg.Stream, err)
	}
	if err := r.coordinate(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("read stream %s: %w", cfg.Stream, err)
	}
	return nil
}

// begin finds the shards to read.
func (r *run) begin(ctx context.Context) error {
	sent := time.Now()
	out, err := r.describe(ctx)
	if err != nil {
		return err
	}
	r.horizon.Store(horizonOf(out))
	if want := r.cfg.Created; !want.IsZero() && !want.Equal(r.horizon.Load().Created) {
		return ErrRecreated
	}
	_, r.since = awsclient.AnswerTime(sent, time.Now(), out.ResultMetadata)
	shards, err := shardmap.List(ctx, r.cfg.Kinesis, r.cfg.Stream, nil)
	if err != nil {
		return err
	}
	switch {
	case r.cfg.Shard != "":
		at := slices.IndexFunc(shards, func(s runnel.Shard) bool { return s.ID == r.cfg.Shard })
		if at < 0 {
			return fmt.Errorf("%w: it has no shard %s", ErrShard, r.cfg.Shard)
		}
		shards = []runnel.Shard{shards[at]}
	case r.cfg.From == runnel.FromLatest():
		// A shard without children is open, or is just being replaced.
		shards = slices.DeleteFunc(slices.Clone(shards), func(s runnel.Shard) bool {
			return len(shardmap.ChildrenOf(shards, s.ID)) > 0
		})
	}
	for _, s := range shards {
		r.waiting[s.ID] = &node{shard: s, start: start{from: r.cfg.From, mustEnd: !s.Open()}}
	}
	for _, n := range r.waiting {
		n.parents = r.unfinished(n.shard.Parents)
	}
	return nil
}

// unfinished counts the shards that are still to be read or being read.
func (r *run) unfinished(shards []runnel.ShardID) (n int) {
	for _, s := range shards {
		if r.reading[s] || r.waiting[s] != nil {
			n++
		}
	}
	return n
}

// coordinate starts each shard when its parents are done, and ends when no shard is left.
func (r *run) coordinate(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for {
		for _, n := range r.ready() {
			delete(r.waiting, n.shard.ID)
			r.reading[n.shard.ID] = true
			reader := newReader(r, n)
			go func() { r.ended <- reader.read(ctx) }()
		}
		if len(r.reading) == 0 {
			return err
		}
		done := <-r.ended
		delete(r.reading, done.shard.ID)
		if done.err != nil {
			if err == nil {
				err = done.err
			}
			cancel(done.err)
		}
		if err != nil {
			clear(r.waiting)
			continue
		}
		r.descend(done)
	}
}

// ready returns the shards that can be read, the oldest first.
func (r *run) ready() []*node {
	var ready []*node
	for _, n := range r.waiting {
		if n.parents == 0 {
			ready = append(ready, n)
		}
	}
	slices.SortFunc(ready, func(a, b *node) int {
		return a.shard.First.Compare(b.shard.First)
	})
	return ready
}

// descend passes the results of a finished shard to its children.
func (r *run) descend(done outcome) {
	if r.cfg.Shard != "" {
		return
	}
	for _, child := range done.children {
		if !slices.Contains(child.Parents, done.shard.ID) {
			child.Parents = append(slices.Clone(child.Parents), done.shard.ID)
		}
		if r.waiting[child.ID] == nil && !r.cfg.Once {
			// The finished shard is not counted as unfinished any more; the loop below subtracts it
			// again.
			n := &node{shard: child, start: start{}}
			n.parents = r.unfinished(child.Parents) + 1
			r.waiting[child.ID] = n
		}
	}
	for _, n := range r.waiting {
		if slices.Contains(n.shard.Parents, done.shard.ID) {
			n.parents--
			n.filters = append(n.filters, done.filter)
			if done.complete.After(n.complete) {
				n.complete = done.complete
			}
		}
	}
}
