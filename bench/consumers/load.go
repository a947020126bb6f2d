package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// stream is the name of the stream with the backlog.
const stream = "backlog"

// load is a backlog.
type load struct {
	name    string
	shards  int
	records int // user records of a shard
	size    int // bytes of a user record's data
	unit    int // user records of an aggregate; 1 for plain records
	memory  float64
	java    bool // is read by the Java KCL, too
}

// loads returns the backlogs. memory is the goal for a worker's peak, in MB.
func loads() []load {
	return []load{
		{"1 KiB", 16, 25_000, 1024, 1, 200, true},
		{"100 B", 16, 80_000, 100, 1, 200, true},
		{"100 B, aggregates of 50", 16, 200_000, 100, 50, 200, true},
		{"1 KiB, 1,000 shards of 2 MiB", 1000, 2048, 1024, 1, 400, false},
	}
}

func (l load) total() int { return l.shards * l.records }

// keysOfShard is the number of partition keys whose records a shard gets.
const keysOfShard = 20

// keys returns partition keys for each shard of a new stream.
func keys(shards int) [][]string {
	ranges := keyspace.Uniform(shards)
	all := make([][]string, shards)
	for i, open := 0, shards; open > 0; i++ {
		key := fmt.Sprintf("key-%07d", i)
		at := keyspace.Locate(ranges, keyspace.Of(key))
		if len(all[at]) == keysOfShard {
			continue
		}
		if all[at] = append(all[at], key); len(all[at]) == keysOfShard {
			open--
		}
	}
	return all
}

// The API's limits for a call (AWS, "PutRecords"), with room for the keys.
const (
	callRecords = 500
	callBytes   = 4 << 20
)

// fill puts the backlog.
func fill(ctx context.Context, api *kinesis.Client, l load) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for shard, own := range keys(l.shards) {
		group.Go(func() error { return fillShard(ctx, api, l, uint64(shard), own) })
	}
	return group.Wait()
}

func fillShard(
	ctx context.Context, api *kinesis.Client, l load, shard uint64, keys []string,
) error {
	random := rand.NewChaCha8([32]byte{byte(shard), byte(shard >> 8)})
	start := keyspace.Uniform(l.shards)[shard].Start.String()
	in := &kinesis.PutRecordsInput{StreamName: aws.String(stream)}
	bytes := 0
	send := func() error {
		if len(in.Records) == 0 {
			return nil
		}
		out, err := api.PutRecords(ctx, in)
		if err == nil && aws.ToInt32(out.FailedRecordCount) > 0 {
			err = errors.New("the server refused a record of the backlog")
		}
		in.Records, bytes = in.Records[:0], 0
		return err
	}
	var encoder aggregate.Encoder
	for n := 0; n < l.records; n += l.unit {
		entry := types.PutRecordsRequestEntry{PartitionKey: &keys[n%len(keys)]}
		if l.unit == 1 {
			entry.Data = make([]byte, l.size)
			_, _ = random.Read(entry.Data) // it cannot fail
		} else {
			encoder.Reset()
			for i := range l.unit {
				data := make([]byte, l.size)
				_, _ = random.Read(data)
				record := aggregate.Record{PartitionKey: keys[(n+i)%len(keys)], Data: data}
				if err := encoder.Add(record); err != nil {
					return err
				}
			}
			entry.Data = encoder.Seal(nil)
			entry.PartitionKey, entry.ExplicitHashKey = aws.String("a"), &start // as the KPL does
		}
		in.Records = append(in.Records, entry)
		if bytes += len(entry.Data); len(in.Records) == callRecords || bytes > callBytes {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}
