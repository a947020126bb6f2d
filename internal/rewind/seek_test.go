package rewind_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/rewind"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// delivery is a record that a handler got. Its life is the number of seeks before.
type delivery struct {
	life  int
	shard runnel.ShardID
	data  string
}

// crew are the workers of the history's application, with their deliveries.
type crew struct {
	*history
	mu    sync.Mutex
	got   []delivery
	life  int
	group sync.WaitGroup
}

// start runs a worker, and returns the means to stop and to kill it.
func (c *crew) start(id string, change ...func(*consumer.Config)) (stop, kill func()) {
	c.Helper()
	c.live = true
	cfg := consumer.Config{
		Stream: "orders", App: app, WorkerID: id, Failover: failover, PollInterval: time.Second,
		Kinesis: c.server.Kinesis(), DynamoDB: c.server.DynamoDB(),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Handler: func(_ context.Context, b *consumer.Batch) error {
			c.note(b.Records)
			return nil
		},
	}
	for _, do := range change {
		do(&cfg)
	}
	w, err := consumer.New(cfg)
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	c.group.Go(func() {
		if err := w.Run(ctx); err != nil && !errors.Is(err, seam.ErrKilled) {
			c.Error(err)
		}
	})
	return func() { cancel(nil) }, func() { cancel(seam.ErrKilled) }
}

func (c *crew) note(records []runnel.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range records {
		c.got = append(c.got, delivery{c.life, r.ShardID, string(r.Data)})
	}
}

// seek returns the seek to a time as the command makes it, by a client of the table.
func (c *crew) seek(api lease.DynamoDBAPI, to runnel.From) rewind.Seek {
	c.Helper()
	table, bound := c.table(api)
	goals, err := rewind.Find(c.Context(),
		rewind.Stream{Kinesis: c.server.Kinesis(), Name: "orders", Now: time.Now()}, to, c.shards())
	if err != nil {
		c.Fatal(err)
	}
	return rewind.Seek{
		Table: table, Origin: bound.Origin, Failover: failover, Wait: time.Minute,
		Worker: fmt.Sprint("seek-", rand.Uint64()), Goals: goals,
		Latest: to.Word() == runnel.Latest,
		Shards: func(ctx context.Context) ([]runnel.Shard, error) {
			return shardmap.List(ctx, c.server.Kinesis(), "orders", nil)
		},
		OnHeld: func(int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.life++
		},
	}
}

// dataOf returns the data of the deliveries of a life, from one shard or, with "", from all.
func (c *crew) dataOf(life int, shard runnel.ShardID) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var data []string
	for _, d := range c.got {
		if d.life == life && (shard == "" || d.shard == shard) {
			data = append(data, d.data)
		}
	}
	return data
}

