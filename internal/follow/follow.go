package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// run is one Run.
type run struct {
	cfg      Config
	since    time.Time     // with Once: the stream's time at the start, or a little later
	parallel chan struct{} // held by who reads and handles a page
	handling sync.Mutex    // Handle is called one at a time
	ended    chan outcome
	horizon  atomic.Pointer[shardmap.Horizon] // as of the last look
	identity *shardmap.Identity

	// The coordinator's own. Shards that are done are in neither, so neither grows with the
	// stream's age.
	waiting map[runnel.ShardID]*node
	reading map[runnel.ShardID]bool
}

// node is a shard whose parents are not done.
type node struct {
	shard   shardmap.Shard
	filters []*aggregate.Filter // of the parents that are done
	parents int                 // that are not
	start   start
	// complete is the latest time up to which a parent was read whole: nothing arrived in the
	// shard before. Zero where the reading begins.
	complete time.Time
}

// start is how the reading of a shard begins, and when it is enough.
type start struct {
	from    From
	mustEnd bool // with Once: it was closed at the start, and is done at its end alone
}

// outcome is how the reading of a shard came out.
type outcome struct {
	shard    shardmap.Shard
	filter   *aggregate.Filter
	children []shardmap.Shard
	complete time.Time // node.complete of the children
	err      error
}

// Run reads the stream until ctx ends, and returns its cause; nil when what Config.Once or
// Config.Shard asks for is done. It ends with an error of Handle, or one of the API that trying
// again does not mend, as for a stream that is not there. Outages and throttling are waited
// out. When Run returns, all it started has ended.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	r := &run{
		cfg: cfg.withDefaults(), ended: make(chan outcome),
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
	out, err := r.describe(ctx)
	if err != nil {
		return err
	}
	r.horizon.Store(horizonOf(out))
	r.since = time.Now()
	if date, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok {
		r.since = date.Add(time.Second) // the header has whole seconds
	}
	shards, err := shardmap.List(ctx, r.cfg.Client, r.cfg.Stream, nil)
	if err != nil {
		return err
	}
	switch {
	case r.cfg.Shard != "":
		at := slices.IndexFunc(shards, func(s shardmap.Shard) bool { return s.ID == r.cfg.Shard })
		if at < 0 {
			return fmt.Errorf("%w: it has no shard %s", ErrShard, r.cfg.Shard)
		}
		shards = []shardmap.Shard{shards[at]}
	case r.cfg.From == Latest:
		// A shard without children is open, or is just being replaced.
		shards = slices.DeleteFunc(slices.Clone(shards), func(s shardmap.Shard) bool {
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

func (r *run) describe(ctx context.Context) (*kinesis.DescribeStreamSummaryOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.cfg.Client.DescribeStreamSummary(ctx,
		&kinesis.DescribeStreamSummaryInput{StreamName: &r.cfg.Stream})
}

func horizonOf(out *kinesis.DescribeStreamSummaryOutput) *shardmap.Horizon {
	summary := out.StreamDescriptionSummary
	if summary == nil {
		return &shardmap.Horizon{}
	}
	return &shardmap.Horizon{
		Created:   aws.ToTime(summary.StreamCreationTimestamp),
		Retention: time.Duration(aws.ToInt32(summary.RetentionPeriodHours)) * time.Hour,
	}
}

// ErrRecreated is returned when the stream was deleted and created again while it was read.
var ErrRecreated = errors.New("the stream was deleted and created again while it was read; " +
	"nothing of the new one was taken for the old one: start again to read the new one")

// look returns nil if the stream is still the one that the reading began with.
func (r *run) look(ctx context.Context) error {
	out, err := r.describe(ctx)
	if err != nil {
		return err
	}
	now := horizonOf(out)
	if !now.Created.Equal(r.horizon.Load().Created) {
		return ErrRecreated
	}
	r.horizon.Store(now)
	return nil
}

// unfinished counts the shards that are to be read, or being read.
func (r *run) unfinished(shards []runnel.ShardID) (n int) {
	for _, s := range shards {
		if r.reading[s] || r.waiting[s] != nil {
			n++
		}
	}
	return n
}

// coordinate starts each shard when its parents are done, and ends when none is left.
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

// descend hands a shard that is done over to its children.
func (r *run) descend(done outcome) {
	if r.cfg.Shard != "" {
		return
	}
	for _, child := range done.children {
		if !slices.Contains(child.Parents, done.shard.ID) {
			child.Parents = append(slices.Clone(child.Parents), done.shard.ID)
		}
		if r.waiting[child.ID] == nil && !r.cfg.Once {
			// The shard that is done is not counted any more: it is below.
			n := &node{shard: child, start: start{from: Oldest}}
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
