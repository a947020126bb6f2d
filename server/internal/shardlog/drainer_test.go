package shardlog

import (
	"strings"
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
