package kinesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// Random trees of splits, merges and scalings, with puts all the while and a restart now and
// then, also while one of them is pending, unless UPDATING takes no time: the open shards always
// tile the key space, every record is there once, and from parents to children the records of a
// key have growing sequence numbers, in the order of their puts.
func TestReshardTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := newTestClock()
		delay := rapid.SampledFrom([]time.Duration{-1, time.Second}).Draw(rt, "delay")
		later := func(cfg *Config) { cfg.StreamDelay = delay }
		n := newNode(t, at(clock), later)
		defer func() { n.stop() }()
		n.must(n.EnsureStream(n.ctx, here, "orders", rapid.IntRange(1, 6).Draw(rt, "shards")))
		w := &producer{n: n, keys: 12}
		for range rapid.IntRange(1, 6*soak()).Draw(rt, "steps") {
			seed := rapid.Uint64().Draw(rt, "step")
			rng := rand.New(rand.NewPCG(seed, 1))
			if rng.IntN(10) == 0 {
				before := fmt.Sprint(n.list("orders"))
				n.stop()
				n = startNode(t, n.fs, at(clock), later)
				w.n = n
				if after := fmt.Sprint(n.list("orders")); after != before {
					rt.Fatalf("after a restart there are\n%s\nbefore\n%s", after, before)
				}
				continue
			}
			var puts sync.WaitGroup
			puts.Go(func() { w.put(3) })
			n.reshardOnce(rng, "orders")
			if rng.IntN(2) == 0 {
				clock.advance(time.Second)
				n.settle()
			}
			puts.Wait()
			checkShape(t, n.list("orders"))
			if st := n.streams.peek(here, "orders", n.streams.clock.read()); delay < 0 && len(st.Pending) > 0 {
				rt.Fatal("a resharding that takes no time is pending")
			}
		}
		clock.advance(time.Second)
		n.settle()
		w.put(1)
		if status := n.status("orders"); status != catalogue.StatusActive {
			rt.Fatalf("in the end the stream is %s", status)
		}
		got := n.walk("orders")
		for key, want := range w.sent {
			if got := got[fmt.Sprint(key)]; !slices.Equal(got, want) {
				rt.Fatalf("key %d has %v, want %v", key, got, want)
			}
		}
	})
}

// producer puts records of some keys, numbered.
type producer struct {
	n      *node
	keys   int
	serial int
	sent   [][]string // the stored records by key
}

func (w *producer) put(rounds int) {
	if w.sent == nil {
		w.sent = make([][]string, w.keys)
	}
	for range rounds {
		var records []m
		for key := range w.keys {
			w.serial++
			text := fmt.Sprint(w.serial)
			w.sent[key] = append(w.sent[key], text)
			records = append(records, m{"PartitionKey": fmt.Sprint(key), "Data": []byte(text)})
		}
		out, err := w.n.try("PutRecords", m{"StreamName": "orders", "Records": records})
		if err != nil || out["FailedRecordCount"] != 0.0 {
			w.n.t.Errorf("a put during a resharding: %v, %v", out, err)
		}
	}
}

// reshardOnce splits, merges or scales, whatever the stream's shards allow.
func (n *node) reshardOnce(rng *rand.Rand, stream string) {
	st := n.streams.peek(n.world, stream, n.streams.clock.read())
	i := rng.IntN(len(st.OpenShards()))
	sh := st.OpenShards()[i]
	operation, in := "UpdateShardCount", scaleTo(stream, max(1, len(st.OpenShards())/2)+rng.IntN(12))
	switch rng.IntN(3) {
	case 0:
		at := sh.Range.Middle()
		if rng.IntN(2) == 0 { // next to an edge, as narrow as it gets
			at = sh.Range.Start.Add(keyspace.Key{Lo: 2})
		}
		operation, in = "SplitShard", m{
			"StreamName": stream, "ShardToSplit": sh.ID(), "NewStartingHashKey": at.String(),
		}
	case 1:
		other := st.OpenShards()[max(0, i-1)]
		operation, in = "MergeShards", m{
			"StreamName": stream, "ShardToMerge": other.ID(), "AdjacentShardToMerge": sh.ID(),
		}
	}
	if _, err := n.try(operation, in); err != nil && !errors.As(err, new(*wire.Error)) {
		n.t.Error(err)
	}
}
