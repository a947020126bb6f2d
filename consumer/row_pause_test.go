package consumer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

// pauseRow pauses or resumes the row of a shard of the stream, as a command does.
func (f *fleet) pauseRow(shard int, paused bool) {
	f.Helper()
	table, key := f.leaseTable(), f.stream.shards[shard].id
	do := table.Resume
	if paused {
		do = table.Pause
	}
	if l, err := do(f.Context(), lease.Lease{Key: key}); err != nil || l.Paused != paused {
		f.Fatalf("%+v, %v", l, err)
	}
}

// grows puts records into a shard, and reports whether one of them is delivered within a time.
func (f *fleet) grows(shard int, within time.Duration) bool {
	f.Helper()
	before, _ := f.delivered()
	f.stream.put("a", f.stream.keysOf(shard, 1)...)
	for end := time.Now().Add(within); time.Now().Before(end); {
		<-time.After(50 * time.Millisecond)
		if n, _ := f.delivered(); n > before {
			return true
		}
	}
	return false
}

// A pause in the row reaches the live owner within half of the failover time and a second, and
// stays over a move, a polite restart and a crash. The end of the pause reaches it as fast, and no
// record comes twice.
func TestRowPause(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		limit := failover/2 + time.Second
		f.start("w1")
		f.await(failover, "two leases", func() bool { return f.loads()["w1"] == 2 })
		if !f.grows(0, time.Second) {
			t.Fatal("it does not deliver")
		}
		f.pauseRow(0, true)
		f.await(limit, "the pause", func() bool { return len(f.happened(consumer.EventPaused)) == 1 })
		silent := func(when string) {
			t.Helper()
			if f.grows(0, 2*failover) {
				t.Errorf("%s: the paused shard was delivered", when)
			}
			if !f.grows(1, time.Second) {
				t.Errorf("%s: the other shard was not", when)
			}
		}
		silent("beside its owner")
		f.workers["w1"].Resume() // ends the pauses of Worker.Pause alone
		silent("after Worker.Resume")
		f.start("w2")
		f.await(2*failover, "a move", func() bool { return f.loads()["w2"] == 1 })
		f.mustStop(f.workers["w1"])
		f.await(2*failover, "the other lease", func() bool { return f.loads()["w2"] == 2 })
		silent("after a move")
		f.mustStop(f.workers["w2"])
		f.start("w3")
		f.await(2*failover, "a restart", func() bool { return f.loads()["w3"] == 2 })
		silent("after a restart")
		f.workers["w3"].kill()
		<-f.workers["w3"].err
		f.start("w4")
		f.await(3*failover, "a crash", func() bool { return f.loads()["w4"] == 2 })
		silent("after a crash")
		n, _ := f.delivered()
		waiting := len(f.stream.shards[0].records) + len(f.stream.shards[1].records) - n
		if waiting < 5 {
			t.Errorf("%d records wait", waiting)
		}
		f.pauseRow(0, false)
		f.await(limit, "the rest", func() bool { m, _ := f.delivered(); return m == n+waiting })
		if _, again := f.delivered(); again > 1 { // one at most, after the crash
			t.Errorf("%d records came again", again)
		}
	})
}

// A worker passes a paused shard as any other, and the row stays paused.
func TestPausedRowMoves(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		f.start("w1")
		f.await(failover, "two leases", func() bool { return f.loads()["w1"] == 2 })
		f.pauseRow(0, true)
		f.pauseRow(1, true)
		f.await(failover, "the pauses", func() bool { return len(f.happened(consumer.EventPaused)) == 2 })
		f.stream.put("a", keys(20)...)
		f.start("w2")
		f.await(failover/2+time.Second, "a move", func() bool { return f.loads()["w2"] == 1 })
		for _, l := range f.leases() {
			if !l.Paused {
				t.Errorf("no longer paused: %+v", l)
			}
		}
	})
}

// A worker with Config.Once waits for a paused shard, and ends after its pause.
func TestOnceWaitsForAPausedRow(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		m := f.start("w1")
		f.await(failover, "two leases", func() bool { return f.loads()["w1"] == 2 })
		f.mustStop(m)
		f.stream.put("a", keys(20)...)
		f.pauseRow(0, true)
		m = f.start("w2", once)
		<-time.After(6 * failover)
		if n, _ := f.delivered(); n != len(f.stream.shards[1].records) || len(m.err) > 0 {
			t.Errorf("%d records, ended: %v", n, len(m.err) > 0)
		}
		f.pauseRow(0, false)
		f.await(failover, "its end", func() bool { return len(m.err) > 0 })
		if err := <-m.err; err != nil {
			t.Error(err)
		}
		if n, again := f.delivered(); n != 20 || again != 0 {
			t.Errorf("%d records, %d again", n, again)
		}
		if err := f.leaseTable().Delete(f.Context(), f.leases()[0]); err != nil {
			t.Fatal(err)
		}
		_, err := f.leaseTable().Pause(f.Context(), lease.Lease{Key: f.stream.shards[0].id})
		if !errors.Is(err, lease.ErrLeaseNotFound) {
			t.Errorf("the pause of a row that is gone: %v", err)
		}
	})
}

// A sink's worker says so in the rows that it takes, and the next handler takes that back.
func TestRowsNameASink(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		for i, sink := range []bool{true, false, true} {
			var change []func(*consumer.Config)
			if sink {
				s := newChain(&chaos{calm: true}, 1000)
				change = append(change, intoSink(s))
			}
			m := f.start("w"+string(rune('1'+i)), change...)
			if i == 2 { // it creates the children's rows
				f.stream.split(0)
			}
			f.await(failover, "its leases", func() bool {
				for _, l := range f.leases() {
					if l.Sink != sink || l.Owner == "" && !l.Ended() {
						return false
					}
				}
				return len(f.leases()) == 1+2*(i/2)
			})
			f.mustStop(m)
			for _, l := range f.leases() {
				if l.Sink != sink {
					t.Errorf("after its end: %+v", l)
				}
			}
		}
	})
}
