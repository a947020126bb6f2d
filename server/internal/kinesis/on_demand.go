package kinesis

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// The capacity of an on-demand stream is AWS's choice: AWS promises "up to double its previous peak
// write throughput" and adds shards at a new peak. Here a shard is split into halves after writes
// above half of its limits for busySeconds in a row, refused records counted, up to the throughput
// that AWS allows an on-demand stream. AWS takes up to 15 minutes for it, which would help no test.
// There is no scaling down, which AWS does over days. Without a limit on writes no shard is ever
// too hot, and none is split.
const busySeconds = 5

// maxOnDemandShards is the largest number of shards that an on-demand stream grows to: 10 GB/s of
// writes in three regions, 200 MB/s elsewhere, at 1 MB/s a shard (AWS, "Quotas and limits").
func maxOnDemandShards(region string) int {
	switch region {
	case "us-east-1", "us-west-2", "eu-west-1":
		return catalogue.MaxShards
	default:
		return 200
	}
}

// shardKey is a shard of one stream.
type shardKey struct {
	world   wire.World
	stream  string
	created int64
	shard   uint32
}

// demand is the load that a shard was offered in the current second.
type demand struct {
	second         int64
	bytes, records int64
	busy           int // seconds in a row above half of the limits, before this one
}

// count adds a record to a shard's demand, and requests a split if the demand is too high. A limit
// of 0 means none. The caller holds the lock.
func (t *throttle) count(
	st *catalogue.Stream, sh *catalogue.Shard, now, size, bytes, records int64,
) {
	key := shardKey{st.World, st.Name, st.Created, sh.Index}
	d := t.mu.demand[key]
	if d == nil {
		if len(t.mu.demand) >= maxMeters {
			return
		}
		d = &demand{second: now / 1000}
		t.mu.demand[key] = d
	}
	if second := now / 1000; second != d.second {
		high := (bytes > 0 && 2*d.bytes > bytes) || (records > 0 && 2*d.records > records)
		if high && second == d.second+1 {
			d.busy++
		} else {
			d.busy = 0
		}
		d.second, d.bytes, d.records = second, 0, 0
		if d.busy >= busySeconds {
			t.mu.hot[key] = true
			select {
			case t.wake <- struct{}{}:
			default:
			}
		}
	}
	d.bytes += size
	d.records++
}

// takeHot returns the shards to split, by stream.
func (t *throttle) takeHot() map[catalogue.Key][]shardKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	hot := make(map[catalogue.Key][]shardKey)
	for key := range t.mu.hot {
		of := catalogue.Key{World: key.world, Name: key.stream}
		hot[of] = append(hot[of], key)
	}
	clear(t.mu.hot)
	return hot
}

// scaler is the goroutine that splits the shards of on-demand streams.
type scaler struct {
	streams   *streams
	limits    *limiter
	resharder *resharder
	logger    *slog.Logger

	wake   chan struct{} // of one token
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (w *scaler) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.wake:
				w.scale(ctx)
			}
		}
	})
}

func (w *scaler) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.done.Wait()
}

// scale splits the shards that were found hot. It leaves streams alone that are not ACTIVE:
// if their shards are still hot in the next second, they are found again.
func (w *scaler) scale(ctx context.Context) {
	t := w.limits.throttle.Load()
	if t == nil {
		return
	}
	for key, hot := range t.takeHot() {
		size := scaleSize(int64(len(hot)))
		err := w.streams.change(ctx, size, func(tx *wal.Tx, now moment) error {
			st := w.streams.catalogue.Find(key.World, key.Name, now)
			if st == nil || st.Mode != catalogue.ModeOnDemand ||
				st.Status(now) != catalogue.StatusActive {
				return nil
			}
			steps := splitHot(st, hot, maxOnDemandShards(key.World.Region))
			if len(steps) == 0 {
				return nil
			}
			return w.resharder.reshard(tx, st, steps, now)
		})
		if err != nil && ctx.Err() == nil {
			w.logger.WarnContext(ctx, "the hot shards of an on-demand stream were not split, "+
				"they are tried again while they are hot", "stream", key.Name, "error", err)
		}
	}
}

// splitHot plans to split the hot open shards into halves, while there are fewer than most. With
// most equal shards, each would have a certain width; a shard narrower than half of that is not
// split: a few keys make it hot, and no split separates them.
func splitHot(st *catalogue.Stream, hot []shardKey, most int) []catalogue.Step {
	narrow := keyspace.Uniform(most)[0].End.Half()
	var steps []catalogue.Step
	for i, sh := range st.OpenShards() {
		if len(st.OpenShards())+len(steps) >= most {
			break
		}
		key := shardKey{st.World, st.Name, st.Created, sh.Index}
		if !slices.Contains(hot, key) || sh.Range.End.Sub(sh.Range.Start).Less(narrow) {
			continue
		}
		low, high := sh.Range.SplitAt(sh.Range.Middle())
		steps = append(steps, catalogue.SplitStep(i, low, high))
	}
	return steps
}
