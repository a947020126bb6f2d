package leasetest

import (
	"errors"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// pausedRow pauses a row beside its holder, and makes every write: the row stays paused.
func pausedRow(b *bench) {
	held := b.keep(b.table.Take(b.ctx(), b.create(fresh(shard0)), by("w1")))
	paused := b.keep(b.table.Pause(b.ctx(), held))
	b.stands(paused)
	if !paused.Paused || paused.Counter != held.Counter || paused.Owner != "w1" {
		b.Fatalf("paused as %+v", paused)
	}
	held = b.keep(b.table.Renew(b.ctx(), held)) // its Lease does not know of the pause
	if b.stands(held); !held.Paused {
		b.Fatalf("the holder sees %+v", held)
	}
	for _, write := range []func(lease.Lease) (lease.Lease, error){
		func(l lease.Lease) (lease.Lease, error) {
			return b.table.Checkpoint(b.ctx(), l, lease.Mark{At: at("77", 0)})
		},
		func(l lease.Lease) (lease.Lease, error) {
			return b.table.Pass(b.ctx(), l, lease.Mark{}, "w2", false)
		},
		func(l lease.Lease) (lease.Lease, error) { return b.table.Take(b.ctx(), l, by("w2")) },
		func(l lease.Lease) (lease.Lease, error) {
			return b.table.Rewind(b.ctx(), l, runnel.Start())
		},
		func(l lease.Lease) (lease.Lease, error) {
			return b.table.Release(b.ctx(), l, lease.Mark{})
		},
		func(l lease.Lease) (lease.Lease, error) { return b.table.Assign(b.ctx(), l, "w3") },
		func(l lease.Lease) (lease.Lease, error) { return b.table.Take(b.ctx(), l, by("w3")) },
		func(l lease.Lease) (lease.Lease, error) {
			return b.table.Finish(b.ctx(), l, lease.Mark{}, nil)
		},
	} {
		held = b.keep(write(held))
		if b.stands(held); !held.Paused {
			b.Fatalf("no longer paused: %+v", held)
		}
	}
	for range 2 { // the second one changes nothing
		held = b.keep(b.table.Resume(b.ctx(), held))
		if b.stands(held); held.Paused {
			b.Fatalf("resumed as %+v", held)
		}
	}
	gone := lease.Lease{Key: "shardId-000000000009"}
	if _, err := b.table.Pause(b.ctx(), gone); !errors.Is(err, lease.ErrLeaseNotFound) {
		b.Fatalf("the pause of a row that is not there: %v", err)
	}
}

// sinkRow checks that a row says whether the worker that took it last has a sink.
func sinkRow(b *bench) {
	sink := lease.Claim{Worker: "w1", Sink: true}
	held := b.keep(b.table.Take(b.ctx(), b.create(fresh(shard0)), sink))
	held = b.keep(b.table.Renew(b.ctx(), held))
	passed := b.keep(b.table.Pass(b.ctx(), held, lease.Mark{}, "w2", false))
	for _, l := range []lease.Lease{held, passed} {
		if !l.Sink {
			b.Fatalf("the row does not say so: %+v", l)
		}
	}
	b.stands(passed)
	held = b.keep(b.table.Take(b.ctx(), passed, by("w2")))
	if b.stands(held); held.Sink {
		b.Fatalf("a worker without a sink has %+v", held)
	}
	child := fresh("shardId-000000000001")
	child.Owner, child.Sink = "w1", true
	child = b.create(child)
	if b.stands(child); !child.Sink {
		b.Fatalf("created as %+v", child)
	}
}

// failoverRow checks that a row says the failover time of the worker that took it last.
func failoverRow(b *bench) {
	claim := lease.Claim{Worker: "w1", Failover: 40 * time.Second}
	held := b.keep(b.table.Take(b.ctx(), b.create(fresh(shard0)), claim))
	held = b.keep(b.table.Renew(b.ctx(), held))
	passed := b.keep(b.table.Pass(b.ctx(), held, lease.Mark{}, "w2", false))
	b.stands(passed)
	claim = lease.Claim{Worker: "w2", Failover: 20*time.Second + time.Microsecond}
	shorter := b.keep(b.table.Take(b.ctx(), passed, claim))
	b.stands(shorter)
	kept := b.keep(b.table.Take(b.ctx(), shorter, by("w3"))) // it does not say one
	released := b.keep(b.table.Release(b.ctx(), kept, lease.Mark{}))
	b.stands(released)
	for i, l := range []lease.Lease{held, passed, shorter, kept, released} {
		want := 40 * time.Second
		if i > 1 {
			want = 20 * time.Second
		}
		if l.Failover != want {
			b.Fatalf("%d: the row says %s: %+v", i, l.Failover, l)
		}
	}
	child := fresh("shardId-000000000001")
	child.Owner, child.Failover = "w1", time.Second
	child = b.create(child)
	if b.stands(child); child.Failover != time.Second {
		b.Fatalf("created as %+v", child)
	}
}
