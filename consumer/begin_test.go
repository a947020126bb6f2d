package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

type row = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// putRow puts a row as another program writes it, and makes the table if need be.
func (f *fleet) putRow(r row) {
	f.Helper()
	err := f.leaseTable().Ensure(f.Context())
	if err == nil {
		_, err = f.table.PutItem(f.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("orders-app"), Item: r,
			ConditionExpression:      aws.String("attribute_not_exists(#k)"),
			ExpressionAttributeNames: map[string]string{"#k": "leaseKey"},
		})
	}
	if err != nil {
		f.Fatal(err)
	}
}

// javaRow is a row as a Java leader creates it, without an owner.
func (f *fleet) javaRow(shard *fakeShard, checkpoint string) row {
	return row{
		"leaseKey": text(string(shard.id)), "leaseCounter": number(0),
		"checkpoint": text(checkpoint), "checkpointSubSequenceNumber": number(0),
		"ownerSwitchesSinceCheckpoint": number(0),
		"startingHashKey":              text(shard.keys.Start.String()),
		"endingHashKey":                text(shard.keys.End.String()),
	}
}

func from(at runnel.From) func(*consumer.Config) {
	return func(c *consumer.Config) { c.From = at }
}

// dataOnly collects the records' data, for tests in which reading begins in the middle of a shard.
func (f *fleet) dataOnly() (func(*consumer.Config), func() map[string]int) {
	got := map[string]int{}
	return func(c *consumer.Config) {
			c.Handler = func(_ context.Context, b *consumer.Batch) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				for _, r := range b.Records {
					got[string(r.Data)]++
				}
				return nil
			}
		}, func() map[string]int {
			f.mu.Lock()
			defer f.mu.Unlock()
			all := map[string]int{}
			for data, n := range got {
				all[data] = n
			}
			return all
		}
}

// oneBeginning checks that all rows are there, without a mark and with one origin, and returns it.
func (f *fleet) oneBeginning(shards int) runnel.From {
	f.Helper()
	rows := f.leases()
	if len(rows) < shards {
		f.dump()
		f.Fatalf("%d rows of %d", len(rows), shards)
	}
	for _, l := range rows {
		if l.Beginning || l.Origin == nil || *l.Origin != *rows[0].Origin {
			f.Errorf("%s: marked %v, origin %v, and that of %s %v", l.Key, l.Beginning, l.Origin,
				rows[0].Key, rows[0].Origin)
		}
	}
	return *rows[0].Origin
}

// Three workers with three origins begin at the same moment. One origin holds for all shards, and
// the records say so, too.
func TestFirstWorkersWithSeveralOrigins(t *testing.T) {
	won := map[runnel.SequenceNumber]int{}
	for seed := range uint64(20 * soak()) {
		bubble(t, 4, func(f *fleet) {
			c := &chaos{random: rand.New(rand.NewPCG(seed, 3))}
			f.table.Before = func(context.Context, string, string) error {
				<-time.After(time.Duration(c.pick(300)) * time.Millisecond)
				return nil
			}
			<-time.After(time.Minute)
			old := len(f.stream.put("old", keys(40)...))
			<-time.After(time.Minute)
			at := time.Now()
			recent := len(f.stream.put("recent", keys(40)...))
			<-time.After(time.Second)
			collect, got := f.dataOnly()
			f.start("w1", collect, from(runnel.FromOldest()))
			f.start("w2", collect, from(runnel.FromTime(at)))
			f.start("w3", collect, from(runnel.FromLatest()))
			<-time.After(3 * failover)
			origin := f.oneBeginning(4)
			won[origin.Word()]++
			want := map[runnel.SequenceNumber][2]int{
				runnel.TrimHorizon: {old, recent}, runnel.AtTimestamp: {0, recent}, runnel.Latest: {},
			}[origin.Word()]
			if g := got(); g["old"] != want[0] || g["recent"] != want[1] {
				f.Errorf("seed %d: began at %s, and got %v", seed, origin, g)
			}
		})
	}
	if len(won) < 2 {
		t.Errorf("the same origin won every time: %v", won)
	}
}

