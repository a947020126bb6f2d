package rolluptest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/sink/rollup"
)

// Stream is a stream of two shards, with the name "orders", of a server.
type Stream struct {
	Kinesis  *kinesis.Client  // for the records
	DynamoDB *dynamodb.Client // for the leases
	// Disturb is called while workers write rows; nil for nothing.
	Disturb func()
}

// edits has a column of each kind. Each record has a time of its own, so the last one is known.
var edits = rollup.Definition{
	Keys: []rollup.Field{{Pointer: "/k"}},
	Time: "/t",
	Columns: []rollup.Column{
		{Op: rollup.Count},
		{Op: rollup.Sum, Field: rollup.Field{Pointer: "/v", Type: rollup.Int}},
		{Op: rollup.Max, Field: rollup.Field{Pointer: "/v"}},
		{Op: rollup.Last, Field: rollup.Field{Pointer: "/v", Type: rollup.Int}},
	},
}.WithDefaults()

// fleet is workers that read a stream into a table, and the rows that the table must have.
type fleet struct {
	*testing.T
	stream Stream
	target Target
	group  sync.WaitGroup
	put    int
	bad    int
	rows   map[string]*sums // by key
}

type sums struct{ count, sum, largest, last int64 }

// Fleet kills workers, and splits and merges shards, while records are put: each record must count
// once.
func Fleet(t *testing.T, stream Stream, target Target) {
	f := &fleet{T: t, stream: stream, target: target, rows: map[string]*sums{}}
	f.start("w1")
	kill := f.start("w2")
	f.send(300)
	f.reshard(0, false)
	f.send(200)
	kill()
	f.send(300)
	f.reshard(1, true)
	kill = f.start("w3")
	f.send(300)
	if stream.Disturb != nil {
		stream.Disturb()
	}
	f.send(200)
	f.await()
	f.reshard(0, true)
	f.send(200)
	kill()
	f.start("w4")
	f.reshard(0, false)
	f.send(300)
	f.await()
}

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// start runs a worker; kill ends it as a crash does.
func (f *fleet) start(id string) (kill func()) {
	f.Helper()
	store, err := f.target.Open()
	f.must(err)
	rows, err := rollup.OpenRows(f.Context(), rollup.RowsConfig{
		Definition: edits, Store: store, Kinesis: f.stream.Kinesis, App: "app", Stream: "orders",
	})
	f.must(err)
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "app", WorkerID: id, Failover: time.Second, MaxRecords: 40,
		Kinesis: f.stream.Kinesis, DynamoDB: f.stream.DynamoDB, Handler: rows.Handle,
		AuditInterval: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	f.must(err)
	ctx, end := context.WithCancelCause(f.Context())
	done := make(chan struct{})
	f.group.Go(func() {
		defer close(done)
		if err := w.Run(ctx); err != nil && !errors.Is(err, seam.ErrKilled) &&
			!errors.Is(err, context.Canceled) {
			f.Errorf("%s: %v", id, err)
		}
	})
	kill = func() {
		end(seam.ErrKilled)
		<-done
	}
	f.Cleanup(kill)
	return kill
}

// send puts n records, of which some are bad.
func (f *fleet) send(n int) {
	f.Helper()
	in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
	for range n {
		f.put++
		key, value := fmt.Sprintf("k%d", f.put%7), int64(f.put*7919%1000-300)
		data := fmt.Sprintf(`{"k":%q,"v":%d,"t":%d}`, key, value, 1_700_000_000_000+f.put)
		if f.put%50 == 0 {
			f.bad++
			data = "bad"
		} else {
			f.count(key, value)
		}
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(fmt.Sprint(f.put % 37)), Data: []byte(data),
		})
	}
	_, err := f.stream.Kinesis.PutRecords(f.Context(), in)
	f.must(err)
}

func (f *fleet) count(key string, value int64) {
	s := f.rows[key]
	if s == nil {
		s = &sums{largest: value}
		f.rows[key] = s
	}
	s.count++
	s.sum += value
	s.largest, s.last = max(s.largest, value), value
}

// reshard splits the i-th open shard, or merges it with its neighbour.
func (f *fleet) reshard(i int, merge bool) {
	f.Helper()
	client, name := f.stream.Kinesis, aws.String("orders")
	listed, err := client.ListShards(f.Context(), &kinesis.ListShardsInput{StreamName: name})
	f.must(err)
	open := slices.DeleteFunc(listed.Shards, func(s types.Shard) bool {
		return s.SequenceNumberRange.EndingSequenceNumber != nil
	})
	rangeOf := func(s types.Shard) keyspace.Range {
		low, err := keyspace.Parse(*s.HashKeyRange.StartingHashKey)
		f.must(err)
		high, err := keyspace.Parse(*s.HashKeyRange.EndingHashKey)
		f.must(err)
		return keyspace.Range{Start: low, End: high}
	}
	slices.SortFunc(open, func(a, b types.Shard) int {
		return rangeOf(a).Start.Compare(rangeOf(b).Start)
	})
	if merge {
		_, err = client.MergeShards(f.Context(), &kinesis.MergeShardsInput{
			StreamName: name, ShardToMerge: open[i].ShardId,
			AdjacentShardToMerge: open[i+1].ShardId,
		})
	} else {
		middle := rangeOf(open[i]).Middle().String()
		_, err = client.SplitShard(f.Context(), &kinesis.SplitShardInput{
			StreamName: name, ShardToSplit: open[i].ShardId, NewStartingHashKey: &middle,
		})
	}
	f.must(err)
}

// await waits until the rows have all records, and checks them.
func (f *fleet) await() {
	f.Helper()
	store, err := f.target.Open()
	f.must(err)
	created, err := f.stream.Kinesis.DescribeStreamSummary(f.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
	f.must(err)
	at := created.StreamDescriptionSummary.StreamCreationTimestamp.UnixMilli()
	f.must(store.Prepare(f.Context(), rollup.Setup{
		App: "app", Stream: fmt.Sprintf("orders@%d", at), Definition: edits,
	}))
	deadline := time.Now().Add(90 * time.Second)
	for {
		differences := f.differences(store)
		if differences == "" {
			return
		}
		if time.Now().After(deadline) {
			f.Fatal(differences)
		}
		f.must(retry.Wait(f.Context(), 50*time.Millisecond))
	}
}

// differences compares the table with the records that were put; "" if it has all of them.
func (f *fleet) differences(store rollup.RowStore) string {
	f.Helper()
	var wrong []string
	for key, want := range f.rows {
		rows, err := store.Read(f.Context(), []string{key})
		f.must(err)
		got := sums{}
		if v := rows[0].Values; rows[0].Version > 0 {
			got = sums{v[0].Int, v[1].Int, int64(v[2].Double), v[3].Int}
		}
		if got.count > want.count {
			f.Fatalf("row %s counts %d records of %d", key, got.count, want.count)
		}
		if got != *want {
			wrong = append(wrong, fmt.Sprintf("row %s is %+v, want %+v", key, got, *want))
		}
	}
	bad, err := f.target.Bad(f.Context())
	f.must(err)
	if len(bad) != f.bad {
		wrong = append(wrong, fmt.Sprintf("%d bad records are kept, of %d", len(bad), f.bad))
	}
	return strings.Join(wrong, "; ")
}
