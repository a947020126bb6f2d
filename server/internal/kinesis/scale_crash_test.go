package kinesis

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// After a power loss at any time, all of a scaling is there or nothing of it.
func TestScaleIsWhole(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(30 * soak()) {
		n := startNode(t, vfs.NewCrashable())
		n.create("orders", 40)
		rng := rand.New(rand.NewPCG(seed, 3))
		var scaling sync.WaitGroup
		scaling.Go(func() { _, _ = n.try("UpdateShardCount", scaleTo("orders", 57)) })
		for range rng.IntN(4) { // let some of it happen, or not
			n.streams.peek(here, "orders", n.streams.clock.read())
			n.list("orders")
		}
		left := n.fs.(*vfs.Mem).Crash(rng)
		scaling.Wait()
		n.stop()
		n = startNode(t, left)
		ranges := n.openRanges("orders")
		if count := len(ranges); (count != 40 && count != 57) || !equal(ranges, count) {
			t.Fatalf("seed %d: a crash leaves %d shards", seed, count)
		}
		seen[len(ranges)] = true
		checkShape(t, n.list("orders"))
		n.stop()
	}
	t.Log("seen: ", fmt.Sprint(seen))
	t.Logf("soak: %d seeds, %d crashes", 30*soak(), 30*soak())
}