// The same while the stream is resharded, so that the workers see different first shards.
func TestFirstWorkersInAReshard(t *testing.T) {
	for seed := range uint64(30 * soak()) {
		bubble(t, 2, func(f *fleet) {
			c := &chaos{random: rand.New(rand.NewPCG(seed, 4))}
			f.table.Before = func(context.Context, string, string) error {
				<-time.After(time.Duration(c.pick(400)) * time.Millisecond)
				return nil
			}
			<-time.After(time.Minute)
			f.stream.put("a", keys(40)...)
			at := time.Now()
			f.start("w1", from(runnel.FromOldest()))
			f.start("w2", from(runnel.FromTime(at.Add(-time.Hour)))) // the same records
			for range 4 {
				<-time.After(time.Duration(c.pick(1500)) * time.Millisecond)
				f.stream.split(0)
				f.stream.put("a", keys(40)...)
			}
			f.await(6*failover, "all records", func() bool { n, _ := f.delivered(); return n == 200 })
			<-time.After(failover)
			f.oneBeginning(4)
			if _, again := f.delivered(); again > 0 {
				f.Errorf("seed %d: %d records came again", seed, again)
			}
		})
	}
}

// diesAfter makes every call to the table fail but the first ones, and every batch.
func diesAfter(calls int) func(*consumer.Config) {
	return func(c *consumer.Config) {
		var n atomic.Int64
		l := c.DynamoDB.(*link)
		l.before = func(context.Context, string) error {
			if n.Add(1) > int64(calls) {
				return errCut
			}
			return nil
		}
		c.Handler = func(context.Context, *consumer.Batch) error { return errCut }
	}
}

// A first worker dies after any of its calls. The next one, with another origin, creates the rest
// at the first one's origin.
func TestFirstWorkerDies(t *testing.T) {
	for calls := range 25 {
		bubble(t, 4, func(f *fleet) {
			<-time.After(time.Minute)
			f.stream.put("old", keys(40)...)
			<-time.After(time.Minute)
			at := time.Now()
			recent := len(f.stream.put("recent", keys(40)...))
			<-time.After(time.Second)
			f.stream.split(0)
			collect, got := f.dataOnly()
			m := f.start("w1", from(runnel.FromTime(at)), diesAfter(calls))
			<-time.After(failover)
			m.kill()
			<-m.err
			begun := len(f.leases()) > 0
			f.start("w2", collect, from(runnel.FromOldest()))
			<-time.After(4 * failover)
			origin := f.oneBeginning(4)
			g := got()
			switch {
			case begun && (!origin.Time().Equal(at) || g["old"] != 0 || g["recent"] != recent):
				f.Errorf("after %d calls: origin %s, got %v", calls, origin, g)
			case !begun && (origin != runnel.FromOldest() || g["old"] == 0):
				f.Errorf("after %d calls, not begun: origin %s, got %v", calls, origin, g)
			}
		})
	}
}

// oldTable puts a table as an older version begins it: its item, and some of its rows.
func (f *fleet) oldTable(at time.Time, synced bool, rows int) {
	f.Helper()
	stream := lease.Stream{Name: f.stream.name, Created: f.stream.created}.String()
	item := row{
		"leaseKey": text("runnelStream"), "entityType": text("RUNNEL_STREAM"),
		"runnelStream": text(stream), "runnelOrigin": text("AT_TIMESTAMP"),
		"runnelFrom": number(at.UnixMilli()),
	}
	if synced {
		item["runnelSynced"] = number(1)
	}
	f.putRow(item)
	for _, shard := range f.stream.shards[:rows] {
		r := f.javaRow(shard, "AT_TIMESTAMP")
		r["runnelStream"], r["runnelFrom"] = text(stream), number(at.UnixMilli())
		f.putRow(r)
	}
}

// The table that an older version began is mended by the first workers, which die after any of
// their calls. The item that stops Java workers goes, and nothing is lost or read from elsewhere.
func TestOlderTableIsMended(t *testing.T) {
	for _, rows := range []int{0, 2, 4} {
		for calls := 0; calls < 24; calls += 3 {
			bubble(t, 4, func(f *fleet) {
				<-time.After(time.Minute)
				f.stream.put("old", keys(40)...)
				<-time.After(time.Minute)
				at := time.Now()
				recent := len(f.stream.put("recent", keys(40)...))
				<-time.After(time.Second)
				f.oldTable(at, rows == 4, rows)
				collect, got := f.dataOnly()
				m := f.start("w1", diesAfter(calls))
				<-time.After(failover)
				m.kill()
				<-m.err
				for i := range 3 { // several mend at once
					f.start(fmt.Sprintf("w%d", i+2), collect)
				}
				<-time.After(4 * failover)
				origin := f.oneBeginning(4)
				if g := got(); !origin.Time().Equal(at) || g["old"] != 0 || g["recent"] != recent {
					f.Errorf("%d rows, after %d calls: origin %s, got %v", rows, calls, origin, g)
				}
				out, err := f.table.GetItem(f.Context(), &dynamodb.GetItemInput{
					TableName: aws.String("orders-app"), Key: row{"leaseKey": text("runnelStream")},
				})
				if err != nil || out.Item != nil {
					f.Errorf("the item is still there: %v, %v", out.Item, err)
				}
			})
		}
	}
}

