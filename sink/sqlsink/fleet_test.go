package sqlsink_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// stream is a real server with a stream, the workers that read it into a database, and the records
// that were put.
type stream struct {
	*testing.T
	d      *database
	server *runneltest.Server
	group  sync.WaitGroup
	put    map[string]int // by "key data"; each is unique
}

func newStream(t *testing.T, d *database) *stream {
	return &stream{
		T: t, d: d, put: map[string]int{},
		server: runneltest.NewServer(t, runneltest.WithStream("orders", 2),
			runneltest.WithStreamDelay(-1)),
	}
}

// start runs a worker; kill ends it as a crash does.
func (s *stream) start(id string) (kill func()) {
	s.Helper()
	to, err := s.d.sink("orders", sqlsink.Config{
		Failover: time.Second, Every: 500 * time.Millisecond,
	})
	must(s, err)
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders", WorkerID: id, Failover: time.Second,
		Kinesis: s.server.Kinesis(), DynamoDB: s.server.DynamoDB(), Sink: to,
		AuditInterval: time.Second, Logger: slog.New(slog.DiscardHandler), MaxRecords: 50,
	})
	must(s, err)
	ctx, end := context.WithCancelCause(s.Context())
	done := make(chan struct{})
	s.group.Go(func() {
		defer close(done)
		if err := w.Run(ctx); err != nil && !errors.Is(err, seam.ErrKilled) &&
			!errors.Is(err, context.Canceled) {
			s.Errorf("%s: %v", id, err)
		}
	})
	return func() {
		end(seam.ErrKilled)
		<-done
	}
}

// send puts n records.
func (s *stream) send(n int) {
	s.Helper()
	in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
	for range n {
		key, data := fmt.Sprint("key-", len(s.put)%37), fmt.Sprint(len(s.put))
		s.put[key+" "+data] = 0
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(key), Data: []byte(data),
		})
	}
	_, err := s.server.Kinesis().PutRecords(s.Context(), in)
	must(s, err)
}

// reshard splits the i-th open shard, or merges it with its neighbour.
func (s *stream) reshard(i int, merge bool) {
	s.Helper()
	client, name := s.server.Kinesis(), aws.String("orders")
	listed, err := client.ListShards(s.Context(), &kinesis.ListShardsInput{StreamName: name})
	must(s, err)
	open := slices.DeleteFunc(listed.Shards, func(sh types.Shard) bool {
		return sh.SequenceNumberRange.EndingSequenceNumber != nil
	})
	start := func(sh types.Shard) runnel.SequenceNumber {
		return runnel.SequenceNumber(*sh.HashKeyRange.StartingHashKey)
	}
	slices.SortFunc(open, func(a, b types.Shard) int { return start(a).Compare(start(b)) })
	i %= len(open)
	if merge && i+1 < len(open) {
		_, err = client.MergeShards(s.Context(), &kinesis.MergeShardsInput{
			StreamName: name, ShardToMerge: open[i].ShardId,
			AdjacentShardToMerge: open[i+1].ShardId,
		})
	} else {
		low, _ := keyspace.Parse(*open[i].HashKeyRange.StartingHashKey) // a server's number
		high, _ := keyspace.Parse(*open[i].HashKeyRange.EndingHashKey)
		middle := keyspace.Range{Start: low, End: high}.Middle().String()
		_, err = client.SplitShard(s.Context(), &kinesis.SplitShardInput{
			StreamName: name, ShardToSplit: open[i].ShardId, NewStartingHashKey: &middle,
		})
	}
	must(s, err)
}

// effects returns how often each record has taken effect, and how many effects there are.
func (s *stream) effects() (map[string]int, int) {
	s.Helper()
	rows, err := s.d.db.QueryContext(s.Context(), "select key, data from effects")
	must(s, err)
	defer rows.Close()
	counts, n := map[string]int{}, 0
	for ; rows.Next(); n++ {
		var key string
		var data []byte
		must(s, rows.Scan(&key, &data))
		counts[key+" "+string(data)]++
	}
	must(s, rows.Err())
	return counts, n
}

// await waits until every record has taken effect, and checks that each did once.
func (s *stream) await() {
	s.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		counts, n := s.effects()
		if len(counts) == len(s.put) || time.Now().After(deadline) {
			if len(counts) != len(s.put) || n != len(s.put) {
				s.Fatalf("%d records have taken effect, with %d effects; want %d", len(counts), n,
					len(s.put))
			}
			return
		}
	}
}

// backup copies the tables, and restores them in one transaction.
func (d *database) backup(t *testing.T) (restore func()) {
	t.Helper()
	tables := []string{"runnel_position", "effects"}
	var copies, restores []string
	for _, table := range tables {
		copies = append(copies, "drop table if exists backup_"+table,
			"create table backup_"+table+" as select * from "+table)
		restores = append(restores, "delete from "+table,
			"insert into "+table+" select * from backup_"+table)
	}
	if !d.isSQLite() { // one moment for both tables
		copies = append([]string{"set transaction isolation level repeatable read"}, copies...)
	}
	d.inOne(t, copies...)
	return func() { d.inOne(t, restores...) }
}

// inOne runs statements in one transaction.
func (d *database) inOne(t *testing.T, statements ...string) {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	must(t, err)
	for _, text := range statements {
		_, err := tx.ExecContext(t.Context(), text)
		must(t, err)
	}
	must(t, tx.Commit())
}

// TestFleetIsRestored restores the database under live workers, and with all workers stopped, from
// a copy of a time before shards split and merged. Each record takes effect once.
func TestFleetIsRestored(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		s := newStream(t, d)
		s.start("w1")
		kill := s.start("w2")
		s.send(300)
		s.await()
		restore := d.backup(t)
		s.send(200)
		s.reshard(0, false)
		s.send(300)
		s.reshard(1, true)
		s.send(300)
		s.await()
		restore()
		s.await()
		s.reshard(0, true)
		s.send(300)
		kill()
		last := s.start("w3")
		s.send(100)
		s.await()
		restore()
		last()
		s.start("w4")
		s.await()
		d.inOne(t, "delete from runnel_position", "delete from effects") // there was no backup
		s.await()
		s.send(50)
		s.await()
	})
}
