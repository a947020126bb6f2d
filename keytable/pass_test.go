package keytable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/runneltest"
)

// A shard without a lease is passed when something that came from it was processed.
func TestPassedWithoutLease(t *testing.T) {
	shards := []runnel.Shard{
		{ID: "a"},
		{ID: "b"},
		{ID: "c", Parents: []runnel.ShardID{"a"}},
		{ID: "d", Parents: []runnel.ShardID{"b", "c"}},
	}
	at := func(sequence runnel.SequenceNumber) lease.Lease {
		return lease.Lease{Checkpoint: runnel.Position{Sequence: sequence}}
	}
	for i, c := range []struct {
		leases map[runnel.ShardID]lease.Lease
		want   bool
	}{
		{nil, false},
		{map[runnel.ShardID]lease.Lease{"b": at("5")}, false},
		{map[runnel.ShardID]lease.Lease{"c": at(runnel.TrimHorizon)}, false},
		{map[runnel.ShardID]lease.Lease{"c": at(runnel.Latest), "d": at("5")}, false},
		{map[runnel.ShardID]lease.Lease{"c": at("5")}, true},
		{map[runnel.ShardID]lease.Lease{"c": at(runnel.ShardEnd)}, true},
		{map[runnel.ShardID]lease.Lease{"d": at("5")}, true},
	} {
		w := &waiting{before: map[runnel.ShardID]runnel.Position{}}
		if got, err := w.passed(t.Context(), c.leases, shards, "a", "7"); got != c.want || err != nil {
			t.Errorf("case %d: %v, %v", i, got, err)
		}
	}
	for _, sequence := range []runnel.SequenceNumber{"7", "10", runnel.ShardEnd} {
		w := &waiting{before: map[runnel.ShardID]runnel.Position{}}
		leases := map[runnel.ShardID]lease.Lease{"a": at(sequence)}
		if got, err := w.passed(t.Context(), leases, shards, "a", "7"); !got || err != nil {
			t.Errorf("at %s: %v, %v", sequence, got, err)
		}
	}
}

// An application keeps its checkpoint while only marks come, as the KCL does.
func TestPassWithoutCheckpoints(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		table := open(t, server.DynamoDB(), small)
		if _, err := table.Key(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		apps, at := 0, uint64(64)
		// passes moves x past an application with one lease, at a checkpoint.
		passes := func(sequence string, sub int, more item) bool {
			apps++
			app := fmt.Sprint("app-", apps)
			leases, err := lease.New(lease.Config{DynamoDB: server.DynamoDB(), Table: app, Stream: lease.Stream{Name: "orders"}})
			if err == nil {
				err = leases.Ensure(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			row := item{
				"leaseKey": str("shardId-000000000000"), "leaseCounter": num(1), "checkpoint": str(sequence),
				"checkpointSubSequenceNumber": num(int64(sub)), "ownerSwitchesSinceCheckpoint": num(0),
			}
			for k, v := range more {
				row[k] = v
			}
			_, err = server.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &app, Item: row})
			if err != nil {
				t.Fatal(err)
			}
			err = table.Move(within(t, 30*time.Second), MoveConfig{
				Kinesis: server.Kinesis(), Stream: "orders", Apps: []string{app},
			}, []Move{{Name: "x", From: keyOf(at), To: keyOf(at + 1)}})
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			if err == nil {
				at++
			}
			return err == nil
		}
		put := func(data []byte) string {
			out, err := server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
				StreamName: aws.String("orders"), PartitionKey: aws.String("x"), Data: data,
			})
			if err != nil {
				t.Fatal(err)
			}
			return *out.SequenceNumber
		}
		check := func(what string, want bool, sequence string, sub int, more item) {
			t.Helper()
			if got := passes(sequence, sub, more); got != want {
				t.Errorf("%s: passed is %v", what, got)
			}
		}
		check("an empty shard", true, "TRIM_HORIZON", 0, nil)
		check("marks alone", true, "TRIM_HORIZON", 0, nil)
		plain := put([]byte("plain"))
		check("a record", false, "TRIM_HORIZON", 0, nil)
		check("at the record", true, plain, 0, nil)
		check("latest, from nobody knows where", false, "LATEST", 0, nil)
		<-time.After(time.Second)
		now := time.Now().UnixMilli()
		check("latest, from now on", true, "LATEST", 0, item{"runnelFrom": num(now)})
		var e aggregate.Encoder
		for range 2 {
			if err := e.Add(aggregate.Record{PartitionKey: "x", Data: []byte("x")}); err != nil {
				t.Fatal(err)
			}
		}
		both := put(e.Seal(nil))
		check("before the aggregate", false, plain, 0, nil)
		check("inside of the aggregate", false, both, 0, nil)
		check("at the aggregate's end", true, both, 1, nil)
		check("the shard's end", true, "SHARD_END", 0, nil)
	}, runneltest.WithStream("orders", 1))
}

// A throttle that only Kinesis knows is waited out. A refusal of the caller is not.
func TestMarksRefused(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		p := &passage{
			table: open(t, server.DynamoDB()),
			move: MoveConfig{Stream: "orders", Kinesis: kinesis.NewFromConfig(server.AWSConfig(),
				func(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} })},
		}
		for faults, want := range map[string]string{
			"PutRecords:refuse=KMSThrottlingException@1": "",
			"PutRecords:refuse=AccessDeniedException@1":  "AccessDeniedException",
		} {
			if err := server.SetFaults(faults); err != nil {
				t.Fatal(err)
			}
			_, err := p.mark(t.Context(), []string{"1"})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", faults, err)
			}
		}
	}, runneltest.WithStream("orders", 1))
}

// Of several marks in a shard the last one counts, and one that failed is put again.
func TestMarks(t *testing.T) {
	inTime(t, func(t *testing.T, server *runneltest.Server) {
		p := &passage{
			table: open(t, server.DynamoDB()),
			move:  MoveConfig{Kinesis: server.Kinesis(), Stream: "orders"},
		}
		if err := server.SetFaults("PutRecords:fail-record=2@1,PutRecords:throttle-record=1@2"); err != nil {
			t.Fatal(err)
		}
		marks, err := p.mark(t.Context(), []string{"1", "2", "340282366920938463463374607431768211455"})
		if err != nil || len(marks) != 2 {
			t.Fatalf("%v, %v", marks, err)
		}
		for shard, mark := range marks {
			iterator, err := server.Kinesis().GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
				StreamName: aws.String("orders"), ShardId: aws.String(string(shard)), ShardIteratorType: "TRIM_HORIZON",
			})
			if err != nil {
				t.Fatal(err)
			}
			out, err := server.Kinesis().GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: iterator.ShardIterator})
			if err != nil {
				t.Fatal(err)
			}
			want := map[runnel.ShardID]int{"shardId-000000000000": 2, "shardId-000000000001": 1}[shard]
			if n := len(out.Records); n != want || *out.Records[n-1].SequenceNumber != string(mark) {
				t.Errorf("%s has %d marks, the last is %s", shard, n, mark)
			}
		}
	}, runneltest.WithStream("orders", 2))
}