// Java keeps the time of AT_TIMESTAMP in its configuration. A worker with that time as its origin
// begins there, and not with the oldest record.
func TestJavaTableAtATime(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		<-time.After(time.Minute)
		f.stream.put("old", keys(40)...)
		<-time.After(time.Minute)
		at := time.Now()
		recent := len(f.stream.put("recent", keys(40)...))
		for _, shard := range f.stream.shards {
			f.putRow(f.javaRow(shard, "AT_TIMESTAMP"))
		}
		collect, got := f.dataOnly()
		f.start("w1", collect, from(runnel.FromTime(at)))
		<-time.After(3 * failover)
		if g := got(); g["old"] != 0 || g["recent"] != recent {
			f.Errorf("got %v", g)
		}
	})
}

// Without that time, such a shard is reported once with the advice, and waits. The others go on,
// and with Config.Once an error names it.
func TestJavaTableAtAnUnknownTime(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var log lockedText
		f.stream.put("a", keys(40)...)
		waits, goes := f.stream.shards[0], f.stream.shards[1]
		f.putRow(f.javaRow(waits, "AT_TIMESTAMP"))
		f.putRow(f.javaRow(goes, "TRIM_HORIZON"))
		m := f.start("w1", func(c *consumer.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		<-time.After(2 * time.Minute)
		if n, _ := f.delivered(); n != len(goes.records) {
			f.Errorf("%d records, want %d", n, len(goes.records))
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "--from") {
			f.Errorf("logged %d lines: %s", n, &log)
		}
		f.mustStop(m)
		err := <-f.start("w2", once).err
		if !errors.Is(err, lease.ErrUnreadableRow) || !strings.Contains(err.Error(), string(waits.id)) {
			f.Errorf("got %v", err)
		}
	})
}

// A row at LATEST that another program made has no time. Its first holder dies before its first
// checkpoint. The next one begins where the first one began, so no record is lost.
func TestLatestOfAnotherProgram(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.put("old", keys(10)...)
		<-time.After(time.Minute)
		f.putRow(f.javaRow(f.stream.shards[0], "LATEST"))
		m := f.start("w1", from(runnel.FromLatest()), func(c *consumer.Config) {
			c.Handler = func(context.Context, *consumer.Batch) error { return errCut }
		})
		<-time.After(failover)
		f.stream.put("new", keys(10)...)
		<-time.After(time.Second)
		m.kill()
		<-m.err
		collect, got := f.dataOnly()
		f.start("w2", collect, from(runnel.FromLatest()))
		<-time.After(3 * failover)
		if g := got(); g["new"] != 10 || g["old"] != 0 {
			f.Errorf("got %v", g)
		}
	})
}

// The rest of a table that Java created in part begins where its rows begin, not at the worker's
// own choice.
func TestJavaCreatedSomeRows(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		f.stream.put("a", keys(40)...)
		<-time.After(time.Minute)
		f.putRow(f.javaRow(f.stream.shards[2], "TRIM_HORIZON"))
		f.start("w1", from(runnel.FromLatest()))
		f.await(2*failover, "all records", func() bool { n, _ := f.delivered(); return n == 40 })
		if origin := *f.leases()[0].Origin; origin != runnel.FromOldest() {
			f.Errorf("the origin is %s", origin)
		}
	})
}

// Rows of Java's for another stream end the worker before it reads anything, with what to do.
func TestForeignJavaTable(t *testing.T) {
	for name, spoil := range map[string]func(row){
		"before the first number": func(r row) { r["checkpoint"] = text("0") },
		"other hash keys":         func(r row) { r["endingHashKey"] = text("77") },
	} {
		bubble(t, 2, func(f *fleet) {
			f.stream.put("a", keys(10)...)
			f.putRow(f.javaRow(f.stream.shards[0], "TRIM_HORIZON"))
			r := f.javaRow(f.stream.shards[1], "TRIM_HORIZON")
			spoil(r)
			f.putRow(r)
			err := <-f.start("w1").err
			if !errors.Is(err, lease.ErrOtherStream) ||
				!strings.Contains(err.Error(), "another application name") ||
				!strings.Contains(err.Error(), string(f.stream.shards[1].id)) {
				f.Errorf("%s: %v", name, err)
			}
			if n, _ := f.delivered(); n != 0 {
				f.Errorf("%s: %d records were read", name, n)
			}
		})
	}
}

