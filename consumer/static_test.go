package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

func static(c *consumer.Config) { c.Static = true }

// owners returns the owner of each unfinished lease, in the order of the shards.
func (f *fleet) owners() string {
	var text string
	for _, l := range f.leases() {
		if !l.Ended() {
			text += " " + l.Owner
		}
	}
	return text
}

// Four static workers are restarted one after the other, politely or by a crash. No lease changes
// its owner, and no shard is silent for much longer than its worker was away.
func TestStaticRestarts(t *testing.T) {
	for _, kill := range []bool{false, true} {
		bubble(t, 12, func(f *fleet) {
			w := newFlow(f)
			for n := range 4 {
				f.start(fmt.Sprintf("w%d", n), w.into, static)
			}
			w.settle(8*time.Second, 4)
			<-time.After(failover)
			before := f.owners()
			w.silence()
			const away = 5 * time.Second
			for n := range 4 {
				id := fmt.Sprintf("w%d", n)
				m := f.workers[id]
				if kill {
					m.kill()
				} else {
					m.stop()
				}
				<-m.err
				<-time.After(away)
				f.start(id, w.into, static)
				<-time.After(failover)
				if now := f.owners(); now != before {
					t.Errorf("the owners are%s, want%s", now, before)
				}
			}
			w.quiet(away+time.Second, "when static workers were restarted")
			w.stop()
			if _, again := f.delivered(); again > 0 && !kill {
				t.Errorf("%d records again", again)
			}
			for _, kind := range []consumer.EventKind{
				consumer.EventLeaseExpired, consumer.EventLeasePassed, consumer.EventLeaseReceived,
			} {
				if events := f.happened(kind); len(events) > 0 {
					t.Errorf("%s: %+v", kind, events)
				}
			}
		})
	}
}

// A static worker that does not come back is replaced after its Absence, which others read in the
// rows.
func TestStaticAbsence(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		w := newFlow(f)
		long := func(c *consumer.Config) { c.Static, c.Absence = true, 3*failover }
		m := f.start("w1", w.into, long)
		f.start("w2", w.into)
		w.settle(8*time.Second, 2)
		<-time.After(failover)
		f.mustStop(m)
		<-time.After(2 * failover)
		if loads := f.loads(); loads["w1"] != 2 {
			t.Errorf("taken before the absence was over: %v", loads)
		}
		f.await(2*failover, "the other worker has all", func() bool { return f.loads()["w2"] == 4 })
		w.stop()
	})
}

// Of two live processes of one static name the younger goes on, and the older ends with a typed
// error. No record is lost. The older one may hold leases or none.
func TestStaticNamesakes(t *testing.T) {
	for _, shards := range []int{1, 4} {
		bubble(t, shards, func(f *fleet) {
			w := newFlow(f)
			if shards == 1 {
				f.start("other", w.into) // it holds the only shard
				w.settle(8*time.Second, 1)
			}
			older := f.start("w1", w.into, static)
			<-time.After(failover)
			younger := f.start("w1", w.into, static)
			select {
			case err := <-older.err:
				if !errors.Is(err, consumer.ErrReplaced) {
					t.Errorf("the older one ended with %v", err)
				}
			case err := <-younger.err:
				t.Errorf("the younger one ended: %v", err)
			case <-time.After(failover):
				t.Error("both live on")
				older.stop()
			}
			<-time.After(3 * failover)
			w.stop()
			f.complete()
			select {
			case err := <-younger.err:
				t.Errorf("the younger one ended: %v", err)
			default:
			}
		})
	}
}

// The younger process of a static worker looks again if its first writes fail, although it does not
// watch the table.
func TestStaticNamesakeTakesLater(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		var members []lease.Member
		for n := range 4 {
			m := lease.Member{Name: fmt.Sprintf("w%d", n)}
			f.start(m.Name, static)
			members = append(members, m)
		}
		watchers := lease.View{Members: members}.Watchers(nil)
		id := members[slices.IndexFunc(members, func(m lease.Member) bool {
			return !slices.Contains(watchers, m.Name)
		})].Name
		f.await(failover, "each has a lease", func() bool { return len(f.spread()) == 4 })
		<-time.After(failover)
		older := f.workers[id]
		until := time.Now().Add(2 * time.Second)
		l := &faulty{DynamoDBAPI: f.table, before: func(context.Context, step) error {
			if time.Now().Before(until) {
				return errCut
			}
			return nil
		}}
		younger := f.start(id, static, func(c *consumer.Config) { c.DynamoDB = l })
		select {
		case err := <-older.err:
			if !errors.Is(err, consumer.ErrReplaced) {
				t.Errorf("the older one ended with %v", err)
			}
		case <-time.After(2 * failover):
			t.Errorf("both processes of %s live on", id)
			older.stop()
		}
		if len(younger.err) > 0 {
			t.Errorf("the younger one ended: %v", <-younger.err)
		}
	})
}

// A static process is away for so long that others take its leases, and no row has its name any
// more. Its next process takes its place, and the old one ends when it comes back.
func TestStaticProcessComesBackLate(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		older := f.start("w1", static)
		f.start("w2", static)
		f.await(failover, "two each", func() bool { return f.loads()["w1"] == 2 })
		<-time.After(failover)
		mend := older.link.cut()
		f.await(3*failover, "the other one has all", func() bool { return f.loads()["w2"] == 4 })
		younger := f.start("w1", static)
		f.await(3*failover, "two each again", func() bool { return f.loads()["w1"] == 2 })
		mend()
		select {
		case err := <-older.err:
			if !errors.Is(err, consumer.ErrReplaced) {
				t.Errorf("the older one ended with %v", err)
			}
		case err := <-younger.err:
			t.Errorf("the younger one ended: %v", err)
			older.stop()
		case <-time.After(3 * failover):
			t.Error("both live on")
			older.stop()
		}
	})
}

// complete waits until all records are delivered, for a lease on its way has to arrive first.
func (f *fleet) complete() {
	f.Helper()
	f.await(failover, "all records delivered", func() bool {
		f.stream.mu.Lock()
		defer f.stream.mu.Unlock()
		put := 0
		for _, s := range f.stream.shards {
			put += len(s.records)
		}
		n, _ := f.delivered()
		return n == put
	})
}

// A process has lost its leases, and a second one of its name gets some. One of them ends, although
// the first one has no row and never looks at the whole table. No row says which is older.
func TestStaticNamesakeWithoutLeases(t *testing.T) {
	bubble(t, 4, func(f *fleet) {
		w := newFlow(f)
		defer w.stop()
		for n := range 3 {
			f.start(fmt.Sprintf("a%d", n), w.into)
		}
		w.settle(2*failover, 3)
		older := f.start("w1", w.into, static)
		w.settle(2*failover, 4)
		mend := older.link.cut()
		<-time.After(2 * failover)
		younger := f.start("w1", w.into, static)
		w.settle(2*failover, 4)
		mend()
		var err error
		select {
		case err = <-older.err:
		case err = <-younger.err:
		case <-time.After(2 * failover):
		}
		if !errors.Is(err, consumer.ErrReplaced) {
			t.Errorf("one ended with %v, want ErrReplaced", err)
		}
		older.stop()
	})
}
