package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

// only returns the status of a worker's only shard.
func (m *member) only(t *testing.T) consumer.ShardStatus {
	t.Helper()
	s := m.Status()
	if len(s.Shards) != 1 || s.WorkerLeases != 1 {
		t.Fatalf("%d shards, worker_leases %d, want 1", len(s.Shards), s.WorkerLeases)
	}
	return s.Shards[0]
}

// A status has the numbers of the worker before, while and after it runs.
func TestStatus(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		idle, err := consumer.New(f.config("idle", &link{DynamoDBAPI: f.table}))
		if err != nil {
			t.Fatal(err)
		}
		if s := idle.Status(); s.Running || s.Worker != "idle" || s.Shards == nil || s.WorkerLeases != 0 {
			t.Errorf("before Run: %+v", s)
		}
		m := f.start("w1")
		f.stream.put("four", keys(25)...)
		<-time.After(failover)
		s, shard := m.Status(), m.only(t)
		if !s.Running || !s.Watching || s.Stream != "orders" || s.App != "orders-app" ||
			s.TotalLeases != 1 || s.TotalShards != 1 || s.UnclaimedLeases != 0 || s.Looked.IsZero() {
			t.Errorf("%+v", s)
		}
		if s.Records != 25 || s.Bytes != 100 || shard.Records != 25 || shard.Bytes != 100 {
			t.Errorf("%d records, %d bytes; %+v", s.Records, s.Bytes, shard)
		}
		last := f.stream.shards[0].records[24]
		if string(shard.Position.Sequence) != *last.SequenceNumber || shard.Checkpoint != shard.Position {
			t.Errorf("position %s, checkpoint %s, want %s", shard.Position, shard.Checkpoint,
				*last.SequenceNumber)
		}
		if shard.State != consumer.ShardReading || s.MillisBehindLatest != 0 ||
			shard.CheckpointAge <= 0 || shard.CheckpointAge > failover {
			t.Errorf("%+v", shard)
		}
		m.stop()
		<-m.err
		if s := m.Status(); s.Running || s.Watching || s.WorkerLeases != 0 || s.Records != 25 {
			t.Errorf("after Run: %+v", s)
		}
	})
}

// A handler that does not return shows in the shard's status, and so does the distance that grows
// meanwhile.
func TestStatusOfASlowHandler(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		release := make(chan struct{})
		m := f.start("w1", func(c *consumer.Config) {
			c.Handler = func(context.Context, *consumer.Batch) error {
				<-release
				return nil
			}
		})
		<-time.After(failover)
		if s := m.only(t); s.MillisBehindLatest != 0 || !s.HandlerSince.IsZero() {
			t.Errorf("idle: %+v", s)
		}
		f.stream.put("x", keys(1)...)
		<-time.After(time.Minute)
		s := m.only(t)
		if time.Since(s.HandlerSince).Round(time.Second) != time.Minute ||
			s.HandlerTime.Round(time.Second) != time.Minute {
			t.Errorf("since %s, %s", s.HandlerSince, s.HandlerTime)
		}
		if behind := s.MillisBehindLatest; behind < 59_000 || behind > 61_000 {
			t.Errorf("behind %d ms, want a minute", behind)
		}
		if l := f.leases()[0]; l.Stats.Behind < 50*time.Second || l.Stats.Busy < 0.8 {
			t.Errorf("the row has %+v", l.Stats)
		}
		close(release)
		<-time.After(time.Second)
		if s := m.only(t); s.MillisBehindLatest != 0 || !s.HandlerSince.IsZero() ||
			s.HandlerTime.Round(time.Second) != time.Minute {
			t.Errorf("afterwards: %+v", s)
		}
	})
}

