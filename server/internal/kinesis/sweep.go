package kinesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// sweeper is the goroutine that sweeps at intervals.
type sweeper struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (w *sweeper) start(ctx context.Context, every time.Duration, sweep func(context.Context)) {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.done.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				sweep(ctx)
			}
		}
	})
}

func (w *sweeper) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.done.Wait()
}

// sweep removes invisible data: deleted streams after the end of their deletion, closed shards with
// expired data, and records past the retention period.
func (s *Service) sweep(ctx context.Context) {
	s.throttle.Load().sweep(s.clock.read())
	for _, st := range s.allStreams() {
		if err := s.sweepStream(ctx, st.key()); err != nil {
			if ctx.Err() == nil {
				s.cfg.Logger.WarnContext(ctx, "expired data is still there, the next sweep "+
					"tries again", "stream", st.Name, "error", err)
			}
			return // the log takes nothing now
		}
	}
}

func (s *Service) allStreams() []*stream {
	c := s.catalogue
	c.mu.RLock()
	defer c.mu.RUnlock()
	streams := make([]*stream, 0, len(c.streams))
	for _, st := range c.streams {
		streams = append(streams, st)
	}
	return streams
}

func (s *Service) sweepStream(ctx context.Context, key streamKey) error {
	c := s.catalogue
	c.mu.RLock()
	st := c.streams[key]
	now := s.clock.read()
	c.mu.RUnlock()
	if st == nil {
		return nil
	}
	if st.gone(now) || len(st.expired(now)) > 0 {
		err := s.change(ctx, 4096, func(tx *wal.Tx, now int64) error {
			if st = c.streams[key]; st == nil {
				return nil
			}
			if st.gone(now) {
				return c.drop(tx, st, now)
			}
			return c.expire(tx, st, now)
		})
		if err != nil {
			return fmt.Errorf("remove what has expired: %w", err)
		}
	}
	if st == nil || st.gone(now) {
		return nil
	}
	return s.trim(ctx, st, now)
}

// trim removes the records that are older than the stream's retention period.
func (s *Service) trim(ctx context.Context, st *stream, now int64) error {
	var first error
	for _, sh := range st.Shards {
		err := s.shards.Trim(ctx, sh.Log, now-st.retention())
		if err != nil && !errors.Is(err, shardlog.ErrDeleted) && first == nil {
			first = fmt.Errorf("trim shard %s: %w", sh.id(), err)
		}
	}
	return first
}

// expired returns the indexes of the closed shards with expired data.
func (st *stream) expired(now int64) []uint32 {
	var expired []uint32
	for _, sh := range st.Shards {
		if sh.expired(now, st.retention()) {
			expired = append(expired, sh.Index)
		}
	}
	return expired
}

// drop removes a stream from the catalogue after the end of its deletion.
func (c *catalogue) drop(tx *wal.Tx, st *stream, now int64) error {
	return c.commit(tx, &change{Op: changeDrop, At: now, World: &st.World, Name: st.Name})
}

// expire removes the stream's expired shards from the catalogue, if there are any.
func (c *catalogue) expire(tx *wal.Tx, st *stream, now int64) error {
	expired := st.expired(now)
	if len(expired) == 0 {
		return nil
	}
	return c.commit(tx, &change{
		Op: changeExpire, At: now, World: &st.World, Name: st.Name, Expire: expired,
	})
}
