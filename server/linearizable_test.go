package server_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// TestLinearizable lets clients put to and read from the same shards at once, while answers and
// requests are lost, calls are late, records fail one by one, and the power goes. One order of all
// calls must then explain the clients' answers, and each call must take effect in an instant
// between its request and its answer: a put appends to its shard, a read sees all of it. A call
// without an answer may have happened later, or never.
func TestLinearizable(t *testing.T) {
	for seed := range uint64(12 * soak()) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			h := newHistory()
			synctest.Test(t, func(t *testing.T) { h.live(t, seed) })
			h.check(t)
		})
	}
	t.Logf("soak: %d seeds, %d operations", 12*soak(),
		12*soak()*(logWriters+logReaders)*logCalls)
}

// trouble holds the faults of every run; the seed comes before it.
const trouble = " *:delay=1ms%30 *:delay=3ms%20 *:error-500%2 *:lose-request%2" +
	" PutRecord:lose-answer%6 PutRecords:lose-answer%6 PutRecords:commit-late=9ms%4" +
	" PutRecord:hang=9ms%4 PutRecords:hang=20ms%3 PutRecords:fail-record%8" +
	" PutRecords:throttle-record=1/3%8 GetRecords:expire-iterator%3"

const (
	logShards  = 2
	logWriters = 5
	logReaders = 3
	logCalls   = 15 // of each
)

// live is a run. When no call is in progress any more, it ends with a read of every shard.
func (h *history) live(t *testing.T, seed uint64) {
	server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream("s", logShards),
		runneltest.WithCrashes(seed), runneltest.WithFaults(fmt.Sprintf("seed=%d", seed)+trouble))
	var clients sync.WaitGroup
	for id := range logWriters + logReaders {
		c := &logClient{
			h: h, id: id, rng: rand.New(rand.NewPCG(seed, uint64(id))),
			kinesis: kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
				o.Retryer = aws.NopRetryer{}
			}),
		}
		clients.Go(func() {
			for n := range logCalls {
				if id < logWriters {
					c.put(t.Context(), n)
				} else {
					c.read(t.Context(), c.rng.IntN(logShards))
				}
			}
		})
	}
	for range seed % 3 {
		time.Sleep(10 * time.Millisecond)
		if err := server.Restart(t.Context()); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
	time.Sleep(time.Second) // for the calls that are late
	if err := server.SetFaults(""); err != nil {
		t.Error(err)
	}
	last := &logClient{h: h, id: logWriters + logReaders, kinesis: server.Kinesis()}
	for shard := range logShards {
		last.read(t.Context(), shard)
	}
	if len(server.FaultCounts()) < 5 {
		t.Errorf("seed %d had few faults: %v", seed, server.FaultCounts())
	}
}

// logClient makes one call after the other. It never retries.
type logClient struct {
	h       *history
	id      int
	rng     *rand.Rand
	kinesis *kinesis.Client
}

// patience is shorter than some calls take.
const patience = 8 * time.Millisecond

// put puts one record, or some at once, to random shards.
func (c *logClient) put(ctx context.Context, n int) {
	records := make([][]string, logShards) // by shard
	var entries []types.PutRecordsRequestEntry
	var shards []int
	for i := range 1 + c.rng.IntN(4) {
		shard, name := c.rng.IntN(logShards), fmt.Sprintf("%d.%d.%d", c.id, n, i)
		entries = append(entries, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(name), Data: []byte(name),
			ExplicitHashKey: aws.String(uniform(logShards)[shard].String()),
		})
		shards = append(shards, shard)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := c.h.tick()
	results, err := c.send(ctx, entries)
	ended := c.h.tick()
	for i := range entries {
		name := *entries[i].PartitionKey
		switch {
		case err != nil: // each for itself, or not at all
			c.h.add(logCall{
				client: c.id, shard: shards[i], began: began, ended: math.MaxInt64,
				records: []string{name},
			})
		case results[i].ErrorCode == nil:
			c.h.number(name, *results[i].SequenceNumber)
			records[shards[i]] = append(records[shards[i]], name)
			if want := shardID(shards[i]); *results[i].ShardId != want {
				c.h.fault("%s went to %s, want %s", name, *results[i].ShardId, want)
			}
		}
	}
	for shard, stored := range records {
		if len(stored) > 0 {
			c.h.add(logCall{
				client: c.id, shard: shard, began: began, ended: ended, records: stored,
			})
		}
	}
}

// send puts the entries, a single one by PutRecord.
func (c *logClient) send(
	ctx context.Context, entries []types.PutRecordsRequestEntry,
) ([]types.PutRecordsResultEntry, error) {
	if len(entries) > 1 {
		out, err := c.kinesis.PutRecords(ctx, &kinesis.PutRecordsInput{
			StreamName: aws.String("s"), Records: entries,
		})
		if err != nil {
			return nil, err
		}
		return out.Records, nil
	}
	out, err := c.kinesis.PutRecord(ctx, &kinesis.PutRecordInput{
		StreamName: aws.String("s"), PartitionKey: entries[0].PartitionKey,
		ExplicitHashKey: entries[0].ExplicitHashKey, Data: entries[0].Data,
	})
	if err != nil {
		return nil, err
	}
	return []types.PutRecordsResultEntry{{
		ShardId: out.ShardId, SequenceNumber: out.SequenceNumber,
	}}, nil
}

// read reads a shard from its beginning to its tip. A read without an answer is not recorded.
func (c *logClient) read(ctx context.Context, shard int) {
	call := logCall{client: c.id, shard: shard, began: c.h.tick(), read: true}
	at, err := c.kinesis.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: aws.String(shardID(shard)),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return
	}
	for next := at.ShardIterator; ; {
		got, err := c.kinesis.GetRecords(ctx, &kinesis.GetRecordsInput{
			ShardIterator: next, Limit: aws.Int32(40),
		})
		if err != nil {
			return
		}
		last := ""
		for _, record := range got.Records {
			c.h.number(string(record.Data), *record.SequenceNumber)
			call.records = append(call.records, string(record.Data))
			if compareNumbers(*record.SequenceNumber, last) <= 0 {
				c.h.fault("%s has the number %s after %s", record.Data, *record.SequenceNumber, last)
			}
			last = *record.SequenceNumber
		}
		if next = got.NextShardIterator; *got.MillisBehindLatest == 0 {
			break
		}
	}
	call.ended = c.h.tick()
	c.h.add(call)
}
