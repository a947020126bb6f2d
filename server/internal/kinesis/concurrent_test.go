package kinesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
)

// Puts during splits and merges: every acknowledged record is read exactly once, and the
// records of a key are in the order of their puts, over all the shards that had the key.
func TestPutsDuringResharding(t *testing.T) {
	const writers, keys, batches, run = 6, 10, 40, 10
	n := newNode(t)
	n.create("orders", 2)
	var acked sync.Map // data -> shard and number
	var puts sync.WaitGroup
	for w := range writers {
		puts.Go(func() {
			for b := range batches * soak() {
				var records []m
				for k := range keys {
					for i := range run {
						key := fmt.Sprintf("w%d-k%d", w, k)
						records = append(records, m{
							"PartitionKey": key,
							"Data":         fmt.Appendf(nil, "%s/%06d", key, run*b+i),
						})
					}
				}
				out, err := n.try("PutRecords", m{"StreamName": "orders", "Records": records})
				if err != nil || out["FailedRecordCount"] != 0.0 {
					t.Errorf("a put during a resharding: %v, %v", out, err)
					return
				}
				for i, result := range out["Records"].([]any) {
					r := result.(m)
					acked.Store(string(records[i]["Data"].([]byte)),
						fmt.Sprint(r["ShardId"], " ", r["SequenceNumber"]))
				}
			}
		})
	}
	done := make(chan struct{})
	var resharding sync.WaitGroup
	resharding.Go(func() { n.reshardUntil(done, "orders") })
	puts.Wait()
	close(done)
	resharding.Wait()

	shards := n.list("orders")
	checkShape(t, shards)
	t.Logf("soak: %d operations; %d shards", writers*batches*soak(), len(shards))
	numbers := map[string][]string{} // key -> number and data
	for _, sh := range shards {
		records, _ := n.drain("orders", sh.ShardId)
		for _, r := range records {
			at, found := acked.LoadAndDelete(string(r.Data))
			if !found || at != sh.ShardId+" "+r.SequenceNumber {
				t.Fatalf("%s is at %s %s, it was acknowledged at %v", r.Data, sh.ShardId,
					r.SequenceNumber, at)
			}
			numbers[r.PartitionKey] = append(numbers[r.PartitionKey], r.SequenceNumber+" "+string(r.Data))
		}
	}
	acked.Range(func(data, at any) bool {
		t.Errorf("%s was acknowledged at %s and is not there", data, at)
		return true
	})
	if len(numbers) != writers*keys {
		t.Errorf("there are %d keys, want %d", len(numbers), writers*keys)
	}
	for key, row := range numbers {
		slices.Sort(row)
		for i, line := range row {
			if want := fmt.Sprintf("%s/%06d", key, i); !strings.HasSuffix(line, want) {
				t.Fatalf("record %d of %s is %s, want %s", i, key, line, want)
			}
		}
	}
}

// reshardUntil splits and merges random shards.
func (n *node) reshardUntil(done <-chan struct{}, stream string) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 * soak() {
		select {
		case <-done:
			return
		default:
		}
		shards := n.list(stream, "ShardFilter", m{"Type": "AT_LATEST"})
		slices.SortFunc(shards, func(a, b listed) int {
			x, _ := keyspace.Parse(a.HashKeyRange.StartingHashKey)
			y, _ := keyspace.Parse(b.HashKeyRange.StartingHashKey)
			return x.Compare(y)
		})
		i := rng.IntN(len(shards))
		operation, in := "SplitShard", m{"StreamName": stream, "ShardToSplit": shards[i].ShardId}
		start, _ := keyspace.Parse(shards[i].HashKeyRange.StartingHashKey)
		end, _ := keyspace.Parse(shards[i].HashKeyRange.EndingHashKey)
		in["NewStartingHashKey"] = keyspace.Range{Start: start, End: end}.Middle().String()
		if i > 0 && rng.IntN(8) < len(shards) {
			operation, in = "MergeShards", m{
				"StreamName":   stream,
				"ShardToMerge": shards[i-1].ShardId, "AdjacentShardToMerge": shards[i].ShardId,
			}
		}
		if _, err := n.try(operation, in); err != nil && !errors.As(err, new(*wire.Error)) {
			n.t.Error(err)
			return
		}
	}
}