func (c *crew) await(limit time.Duration, what string, holds func() bool) {
	c.Helper()
	for end := time.Now().Add(limit); !holds(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			c.dump()
			c.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func (c *crew) dump() {
	table, _ := c.table(c.server.DynamoDB())
	leases, _, _ := table.List(c.Context())
	for _, l := range leases {
		c.Logf("%s %q at %s, ask %q, counter %d", l.Key, l.Owner, l.Checkpoint, l.Ask, l.Counter)
	}
}

// wantLife checks that a life has exactly the records since a time, each once, those of a shard in
// their order, and those of parents before those of children.
func (c *crew) wantLife(life int, to runnel.From, when string) {
	c.Helper()
	want := slices.Sorted(slices.Values(c.since(to)))
	c.await(4*failover, when+": the records", func() bool {
		return len(c.dataOf(life, "")) >= len(want)
	})
	<-time.After(2 * failover)
	got := slices.Sorted(slices.Values(c.dataOf(life, "")))
	if !slices.Equal(got, want) {
		c.Errorf("%s, from %s: got %d records %v, want %d %v", when, to, len(got), got, len(want), want)
	}
	c.wantOrder(life, when)
}

// wantOrder checks that a life has the records of each shard in their order, and those of a shard
// before those of all its descendants.
func (c *crew) wantOrder(life int, when string) {
	c.Helper()
	number := map[string]int{}
	for n, data := range c.put {
		number[data] = n
	}
	above := map[runnel.ShardID][]runnel.ShardID{} // all ancestors
	for _, s := range c.shards() {
		for _, parent := range s.Parents {
			above[s.ID] = append(append(above[s.ID], parent), above[parent]...)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last := map[runnel.ShardID]int{}
	for _, d := range c.got {
		if d.life != life {
			continue
		}
		if before, there := last[d.shard]; there && number[d.data] < before {
			c.Errorf("%s: %s came after a later one of %s", when, d.data, d.shard)
		}
		last[d.shard] = number[d.data]
		for begun := range last {
			if slices.Contains(above[begun], d.shard) {
				c.Errorf("%s: %s of %s came after a record of %s", when, d.data, d.shard, begun)
			}
		}
	}
}

// sail makes a history and the crew that reads it.
func sail(t *testing.T, seed uint64, run func(*crew)) {
	t.Helper()
	bubble(t, seed, func(h *history) {
		c := &crew{history: h}
		defer c.group.Wait()
		run(c)
	})
}

// A seek beside running workers: they deliver exactly the records from the time on, over the split
// and the merge, parents before children. A producer and another split go on meanwhile.
func TestSeekBesideWorkers(t *testing.T) {
	for seed := range uint64(2) {
		sail(t, seed, func(c *crew) {
			stop1, _ := c.start("w1")
			stop2, _ := c.start("w2")
			defer stop1()
			defer stop2()
			random := rand.New(rand.NewPCG(seed, 7))
			c.wantLife(0, runnel.FromOldest(), "at first")
			targets := c.targets()
			random.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
			for life, to := range targets[:6] {
				seek := c.seek(c.server.DynamoDB(), to)
				at := len(c.put)
				var feeding sync.WaitGroup
				feeding.Go(func() {
					c.some(random, 5)
					if life%2 == 0 {
						c.reshard([]string{"split", "merge"}[life/2%2])
						c.some(random, 5)
					}
				})
				if life%3 == 0 {
					feeding.Wait()
				}
				if n, begun, err := seek.Run(c.Context()); err != nil || !begun {
					c.dump()
					c.Fatalf("to %s: %d, %v, %v", to, n, begun, err)
				}
				feeding.Wait()
				if to.Word() == runnel.Latest {
					// Newer records follow, unless they were delivered before.
					c.wantAllOnce(life, at)
					continue
				}
				c.wantLife(life+1, to, "after a seek")
			}
		})
	}
}

// wantAllOnce checks that the records from a number on were delivered once, in the life before a
// seek or in the one after it.
func (c *crew) wantAllOnce(life, from int) {
	c.Helper()
	<-time.After(3 * failover)
	got := append(c.dataOf(life, ""), c.dataOf(life+1, "")...)
	for _, data := range c.put[from:] {
		n := 0
		for _, g := range got {
			if g == data {
				n++
			}
		}
		if n != 1 {
			c.Errorf("after a seek to the latest, %s came %d times", data, n)
		}
	}
	if got := c.dataOf(life+1, ""); len(got) > len(c.put)-from {
		c.Errorf("after a seek to the latest: %v", got)
	}
}

// A seek of a fleet that is stopped is a reset. The rows of a worker that was killed expire first.
func TestSeekOfAStoppedFleet(t *testing.T) {
	for _, how := range []string{"stopped", "killed"} {
		sail(t, 5, func(c *crew) {
			stop, kill := c.start("w1")
			c.wantLife(0, runnel.FromOldest(), "at first")
			if how == "killed" {
				kill()
			} else {
				stop()
			}
			c.group.Wait()
			for i, to := range c.targets() {
				began := time.Now()
				if _, _, err := c.seek(c.server.DynamoDB(), to).Run(c.Context()); err != nil {
					c.Fatalf("to %s: %v", to, err)
				}
				if took := time.Since(began); took > time.Second && (i > 0 || how == "stopped") ||
					took > 2*failover {
					c.Errorf("it took %s", took)
				}
				if to.Word() != runnel.Latest { // its rows may be where they are to be
					c.noLatest()
				}
				c.wantFrom(to, how)
			}
		})
	}
}

// A seek that is killed at any write changes nothing, or leaves rows behind from which the workers go
// on, parents before children; the next seek completes it. No record is lost.
func TestSeekIsKilled(t *testing.T) {
	sail(t, 11, func(c *crew) {
		stop1, _ := c.start("w1")
		stop2, _ := c.start("w2")
		defer stop1()
		defer stop2()
		c.wantLife(0, runnel.FromOldest(), "at first")
		random := rand.New(rand.NewPCG(1, 1))
		to := runnel.FromTime(c.at[len(c.at)/8]) // before the split
		kills, partly := 0, 0
		for n := 0; ; n++ {
			cut := &cutOff{DynamoDBAPI: c.server.DynamoDB(), left: n}
			seek := c.seek(cut, to)
			_, begun, err := seek.Run(c.Context())
			if err == nil {
				break
			}
			if !errors.Is(err, errCutOff) && !errors.Is(err, rewind.ErrTimeout) &&
				!errors.Is(err, lease.ErrLeaseLost) {
				c.Fatalf("after %d writes: %v", n, err)
			}
			if kills++; begun {
				partly++
			}
			c.wantEndsAbove(n, seek.Goals)
			// The leases of the dead one expire, and the workers go on.
			c.some(random, 6)
			<-time.After(4 * failover)
			after := fmt.Sprintf("a kill after %d writes", n)
			c.await(3*failover, after, c.hasAll)
			c.wantOrder(c.life, after)
			if _, _, err := c.seek(c.server.DynamoDB(), to).Run(c.Context()); err != nil {
				c.dump()
				c.Fatalf("after a kill after %d writes: %v", n, err)
			}
			c.wantLife(c.life, to, fmt.Sprintf("killed after %d writes", n))
		}
		if kills < 8 || partly < 3 {
			c.Errorf("%d kills, %d of them after a position was written", kills, partly)
		}
	})
}

// A seek forward that is killed before the first position is written leaves no new row that would
// skip a record.
func TestSeekIsKilledBeforeThePositions(t *testing.T) {
	for n, begun := 0, false; !begun; n++ {
		sail(t, 0, func(c *crew) {
			table := c.young()
			cut := &cutOff{DynamoDBAPI: c.server.DynamoDB(), left: n}
			var err error
			_, begun, err = c.seek(cut, c.forward()).Run(c.Context())
			if !errors.Is(err, errCutOff) {
				c.Fatalf("killed after %d writes: %v", n, err)
			}
			leases, _, err := table.List(c.Context())
			if err != nil || begun && len(leases) != 3 {
				c.Errorf("%d rows, %v: the test needs a new one", len(leases), err)
			}
			c.wantFrom(runnel.FromOldest(), fmt.Sprintf("killed after %d writes", n))
		})
	}
}

// forward is a time in the last shard, whose row is new then.
func (c *crew) forward() runnel.From { return runnel.FromTime(c.at[len(c.at)*9/10]) }

// An interrupt before the first position is written removes the new rows.
func TestSeekIsInterrupted(t *testing.T) {
	sail(t, 0, func(c *crew) {
		table := c.young()
		ctx, cancel := context.WithCancel(c.Context())
		_, begun, err := c.seek(&atPut{c.server.DynamoDB(), cancel}, c.forward()).Run(ctx)
		if !errors.Is(err, context.Canceled) || begun {
			c.Errorf("interrupted: %v, %v", begun, err)
		}
		leases, _, err := table.List(c.Context())
		if err != nil || len(leases) != 2 || leases[0].Owner+leases[1].Owner != "" {
			c.Errorf("after an interrupt: %+v, %v", leases, err)
		}
	})
}

// A worker that was paused makes the row of a child when all leases are held. The seek finds and sets
// it, too.
func TestSeekFindsALateRow(t *testing.T) {
	sail(t, 0, func(c *crew) {
		table := c.young()
		seek := c.seek(c.server.DynamoDB(), runnel.FromOldest())
		seek.Shards = func(ctx context.Context) ([]runnel.Shard, error) {
			all := c.shards()
			late := lease.NewLease(all[2], runnel.FromOldest())
			late.Owner, late.Checkpoint = "paused", runnel.Position{Sequence: all[2].Last}
			_, _, err := table.Create(ctx, late)
			return all, err
		}
		if _, _, err := seek.Run(c.Context()); err != nil {
			c.Fatal(err)
		}
		c.wantFrom(runnel.FromOldest(), "beside a late row")
	})
}

// atPut calls a function when a row is put.
type atPut struct {
	lease.DynamoDBAPI
	do func()
}

func (a *atPut) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	defer a.do()
	return a.DynamoDBAPI.PutItem(ctx, in, o...)
}

// young makes the table of an application that has begun and processed nothing.
func (c *crew) young() *lease.Table {
	c.Helper()
	described, err := c.server.Kinesis().DescribeStreamSummary(c.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
	if err != nil {
		c.Fatal(err)
	}
	table, err := lease.New(lease.Config{
		DynamoDB: c.server.DynamoDB(), Table: app, Stream: lease.Stream{
			Name: "orders", Created: *described.StreamDescriptionSummary.StreamCreationTimestamp,
		},
	})
	if err == nil {
		err = table.Ensure(c.Context())
	}
	if err != nil {
		c.Fatal(err)
	}
	origin := runnel.FromOldest()
	for _, s := range c.shards()[:2] {
		l := lease.NewLease(s, origin)
		l.Origin = &origin
		if _, _, err := table.Create(c.Context(), l); err != nil {
			c.Fatal(err)
		}
	}
	return table
}

// The leases are held for as long as it takes, and no worker reads meanwhile.
func TestSeekHoldsTheLeases(t *testing.T) {
	sail(t, 23, func(c *crew) {
		stop1, _ := c.start("w1")
		stop2, _ := c.start("w2")
		defer stop1()
		defer stop2()
		c.wantLife(0, runnel.FromOldest(), "at first")
		seek := c.seek(c.server.DynamoDB(), runnel.FromOldest())
		times := 0
		seek.OnHeld = func(leases int) {
			c.some(rand.New(rand.NewPCG(1, 1)), 5)
			before := len(c.got)
			<-time.After(2 * failover)
			if len(c.got) != before || leases != 2 {
				c.Errorf("%d records were delivered, beside %d leases", len(c.got)-before, leases)
			}
			c.life, times = c.life+1, times+1
		}
		if _, _, err := seek.Run(c.Context()); err != nil || times != 1 {
			c.Fatalf("held %d times: %v", times, err)
		}
		c.wantLife(1, runnel.FromOldest(), "after a long hold")
	})
}

// wantEndsAbove checks that no shard counts as read whose ancestor is to be read: the workers would
// go on behind it beside that ancestor. A shard without a record from the time on is left out.
func (c *crew) wantEndsAbove(writes int, goals []rewind.Goal) {
	c.Helper()
	over := map[runnel.ShardID]bool{}
	for _, g := range goals {
		over[g.Shard.ID] = g.At == runnel.End()
	}
	table, _ := c.table(c.server.DynamoDB())
	leases, _, err := table.List(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	rows := lease.ByKey(leases)
	for _, l := range leases {
		for _, parent := range l.Parents {
			p, there := rows[parent]
			if there && l.Ended() && !over[l.Key] && !p.Ended() {
				c.Errorf("after a kill after %d writes: %s has ended, and its parent %s has not", writes,
					l.Key, parent)
			}
		}
	}
}

// hasAll reports whether every record was delivered at some time.
func (c *crew) hasAll() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := map[string]bool{}
	for _, d := range c.got {
		got[d.data] = true
	}
	return len(got) == len(c.put)
}

// A worker that does not pass its lease in time ends the seek. All positions are as before, and the
// fleet goes on.
func TestSeekGivesUp(t *testing.T) {
	sail(t, 13, func(c *crew) {
		release := make(chan struct{})
		block := make(chan struct{})
		stop, _ := c.start("w1", func(cfg *consumer.Config) {
			cfg.HandOverTimeout = time.Hour
			cfg.Handler = func(_ context.Context, b *consumer.Batch) error {
				c.note(b.Records)
				select {
				case <-block:
					<-release
				default:
				}
				return nil
			}
		})
		defer stop()
		c.wantLife(0, runnel.FromOldest(), "at first")
		close(block)
		c.some(rand.New(rand.NewPCG(1, 1)), 1)
		<-time.After(failover)
		table, _ := c.table(c.server.DynamoDB())
		before, _, err := table.List(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		began := time.Now()
		_, begun, err := c.seek(c.server.DynamoDB(), runnel.FromOldest()).Run(c.Context())
		if !errors.Is(err, rewind.ErrTimeout) || begun || !strings.Contains(err.Error(), "w1") {
			c.Errorf("got %v, %v", begun, err)
		}
		if took := time.Since(began); took > time.Minute+5*time.Second {
			c.Errorf("it took %s", took)
		}
		after, _, err := table.List(c.Context())
		if err != nil || len(after) != len(before) {
			c.Fatalf("%d rows, there were %d: %v", len(after), len(before), err)
		}
		for i, l := range after {
			if l.Checkpoint != before[i].Checkpoint {
				c.Errorf("%s is at %s, and was at %s", l.Key, l.Checkpoint, before[i].Checkpoint)
			}
		}
		close(release)
		<-time.After(2 * failover)
		c.some(rand.New(rand.NewPCG(2, 1)), 3)
		c.await(2*failover, "the new records", func() bool {
			return len(c.dataOf(0, "")) == len(c.put)
		})
	})
}

// The workers' failover time is above the one that the seek and the reset are told. Their rows say
// it, so a live worker counts as one, and a dead one is waited for.
func TestRowsSayALongerFailover(t *testing.T) {
	sail(t, 29, func(c *crew) {
		long := func(cfg *consumer.Config) { cfg.Failover = 4 * failover }
		_, kill := c.start("w1", long)
		defer kill()
		c.wantLife(0, runnel.FromOldest(), "at first")
		table, _ := c.table(c.server.DynamoDB())
		for range 5 {
			held, err := rewind.Holders(c.Context(), table, failover/5)
			if err != nil || len(held["w1"]) == 0 {
				c.Errorf("the holders are %v, %v", held, err)
			}
		}
		counters := func() (sum int64) {
			leases, _, err := table.List(c.Context())
			for _, l := range leases {
				sum += l.Counter
			}
			if err != nil {
				c.Fatal(err)
			}
			return sum
		}
		before := counters()
		c.await(4*failover, "a write", func() bool { return counters() != before })
		silent := map[string]time.Duration{}
		seek := c.seek(c.server.DynamoDB(), runnel.FromOldest())
		seek.OnSilent = func(of lease.Lease, silence time.Duration) { silent[of.Owner] = silence }
		if _, _, err := seek.Run(c.Context()); err != nil || len(silent) > 0 {
			c.Fatalf("of a live worker: %v, silent: %v", err, silent)
		}
		c.wantLife(1, runnel.FromOldest(), "beside a longer failover")
		kill()
		c.group.Wait()
		seek = c.seek(c.server.DynamoDB(), runnel.FromOldest())
		seek.OnSilent = func(of lease.Lease, silence time.Duration) { silent[of.Owner] = silence }
		if _, _, err := seek.Run(c.Context()); err != nil || silent["w1"] < 4*failover {
			c.Fatalf("of a dead worker: %v, silent: %v", err, silent)
		}
	})
}

// The workers' failover time is below the one that the seek is told. They take no lease that it
// holds, however long that takes.
func TestRowsSayAShorterFailover(t *testing.T) {
	sail(t, 29, func(c *crew) {
		_, kill := c.start("w1", func(cfg *consumer.Config) { cfg.Failover = failover / 5 })
		defer kill()
		c.wantLife(0, runnel.FromOldest(), "at first")
		seek := c.seek(c.server.DynamoDB(), runnel.FromOldest())
		seek.OnHeld = func(int) {
			<-time.After(2 * failover)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.life++
		}
		if _, _, err := seek.Run(c.Context()); err != nil {
			c.Fatal(err)
		}
		c.wantLife(1, runnel.FromOldest(), "beside a shorter failover")
	})
}

// A seek is refused where a sink keeps the position, and where a Java worker lives.
func TestSeekIsRefused(t *testing.T) {
	sail(t, 17, func(c *crew) {
		stop, _ := c.start("w1")
		c.wantLife(0, runnel.FromOldest(), "at first")
		stop()
		c.group.Wait()
		table, _ := c.table(c.server.DynamoDB())
		leases, _, err := table.List(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		i := slices.IndexFunc(leases, func(l lease.Lease) bool { return !l.Ended() })
		claim := lease.Claim{Worker: "sinking", Sink: true}
		held, err := table.Take(c.Context(), leases[i], claim)
		if err != nil {
			c.Fatal(err)
		}
		_, begun, err := c.seek(c.server.DynamoDB(), runnel.FromOldest()).Run(c.Context())
		if !errors.Is(err, rewind.ErrSink) || begun {
			c.Errorf("beside a sink: %v, %v", begun, err)
		}
		if _, err = table.Release(c.Context(), held, lease.Mark{}); err != nil {
			c.Fatal(err)
		}
		for _, alive := range []bool{true, false} {
			l, err := table.Get(c.Context(), leases[i].Key)
			if err == nil {
				l, err = table.Take(c.Context(), l, lease.Claim{Worker: "no sink"})
			}
			if err == nil {
				_, err = table.Release(c.Context(), l, lease.Mark{})
			}
			if err != nil {
				c.Fatal(err)
			}
			c.java(leases[i].Key, "java")
			ctx, cancel := context.WithCancel(c.Context())
			var beating sync.WaitGroup
			beating.Go(func() {
				for alive && ctx.Err() == nil {
					<-time.After(3 * time.Second)
					c.java(leases[i].Key, "java")
				}
			})
			err = rewind.RefuseJava(c.Context(), table, failover)
			if errors.Is(err, rewind.ErrJava) != alive {
				c.Errorf("beside a Java worker (alive: %v): %v", alive, err)
			}
			seek := c.seek(c.server.DynamoDB(), runnel.FromOldest())
			if _, begun, err := seek.Run(c.Context()); errors.Is(err, rewind.ErrJava) != alive ||
				begun == alive {
				c.Errorf("the seek beside a Java worker (alive: %v): %v, %v", alive, begun, err)
			}
			cancel()
			beating.Wait()
		}
	})
}

// java writes a row as a worker of Java's does.
func (c *crew) java(shard runnel.ShardID, owner string) {
	c.Helper()
	table := app
	update, name, counter := "SET #o = :o ADD #c :one", "leaseOwner", "leaseCounter"
	_, err := c.server.DynamoDB().UpdateItem(c.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: key(shard), UpdateExpression: &update,
		ExpressionAttributeNames:  map[string]string{"#o": name, "#c": counter},
		ExpressionAttributeValues: values(owner),
	})
	if err != nil && c.Context().Err() == nil {
		c.Error(err)
	}
}

func key(shard runnel.ShardID) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"leaseKey": &types.AttributeValueMemberS{Value: string(shard)},
	}
}

func values(owner string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		":o":   &types.AttributeValueMemberS{Value: owner},
		":one": &types.AttributeValueMemberN{Value: "1"},
	}
}
