package shardlog

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// Batches that come while the drainer gives other shards their turn gather until its next round,
// and go into one write.
func TestBatchesGatherDuringARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{})
		writes := 0
		e := setup{fs: vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
			if op.Kind != vfs.OpWrite || !strings.HasSuffix(op.Name, segmentSuffix) {
				return nil
			}
			if strings.Contains(op.Name, "shards/1/") {
				<-turn
			} else {
				writes++ // the drainer writes alone
			}
			return nil
		})}.mustOpen(t)
		defer e.mustClose(t)
		for id := ID(1); id <= 2; id++ {
			if err := e.do(t.Context(), opCreate, id); err != nil {
				t.Fatal(err)
			}
		}
		put := func(id ID, from int) {
			if _, err := e.append(t.Context(), id, entry(id, from, 100)); err != nil {
				t.Fatal(err)
			}
		}
		put(1, 0)
		time.Sleep(2 * defaultDrainDelay) // virtual: the round with shard 1 has begun
		put(2, 0)
		close(turn)
		synctest.Wait()
		put(2, 1)
		time.Sleep(2 * defaultDrainDelay)
		if !e.store.Shard(2).drainedTo(3) || writes != 1 {
			t.Errorf("two records of shard 2 took %d writes, want 1", writes)
		}
	})
}

// A round makes the first segments of many shards together, each once. A shard whose segment cannot
// be made holds up no other, and is written later.
func TestManyFirstSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards, bad = 2 * manyFresh, "shards/7/"
		var made, failed atomic.Int64
		e := setup{fs: vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
			switch {
			case op.Kind != vfs.OpCreate || !strings.HasSuffix(op.Name, segmentSuffix):
			case strings.Contains(op.Name, bad) && failed.Add(1) <= 2: // together, and in its turn
				return errors.New("no space left")
			default:
				made.Add(1)
			}
			return nil
		})}.mustOpen(t)
		defer e.mustClose(t)
		for id := ID(1); id <= shards; id++ {
			if err := e.do(t.Context(), opCreate, id); err != nil {
				t.Fatal(err)
			}
			if _, err := e.append(t.Context(), id, entry(id, 0, 100)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * defaultDrainDelay) // virtual
		for id := ID(1); id <= shards; id++ {
			if drained := e.store.Shard(id).drainedTo(2); drained != (id != 7) {
				t.Errorf("shard %d: in its segment %v", id, drained)
			}
		}
		if failed.Load() != 2 {
			t.Errorf("shard 7 was tried %d times, want 2: with the others, and in its turn",
				failed.Load())
		}
		time.Sleep(2 * defaultRetryDelay)
		if !e.store.Shard(7).drainedTo(2) || made.Load() != shards {
			t.Errorf("%d segments were made, want %d", made.Load(), shards)
		}
	})
}
