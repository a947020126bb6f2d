package producer_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

// The producer puts to the real server over the SDK, in virtual time. The server injects every
// fault it has, is killed and restarted on a disk that loses unsynced writes, and reshards. Then
// the stream, read parents first, has every record, the first occurrences in the order of each key,
// and no more duplicates than attempts without an answer.
func TestOrderAgainstTheServer(t *testing.T) {
	runs := 3
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil {
		runs *= n
	}
	for range runs {
		for _, c := range []struct {
			order   producer.Order
			horizon time.Duration
		}{
			{order: producer.OrderKey},
			{order: producer.OrderKey, horizon: 4 * time.Second}, // shorter than the server's absence
			{order: producer.OrderNone},
			{order: producer.OrderNone, horizon: 4 * time.Second},
			{order: producer.OrderShard},
			{order: producer.OrderShard, horizon: 4 * time.Second},
			{order: producer.OrderPlain},
			{order: producer.OrderChained},
		} {
			seed := rand.Uint64()
			name := fmt.Sprintf("order=%v/horizon=%v/seed=%d", c.order, c.horizon, seed)
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { againstTheServer(t, c.order, c.horizon, seed) })
			})
		}
	}
	t.Logf("soak: %d seeds", runs)
}

func againstTheServer(
	t *testing.T, order producer.Order, horizon time.Duration, seed uint64,
) {
	seam.SetH(t, horizon)
	random := rand.New(rand.NewPCG(seed, 1))
	const records, keys = 1500, 200
	ctx := t.Context()
	server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithCrashes(seed),
		runneltest.WithStream("orders", 3), runneltest.WithLogger(slog.New(slog.DiscardHandler)),
		runneltest.WithFaults(fmt.Sprintf("seed=%d PutRecords:delay=15ms PutRecords:delay=40ms%%20 "+
			"PutRecords:lose-answer%%5 PutRecords:lose-request%%5 PutRecords:commit-late=3s%%4 "+
			"PutRecords:hang=4s%%2 PutRecords:error-500%%4 PutRecords:throttle%%3 "+
			"PutRecords:fail-record=1/7%%20 PutRecords:throttle-record=1/5%%15 "+
			"PutRecord:delay=5ms PutRecord:lose-answer%%3 PutRecord:lose-request%%3 "+
			"PutRecord:commit-late=3s%%2 PutRecord:error-500%%2 PutRecord:throttle%%3", seed%1000)))
	p, err := producer.New(ctx, producer.Config{
		Stream: "orders", Kinesis: server.Kinesis(), MaxInFlight: 4, MaxBatchRecords: 100,
		CallTimeout: time.Second, Order: order, Reader: server.Kinesis(),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	others.Go(func() { reshard(ctx, t, server, 6, rand.New(rand.NewPCG(seed, 2))) })
	others.Go(func() { killTwice(ctx, t, server, 5*time.Second+2*horizon, rand.New(rand.NewPCG(seed, 3))) })
	var mu sync.Mutex
	placed := map[string]int{} // by shard and sequence number
	last := map[string]int{}
	for range records {
		key := fmt.Sprint("key-", random.IntN(keys))
		if random.IntN(10) == 0 {
			key = "hot"
		}
		last[key]++
		record := runnel.Record{PartitionKey: key, Data: fmt.Append(nil, last[key])}
		if err := p.PutFunc(ctx, record, func(r producer.Result) {
			mu.Lock()
			defer mu.Unlock()
			placed[string(r.ShardID)+"/"+r.Position.String()]++
			if r.Err != nil {
				t.Error(r.Err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if random.IntN(20) == 0 {
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		}
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	others.Wait()
	time.Sleep(5 * time.Second) // late commits
	if err := server.SetFaults(""); err != nil {
		t.Fatal(err)
	}
	stats := p.Stats()
	if len(placed) != records || stats.Delivered != records {
		t.Errorf("%d acknowledged places of %d, %+v", len(placed), records, stats)
	}
	all := readAll(t, server.Kinesis())
	check := checkStream
	if order == producer.OrderNone {
		check = checkContents
	}
	if order != producer.OrderPlain && order != producer.OrderChained {
		filtered := check(t, passed(all), maps.Clone(placed), last)
		if filtered > 0 {
			t.Errorf("%d doubles pass the filter", filtered)
		}
	}
	doubles := check(t, all, placed, last)
	if len(placed) > 0 {
		t.Errorf("%d records are not where they were acknowledged to be", len(placed))
	}
	if uint64(doubles) > stats.Unknown {
		t.Errorf("%d doubles, and %d attempts without an answer", doubles, stats.Unknown)
	}
	t.Logf("%d calls, %d retried, %d throttled, %d unknown, %d doubles; %d looked up, %d found, "+
		"%d renewed, %d void; faults: %v", stats.Calls, stats.Retried, stats.Throttled, stats.Unknown, doubles,
		stats.LookedUp, stats.Found, stats.Renewed, stats.Void, server.FaultCounts())
}

// checkStream removes the records that it finds from placed, compares the first occurrences of each
// key with the order of put, and returns the number of duplicates.
func checkStream(t *testing.T, records []stored, placed, last map[string]int) (doubles int) {
	t.Helper()
	newest := map[string]int{}
	for _, r := range records {
		delete(placed, r.place)
		switch number, _ := strconv.Atoi(r.data); {
		case number == newest[r.key]+1:
			newest[r.key] = number
		case number <= newest[r.key]:
			doubles++
		default:
			t.Fatalf("key %s: %d is read first after %d", r.key, number, newest[r.key])
		}
	}
	for key, n := range last {
		if newest[key] != n {
			t.Errorf("key %s: %d of %d are in the stream", key, newest[key], n)
		}
	}
	return doubles
}

// checkContents is checkStream for OrderNone: it requires each record of a key, in any order.
func checkContents(t *testing.T, records []stored, placed, last map[string]int) (doubles int) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range records {
		delete(placed, r.place)
		if seen[r.key+"/"+r.data] {
			doubles++
		}
		seen[r.key+"/"+r.data] = true
	}
	for key, n := range last {
		for i := range n {
			if !seen[fmt.Sprintf("%s/%d", key, i+1)] {
				t.Errorf("key %s: record %d is not in the stream", key, i+1)
			}
		}
	}
	return doubles
}

// killTwice kills the server and restarts it later, twice.
func killTwice(
	ctx context.Context, t *testing.T, server *runneltest.Server, most time.Duration, random *rand.Rand,
) {
	for range 2 {
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(most))))
		if err := server.Restart(ctx); err != nil {
			t.Error(err)
		}
	}
}

// reshard splits and merges shards at random while records flow.
func reshard(ctx context.Context, t *testing.T, server *runneltest.Server, times int, random *rand.Rand) {
	name := aws.String("orders")
	for done, tried := 0, 0; done < times; tried++ {
		if tried == 1000 {
			t.Errorf("%d of %d reshards were made", done, times)
			return
		}
		time.Sleep(time.Duration(random.IntN(700)) * time.Millisecond)
		shards, err := shardsOf(ctx, server.Kinesis())
		if err != nil {
			continue // killed
		}
		var open []types.Shard
		for _, shard := range shards {
			if shard.SequenceNumberRange.EndingSequenceNumber == nil {
				open = append(open, shard)
			}
		}
		of := open[random.IntN(len(open))]
		if random.IntN(3) > 0 {
			_, err = server.Kinesis().SplitShard(ctx, &kinesis.SplitShardInput{
				StreamName: name, ShardToSplit: of.ShardId,
				NewStartingHashKey: aws.String(middle(t, of.HashKeyRange)),
			})
		} else {
			_, err = server.Kinesis().MergeShards(ctx, &kinesis.MergeShardsInput{
				StreamName: name, ShardToMerge: of.ShardId,
				AdjacentShardToMerge: open[random.IntN(len(open))].ShardId,
			})
		}
		if err == nil {
			done++
		}
	}
}

func middle(t *testing.T, of *types.HashKeyRange) string {
	return rangeOf(t, of).Middle().String()
}

func rangeOf(t *testing.T, of *types.HashKeyRange) keyspace.Range {
	start, err := keyspace.Parse(*of.StartingHashKey)
	if err != nil {
		t.Error(err)
	}
	end, err := keyspace.Parse(*of.EndingHashKey)
	if err != nil {
		t.Error(err)
	}
	return keyspace.Range{Start: start, End: end}
}

func shardsOf(ctx context.Context, client *kinesis.Client) ([]types.Shard, error) {
	var shards []types.Shard
	input := &kinesis.ListShardsInput{StreamName: aws.String("orders")}
	for {
		page, err := client.ListShards(ctx, input)
		if err != nil {
			return nil, err
		}
		shards = append(shards, page.Shards...)
		if page.NextToken == nil {
			return shards, nil
		}
		input = &kinesis.ListShardsInput{NextToken: page.NextToken}
	}
}

// stored is a record as a reader gets it, unpacked from its aggregate.
type stored struct {
	key, data, place string
	passed           bool // by the filter
}

// passed returns the records that the filter delivers.
func passed(all []stored) (filtered []stored) {
	for _, r := range all {
		if r.passed {
			filtered = append(filtered, r)
		}
	}
	return filtered
}

// readAll reads the stream to its tip, each shard after its parents, without void records.
func readAll(t *testing.T, client *kinesis.Client) []stored {
	t.Helper()
	shards, err := shardsOf(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	var all []stored
	read := map[string]bool{}
	known := map[string]bool{}
	filters := map[string]*aggregate.Filter{}
	for _, shard := range shards {
		known[*shard.ShardId] = true
	}
	for len(read) < len(shards) {
		before := len(read)
		for _, shard := range shards {
			parent, other := aws.ToString(shard.ParentShardId), aws.ToString(shard.AdjacentParentShardId)
			if read[*shard.ShardId] || (known[parent] && !read[parent]) || (known[other] && !read[other]) {
				continue
			}
			filter := aggregate.Union(filters[parent], filters[other])
			filters[*shard.ShardId] = filter
			all = append(all, readShard(t, client, shard, filter)...)
			read[*shard.ShardId] = true
		}
		if len(read) == before {
			t.Fatalf("%d shards wait for each other", len(shards)-len(read))
		}
	}
	return all
}

func readShard(
	t *testing.T, client *kinesis.Client, of types.Shard, filter *aggregate.Filter,
) []stored {
	t.Helper()
	shard, hashes := *of.ShardId, rangeOf(t, of.HashKeyRange)
	start, err := client.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("orders"), ShardId: &shard,
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []stored
	for iterator := start.ShardIterator; iterator != nil; {
		page, err := client.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			place := shard + "/" + *r.SequenceNumber
			var d aggregate.Decoder
			if !d.Open(r.Data) {
				all = append(all, stored{*r.PartitionKey, string(r.Data), place, true})
				continue
			}
			if d.Check(hashes) != nil {
				filter.Advance(*r.ApproximateArrivalTimestamp)
				continue // void
			}
			fresh := map[int]bool{}
			for sub := range filter.Pass(&d, *r.ApproximateArrivalTimestamp) {
				fresh[sub] = true
			}
			for sub, inside := range d.Records() {
				at := place
				if sub > 0 {
					at += fmt.Sprint("/", sub)
				}
				all = append(all, stored{inside.PartitionKey, string(inside.Data), at, fresh[sub]})
			}
		}
		if iterator = page.NextShardIterator; len(page.Records) == 0 && *page.MillisBehindLatest == 0 {
			return all
		}
	}
	return all
}
