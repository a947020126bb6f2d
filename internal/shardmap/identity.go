package shardmap

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
)

// Identity makes sure that a stream is the one with which its readers began. If a stream was
// deleted and made again, its shards have the ids of the old ones. GetShardIterator takes the
// stream's name, so by itself it would silently begin to read the new stream. But an iterator
// belongs to the stream that had the name when the iterator was made. So if the name still belongs
// to the old stream afterwards, the iterator does, too.
//
// That costs one DescribeStreamSummary for each new iterator, and AWS allows 20 a second for an
// account (AWS, "DescribeStreamSummary"). So the readers of a process share these calls: a reader
// that comes during a look waits for the next one, which counts for all waiting readers.
type Identity struct {
	look    func(context.Context) error
	turn    chan struct{} // held while looking
	started atomic.Int64  // looks that were begun
	passed  int64         // the last look that found the stream unchanged; guarded by turn
	began   time.Time     // when the last look began; guarded by turn
}

// looksApart is the least time between two looks.
const looksApart = 200 * time.Millisecond

var throttledLook = retry.Backoff{Min: looksApart, Max: maxWait}

// NewIdentity returns the Identity of a stream. look asks for the stream once, and returns nil if
// it is still the same one.
func NewIdentity(look func(context.Context) error) *Identity {
	return &Identity{look: look, turn: make(chan struct{}, 1)}
}

// Same returns nil if the stream is still the same one, by a look that began after the call.
// Otherwise it returns the look's error. It waits until throttling ends.
func (i *Identity) Same(ctx context.Context) error {
	wanted := i.started.Load() + 1
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case i.turn <- struct{}{}:
	}
	defer func() { <-i.turn }()
	for throttles := 1; i.passed < wanted; throttles++ {
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
			if err := throttledLook.Wait(ctx, throttles); err != nil {
				return err
			}
		}
	}
	return nil
}
