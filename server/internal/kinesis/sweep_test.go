package kinesis

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// TestADeletedStreamsSpace is free when the deletion ends, and not at the next sweep a minute later.
func TestADeletedStreamsSpace(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": -1, "later": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t, func(cfg *Config) { cfg.StreamDelay = delay })
				defer n.stop()
				time.Sleep(90 * time.Second) // half-way between two sweeps
				n.must(n.EnsureStream(n.ctx, here, "orders", 1))
				n.put("orders", "k", "one")
				time.Sleep(time.Second)
				if n.shards.Bytes() == 0 {
					t.Fatal("there is no segment")
				}
				n.call("DeleteStream", m{"StreamName": "orders"})
				time.Sleep(max(delay, 0) + time.Second)
				synctest.Wait()
				if left := n.shards.Bytes(); left != 0 {
					t.Errorf("%d bytes are left", left)
				}
			})
		})
	}
}

// TestASweepPassesABadDisk: an I/O error in a shard does not end the sweep of the other streams.
func TestASweepPassesABadDisk(t *testing.T) {
	var broken atomic.Bool
	clock := newTestClock()
	fs := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if broken.Load() && op.Kind == vfs.OpRead && strings.Contains(op.Name, "shards/2/") {
			return errors.New("input/output error")
		}
		return nil
	})
	n := startNode(t, fs, at(clock))
	const streams = 6
	putAll := func() {
		for i := range streams {
			n.put(fmt.Sprintf("s%d", i), "k", strings.Repeat("x", 1000))
		}
		n.must(n.log.Checkpoint(n.ctx)) // everything is in segments
	}
	for i := range streams {
		n.must(n.EnsureStream(n.ctx, here, fmt.Sprintf("s%d", i), 1))
	}
	putAll()
	clock.advance(25 * time.Hour)
	putAll() // into the same segments, which must be read to find what has expired
	broken.Store(true)
	n.sweeper.sweep(n.ctx)
	broken.Store(false)
	for id := shardlog.ID(1); id <= streams; id++ {
		want := uint64(2)
		if id == 2 {
			want = 1
		}
		if oldest, _ := n.shards.Shard(id).Bounds(); oldest != want {
			t.Errorf("shard %d begins with record %d, want %d", id, oldest, want)
		}
	}
}