// The rows have the throughput, as KCL 3.x writes it, and the load that a status of the fleet needs.
func TestThroughputInTheRow(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.start("w1")
		for range 60 {
			f.stream.put(strings.Repeat("x", 2048), "k")
			<-time.After(time.Second)
		}
		l := f.leases()[0]
		if l.ThroughputKBps < 1.6 || l.ThroughputKBps > 2.4 || l.Stats.Rate < 1500 ||
			l.Stats.Rate > 2500 || l.Stats.Ingest < 1500 || l.Stats.Ingest > 2500 || l.Stats.Busy > 0.01 {
			t.Errorf("%v KB/s, %+v", l.ThroughputKBps, l.Stats)
		}
	})
}

// A Record handler that works ahead is as far behind as its lowest unfinished record.
func TestStatusOfRecordsAhead(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		release := make(chan struct{})
		m := f.start("w1", func(c *consumer.Config) {
			c.Handler, c.Parallel = nil, 2
			c.Record = func(_ context.Context, r *runnel.Record) error {
				if r.PartitionKey == "key-0" {
					<-release
				}
				return nil
			}
		})
		<-time.After(time.Second)
		f.stream.put("x", "key-0")
		for range 60 {
			<-time.After(time.Second)
			f.stream.put("x", "key-1")
		}
		<-time.After(time.Second)
		if s := m.only(t); s.MillisBehindLatest < 60_000 || s.Records != 60 {
			t.Errorf("behind %d ms after %d records", s.MillisBehindLatest, s.Records)
		}
		close(release)
		<-time.After(time.Second)
		if s := m.only(t); s.MillisBehindLatest != 0 || s.Records != 61 {
			t.Errorf("behind %d ms after %d records", s.MillisBehindLatest, s.Records)
		}
	})
}

// Each state of a shard shows.
func TestStatusOfStates(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		bad := errors.New("bad record")
		var failing, slow atomic.Bool
		m := f.start("w1", func(c *consumer.Config) {
			c.OnError = consumer.ErrorPolicy{Attempts: 2, Then: consumer.ThenStop}
			c.Handler = func(ctx context.Context, _ *consumer.Batch) error {
				if slow.Load() {
					<-ctx.Done()
				}
				if failing.Load() {
					return bad
				}
				return nil
			}
		})
		<-time.After(failover)
		state := func(i int) consumer.ShardStatus { return m.Status().Shards[i] }
		m.Pause("shardId-000000000000")
		<-time.After(time.Minute)
		if s := state(0); s.State != consumer.ShardPaused || s.MillisBehindLatest < 59_000 {
			t.Errorf("paused: %+v", s)
		}
		if s := state(1); s.State != consumer.ShardReading {
			t.Errorf("the other one: %+v", s)
		}
		m.Resume()
		<-time.After(time.Second)
		if s := state(0); s.State != consumer.ShardReading || s.MillisBehindLatest != 0 {
			t.Errorf("resumed: %+v", s)
		}
		failing.Store(true)
		f.stream.put("x", keys(1)...)
		<-time.After(failover)
		i := slices.IndexFunc(m.Status().Shards, func(s consumer.ShardStatus) bool {
			return s.State == consumer.ShardStopped
		})
		if i < 0 {
			t.Fatalf("none has stopped: %+v", m.Status())
		}
		if s := state(i); !errors.Is(s.Err, bad) || s.Retries == 0 || m.Status().Retries != s.Retries {
			t.Errorf("stopped: %+v", s)
		}
		text, err := json.Marshal(m.Status())
		if err != nil || !strings.Contains(string(text), `"error":"`) ||
			!strings.Contains(string(text), `"millis_behind_latest":`) {
			t.Errorf("%s, %v", text, err)
		}
		failing.Store(false)
		m.Resume()
		<-time.After(time.Second)
		slow.Store(true)
		f.stream.put("x", keys(20)...)
		<-time.After(time.Second)
		m.stop()
		<-time.After(time.Second)
		if s := state(0); s.State != consumer.ShardHandingOver {
			t.Errorf("stopping: %+v", s)
		}
		<-m.err
	})
}

