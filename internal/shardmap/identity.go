package shardmap

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
)

// Identity makes sure that a stream is the one that its readers began with. The shards of a stream
// that was deleted and made again have the ids of the old ones, and an iterator is asked for by the
// stream's name: by itself GetShardIterator begins to read the new stream silently. But an iterator
// belongs to the stream that had the name when it was made. So if the name is still the old
// stream's after that, the iterator is, too.
//
// That costs one DescribeStreamSummary for each iterator that is made, and AWS allows 20 a second
// for an account (AWS, "DescribeStreamSummary"). So the readers of a process share them: a reader
// that comes while a look is under way waits for the next one, which counts for all that wait.
type Identity struct {
	look    func(context.Context) error
	turn    chan struct{} // held while looking
	started atomic.Int64  // looks that were begun
	passed  int64         // the last look that found the stream unchanged; guarded by turn
	began   time.Time     // when the last look began; guarded by turn
}

// looksApart is the least time between two looks.
const looksApart = 200 * time.Millisecond

// NewIdentity returns the Identity of a stream. look asks for the stream once, and returns nil if
// it is the same one.
func NewIdentity(look func(context.Context) error) *Identity {
	return &Identity{look: look, turn: make(chan struct{}, 1)}
}

// Same returns nil if the stream is the same one, by a look that began after the call, or the
// look's error. It waits out throttling.
func (i *Identity) Same(ctx context.Context) error {
	wanted := i.started.Load() + 1
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case i.turn <- struct{}{}:
	}
	defer func() { <-i.turn }()
	for pause := looksApart; i.passed < wanted; pause = min(2*pause, maxWait) {
		if err := retry.Wait(ctx, looksApart-time.Since(i.began)); err != nil {
			return err
		}
		number := i.started.Add(1)
		i.began = time.Now()
		switch err := i.look(ctx); {
		case err == nil:
			i.passed = number
		case awserr.Kinesis.Of(err) != awserr.Throttled:
			return err
		default:
			if err := retry.Wait(ctx, pause/2+rand.N(pause/2)); err != nil {
				return err
			}
		}
	}
	return nil
}