// A KCL 3.x fleet turns native while our workers run. All of them end, those that do not watch the
// table as well, in one interval of their comparisons.
func TestTableTurnsNative(t *testing.T) {
	bubble(t, 6, func(f *fleet) {
		var members []*member
		for i := range 4 {
			members = append(members, f.start(fmt.Sprintf("w%d", i+1)))
		}
		<-time.After(6 * failover)
		f.putRow(row{
			"leaseKey": text("Migration3.0"), "cv": text("CLIENT_VERSION_3X_WITH_ROLLBACK"),
			"entityType": text("CLIENT_VERSION_MIGRATION"),
		})
		for _, m := range members {
			select {
			case err := <-m.err:
				if !errors.Is(err, lease.ErrManagedByKCL3) ||
					!strings.Contains(err.Error(), "COMPATIBLE_WITH_2X_PHASE1") {
					f.Errorf("%s: %v", m.ID(), err)
				}
			case <-time.After(5 * time.Minute):
				f.Errorf("%s goes on", m.ID())
			}
		}
	})
}

// A Java worker lives as long as it renews its lease. Until then a lease of a shard that is gone is
// left to it; afterwards we delete it, by two comparisons as ever.
func TestEndedLeasesAfterJava(t *testing.T) {
	bubble(t, 3, func(f *fleet) {
		f.stream.put("a", keys(30)...)
		gone, java := f.stream.shards[0], f.stream.shards[2]
		held := f.javaRow(java, "TRIM_HORIZON")
		held["leaseOwner"] = text("java-1")
		f.putRow(held)
		beat := func() {
			f.edit(java.id, "ADD #a :a", "leaseCounter", number(1))
		}
		f.start("w1", func(c *consumer.Config) { c.AuditInterval = 20 * time.Second })
		f.stream.split(0)
		for range 100 { // 5 minutes
			<-time.After(3 * time.Second)
			beat()
			if time.Since(f.stream.created) > time.Minute {
				f.stream.mu.Lock()
				gone.unlisted = true
				f.stream.mu.Unlock()
			}
		}
		there := func() bool {
			_, err := f.leaseTable().Get(f.Context(), gone.id)
			return err == nil
		}
		if !there() {
			f.Error("deleted beside a Java worker")
		}
		f.await(2*time.Minute, "the ended lease to go", func() bool { return !there() })
		f.await(failover, "Java's shard", func() bool { n, _ := f.delivered(); return n == 30 })
	})
}

// An application began at a time that had not come. The children of a shard that split before it
// are deleted by hand; the comparison makes them begin at that time, too.
func TestOrphansBeginAtTheOrigin(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		collect, got := f.dataOnly()
		f.start("w1", collect, from(runnel.FromTime(time.Now().Add(time.Minute))))
		<-time.After(failover)
		f.stream.put("early", keys(4)...)
		f.stream.split(0)
		f.stream.put("early", keys(4)...)
		<-time.After(90 * time.Second)
		recent := len(f.stream.put("recent", keys(4)...))
		<-time.After(failover)
		for _, l := range f.leases() {
			if len(l.Parents) > 0 {
				if err := f.leaseTable().Delete(f.Context(), l); err != nil &&
					!errors.Is(err, lease.ErrLeaseLost) {
					f.Fatal(err)
				}
			}
		}
		<-time.After(5 * time.Minute)
		if g := got(); g["early"] != 0 || g["recent"] < recent {
			f.Errorf("got %v", g)
		}
		if rows := f.leases(); len(rows) != 3 {
			f.dump()
			f.Errorf("%d rows", len(rows))
		}
	})
}

// One stamped row that does not fit was edited by hand. Its shard waits, and the others go on.
func TestOneRowThatDoesNotFit(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		m := f.start("w1")
		f.stream.put("a", keys(20)...)
		f.await(failover, "the records", func() bool { n, _ := f.delivered(); return n == 20 })
		f.mustStop(m)
		f.edit(f.stream.shards[0].id, "SET #a = :a", "checkpoint", text("0"))
		f.stream.put("b", keys(20)...)
		m = f.start("w2")
		<-time.After(2 * time.Minute)
		if n, _ := f.delivered(); n < 20+len(f.stream.shards[1].records)/2 {
			f.Errorf("%d records", n)
		}
		f.mustStop(m)
	})
}