// A held child that waits for its parents says so, and is behind by nothing.
func TestStatusOfAWaitingShard(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		m := f.start("w1", func(c *consumer.Config) {
			c.Handler = func(ctx context.Context, b *consumer.Batch) error {
				if b.ShardID == "shardId-000000000001" {
					<-ctx.Done()
				}
				return nil
			}
		})
		<-time.After(failover)
		f.stream.put("x", keys(20)...)
		f.stream.merge(0)
		<-time.After(failover)
		const child = "shardId-000000000002"
		free, err := f.leaseTable().Get(f.Context(), child)
		if err == nil {
			_, err = f.leaseTable().Assign(f.Context(), free, "w1")
		}
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(failover)
		s := m.Status()
		if s.TotalLeases != 2 || s.TotalShards != 2 || s.UnclaimedLeases != 0 || len(s.Shards) != 2 {
			t.Fatalf("%+v", s)
		}
		if w := s.Shards[1]; w.Shard != child || w.State != consumer.ShardWaiting ||
			w.MillisBehindLatest != 0 || s.Shards[0].MillisBehindLatest < 10_000 {
			t.Errorf("%+v", s.Shards)
		}
	})
}

// Refused reads are counted for the shard and for the worker.
func TestStatusOfThrottles(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var refused atomic.Int64
		f.stream.fault = func(op string, shard runnel.ShardID) error {
			if op == "GetRecords" && shard == "shardId-000000000001" && refused.Add(1) <= 7 {
				return &types.ProvisionedThroughputExceededException{}
			}
			return nil
		}
		m := f.start("w1")
		<-time.After(4 * failover)
		s := m.Status()
		if s.Throttles != 7 || s.Shards[0].Throttles != 0 || s.Shards[1].Throttles != 7 {
			t.Errorf("%d throttles: %+v", s.Throttles, s.Shards)
		}
	})
}

// Status may be called from everywhere at any time: from OnEvent, from handlers, and from
// outside, while operators seek and pause.
func TestStatusFromEverywhere(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		c := &chaos{random: rand.New(rand.NewPCG(1, 3))}
		var worker atomic.Pointer[consumer.Worker]
		call := func() {
			if w := worker.Load(); w != nil {
				_ = w.Status()
			}
		}
		m := f.start("w1", func(cfg *consumer.Config) {
			cfg.OnEvent = func(consumer.Event) { call() }
			cfg.Handler = func(context.Context, *consumer.Batch) error {
				call()
				if c.chance(5) {
					return errCut
				}
				return nil
			}
		})
		worker.Store(m.Worker)
		<-time.After(time.Second)
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				for range 50 {
					f.stream.put("x", keys(3)...)
					shard := runnel.ShardID(fmt.Sprintf("shardId-%012d", i))
					switch c.pick(3) {
					case 0:
						_ = m.Seek(f.Context(), shard, runnel.Start())
					case 1:
						m.Pause(shard)
					default:
						m.Resume()
					}
					call()
					<-time.After(time.Duration(c.pick(1000)) * time.Millisecond)
				}
			})
		}
		group.Wait()
	})
}

// Status waits for no lock that its caller may hold: here from OnEvent within a commit, for which a
// Seek waits.
func TestStatusWithinACommit(t *testing.T) {
	f := newFleet(t, 1)
	var worker atomic.Pointer[consumer.Worker]
	var once sync.Once
	seeking, done := make(chan struct{}), make(chan struct{})
	m := f.start("w1", func(c *consumer.Config) {
		c.OnEvent = func(e consumer.Event) {
			if e.Kind != consumer.EventCommitted {
				return
			}
			once.Do(func() {
				w := worker.Load()
				go func() {
					defer close(seeking)
					_ = w.Seek(t.Context(), e.ShardID, runnel.Start())
				}()
				<-time.After(100 * time.Millisecond)
				_ = w.Status()
				close(done)
			})
		}
	})
	worker.Store(m.Worker)
	f.stream.put("x", keys(1)...)
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		panic("Status waits for a lock")
	}
	<-seeking
	f.close()
}

