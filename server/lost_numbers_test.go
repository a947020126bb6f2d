package server_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// TestLostNumbers cuts the power of a server that syncs once an hour, three times in a row. A
// consumer has read records that are then lost, and goes on after the last of them. It gets every
// record that is acknowledged later, by its checkpoint and by its old iterator.
func TestLostNumbers(t *testing.T) {
	lost := 0
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &loser{T: t, used: map[string]bool{}, server: runneltest.NewServer(t,
					runneltest.InMemory(), runneltest.WithCrashes(seed),
					runneltest.WithSyncInterval(time.Hour), runneltest.WithStream("s", 1))}
				l.Client = l.server.Kinesis()
				l.put(3)
				time.Sleep(2 * time.Hour)
				for life := range 3 {
					lost += l.life(life)
				}
			})
		})
	}
	if lost < 12 {
		t.Errorf("the power losses took only %d records", lost)
	}
}

// loser is a stream of one shard on a server that loses power.
type loser struct {
	*testing.T
	*kinesis.Client
	server *runneltest.Server
	used   map[string]bool // numbers of all records ever
	newest string
}

// life acknowledges records, loses power, and reads on after the last of them. It returns how many
// were lost.
func (l *loser) life(life int) (lost int) {
	before := len(l.all())
	l.put(5)
	checkpoint, held := l.newest, l.iterator(types.ShardIteratorTypeLatest, "")
	if err := l.server.Restart(l.Context()); err != nil {
		l.Fatal(err)
	}
	left := l.all()
	waiting := l.iterator(types.ShardIteratorTypeAfterSequenceNumber, checkpoint)
	fresh := l.put(4, checkpoint)
	at := slices.Clone(fresh)
	if slices.Contains(left, checkpoint) {
		at = slices.Insert(at, 0, checkpoint)
	}
	number := l.iterator(types.ShardIteratorTypeAtSequenceNumber, checkpoint)
	for name, c := range map[string]struct {
		iterator string
		want     []string
	}{
		"by the iterator of before":                   {held, fresh},
		"after the checkpoint, asked for before":      {waiting, fresh},
		"at the checkpoint":                           {number, at},
		"from the oldest":                             {l.iterator(types.ShardIteratorTypeTrimHorizon, ""), append(left, fresh...)},
		"after the checkpoint, asked for now":         {l.iterator(types.ShardIteratorTypeAfterSequenceNumber, checkpoint), fresh},
		"after the last record, which is not lost":    {l.iterator(types.ShardIteratorTypeAfterSequenceNumber, fresh[3]), nil},
		"at the last new record":                      {l.iterator(types.ShardIteratorTypeAtSequenceNumber, fresh[3]), fresh[3:]},
		"after the last record that survived, if any": {l.iterator(types.ShardIteratorTypeAfterSequenceNumber, left[len(left)-1]), fresh},
	} {
		if got := l.read(c.iterator, 2); !slices.Equal(got, c.want) {
			l.Errorf("life %d, %s: read %q, want %q", life, name, got, c.want)
		}
	}
	return before + 5 - len(left)
}

// put puts records and returns their numbers, which are new and grow.
func (l *loser) put(n int, after ...string) (numbers []string) {
	l.Helper()
	for range n {
		in := &kinesis.PutRecordInput{
			StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: []byte("data"),
		}
		if len(after) > 0 {
			in.SequenceNumberForOrdering = aws.String(after[0])
		}
		out, err := l.PutRecord(l.Context(), in)
		if err != nil {
			l.Fatal(err)
		}
		if number := *out.SequenceNumber; l.used[number] || number <= l.newest {
			l.Errorf("a new record has the number %s, after %s; used before: %v", number,
				l.newest, l.used[number])
		}
		l.newest = *out.SequenceNumber
		l.used[l.newest] = true
		numbers = append(numbers, l.newest)
	}
	return numbers
}

func (l *loser) iterator(kind types.ShardIteratorType, number string) string {
	l.Helper()
	in := &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: kind,
	}
	if number != "" {
		in.StartingSequenceNumber = aws.String(number)
	}
	out, err := l.GetShardIterator(l.Context(), in)
	if err != nil {
		l.Fatal(err)
	}
	return *out.ShardIterator
}

// read returns the numbers from an iterator on, with a limit for each page.
func (l *loser) read(iterator string, page int32) (numbers []string) {
	l.Helper()
	for iterator != "" {
		if len(numbers) > 100 {
			l.Fatalf("the iterator reads the same again and again: %q", numbers)
		}
		out, err := l.GetRecords(l.Context(), &kinesis.GetRecordsInput{
			ShardIterator: aws.String(iterator), Limit: aws.Int32(page),
		})
		if err != nil {
			l.Fatal(err)
		}
		if len(out.Records) == 0 {
			return numbers
		}
		for _, record := range out.Records {
			numbers = append(numbers, *record.SequenceNumber)
		}
		iterator = aws.ToString(out.NextShardIterator)
	}
	return numbers
}

func (l *loser) all() []string {
	l.Helper()
	return l.read(l.iterator(types.ShardIteratorTypeTrimHorizon, ""), 100)
}

// TestNoReshardIsLost cuts the power after a split at a server that syncs once an hour. A consumer
// that has seen the parent's end never reads it again, and knows the children by their ids. So the
// parent must stay closed, and the children must be the same, with the records that are left.
func TestNoReshardIsLost(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := runneltest.NewServer(t, runneltest.InMemory(),
					runneltest.WithCrashes(seed), runneltest.WithSyncInterval(time.Hour),
					runneltest.WithStream("s", 1))
				l := &loser{T: t, Client: server.Kinesis(), used: map[string]bool{}, server: server}
				l.put(3)
				if _, err := l.SplitShard(t.Context(), &kinesis.SplitShardInput{
					StreamName: aws.String("s"), NewStartingHashKey: aws.String("1000"),
					ShardToSplit: aws.String("shardId-000000000000"),
				}); err != nil {
					t.Fatal(err)
				}
				var before []types.Shard
				for len(before) < 3 {
					time.Sleep(time.Second)
					before = l.shards()
				}
				l.put(3)
				if err := server.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				if after := l.shards(); !reflect.DeepEqual(before, after) {
					t.Errorf("the shards were %v, and are %v", before, after)
				}
				if got := len(l.all()); got != 3 {
					t.Errorf("the parent has %d records of 3", got)
				}
			})
		})
	}
}

func (l *loser) shards() []types.Shard {
	l.Helper()
	out, err := l.ListShards(l.Context(), &kinesis.ListShardsInput{StreamName: aws.String("s")})
	if err != nil {
		l.Fatal(err)
	}
	return out.Shards
}