// The fleet's numbers: two workers watch, and a lease that no worker may hold is unclaimed.
func TestStatusOfTheFleet(t *testing.T) {
	bubble(t, 6, func(f *fleet) {
		few := func(c *consumer.Config) { c.MaxLeases = 1 }
		for _, id := range []string{"w1", "w2", "w3"} {
			f.start(id, few)
		}
		<-time.After(6 * failover)
		watching := 0
		for id, m := range f.workers {
			s := m.Status()
			if s.WorkerLeases != 1 {
				t.Errorf("%s holds %d leases", id, s.WorkerLeases)
			}
			if !s.Watching {
				continue
			}
			watching++
			if s.TotalLeases != 6 || s.TotalShards != 6 || s.UnclaimedLeases != 3 ||
				time.Since(s.Looked) > failover/2 {
				t.Errorf("%s: %+v", id, s)
			}
		}
		if watching != 2 {
			t.Errorf("%d workers watch", watching)
		}
	})
}

// A shard without a lease shows for as long as it has none.
func TestStatusOfAMissingLease(t *testing.T) {
	bubble(t, 3, func(f *fleet) {
		var refusing atomic.Bool
		m := f.start("w1", func(c *consumer.Config) {
			c.MaxLeases = 1
			c.AuditInterval = 30 * time.Second
			c.DynamoDB.(*link).before = func(_ context.Context, op string) error {
				if op == "PutItem" && refusing.Load() {
					return errCut
				}
				return nil
			}
		})
		<-time.After(3 * failover)
		refusing.Store(true)
		i := slices.IndexFunc(f.leases(), func(l lease.Lease) bool { return l.Owner == "" })
		if err := f.leaseTable().Delete(f.Context(), f.leases()[i]); err != nil {
			t.Fatal(err)
		}
		<-time.After(failover)
		for range 10 {
			if s := m.Status(); s.TotalLeases != 2 || s.TotalShards != 3 {
				t.Fatalf("%d leases, %d shards", s.TotalLeases, s.TotalShards)
			}
			<-time.After(failover)
		}
		refusing.Store(false)
		<-time.After(time.Minute)
		if s := m.Status(); s.TotalLeases != 3 || s.TotalShards != 3 {
			t.Errorf("%d leases, %d shards", s.TotalLeases, s.TotalShards)
		}
	})
}

// While shards split and merge, and the stream forgets old ones, no shard lacks its lease, and no
// status says so.
func TestStatusOverReshards(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		c := &chaos{random: rand.New(rand.NewPCG(1, 4))}
		faster := func(cfg *consumer.Config) {
			cfg.AuditInterval = 5 * time.Second
			cfg.Handler = func(ctx context.Context, b *consumer.Batch) error {
				select { // children have no lease meanwhile
				case <-time.After(time.Duration(c.pick(15)) * time.Second):
				case <-ctx.Done():
				}
				return ctx.Err()
			}
		}
		f.start("w1", faster)
		f.start("w2", faster)
		alarms, ended := 0, 0
		for n := range 300 {
			switch c.pick(6) {
			case 0:
				f.stream.split(c.pick(100))
			case 1, 2:
				f.stream.merge(c.pick(100))
			}
			f.stream.put("x", keys(5)...)
			<-time.After(time.Duration(c.pick(5_000)) * time.Millisecond)
			if n%20 == 0 { // the oldest shards go
				f.stream.mu.Lock()
				for _, sh := range f.stream.shards {
					if !sh.closed.IsZero() && time.Since(sh.closed) > 3*time.Minute && !sh.unlisted {
						sh.unlisted = true
						ended++
					}
				}
				f.stream.mu.Unlock()
			}
			for _, m := range f.workers {
				if s := m.Status(); s.TotalLeases < s.TotalShards {
					alarms++
				}
			}
		}
		if alarms > 0 || ended < 10 {
			t.Errorf("%d false alarms, %d shards were forgotten", alarms, ended)
		}
	})
}
