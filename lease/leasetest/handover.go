package leasetest

import (
	"errors"
	"slices"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

const shard0 = "shardId-000000000000"

// ask asks for a lease, and returns the row.
func (b *bench) ask(seen lease.Lease, ask lease.Ask) lease.Lease {
	b.Helper()
	b.must(b.table.Ask(b.ctx(), seen, ask))
	return b.keep(b.table.Get(b.ctx(), seen.Key))
}

func passes(b *bench) {
	held := b.keep(b.table.Take(b.ctx(), b.create(fresh(shard0)), by("w1")))
	asked := b.ask(held, lease.Ask{Worker: "w 2", Beat: 1})
	if asked.Counter != held.Counter || asked.Owner != "w1" {
		b.Fatalf("the ask changed the owner or the counter: %+v", asked)
	}
	// The holder sees the ask in the answer to its next write.
	held = b.keep(b.table.Renew(b.ctx(), held))
	ask, ok := held.Asked()
	if !ok || ask.Worker != "w 2" || ask.Beat != 1 || ask.ByHand {
		b.Fatalf("the holder sees %+v, %v", ask, ok)
	}
	mark := lease.Mark{At: at("77", 2), Token: "t"}
	passed := b.keep(b.table.Pass(b.ctx(), held, mark, ask.Worker, true))
	b.stands(passed)
	if passed.Owner != "w 2" || !passed.Owned() || !passed.Passed() || passed.Pin != "w 2" ||
		passed.Checkpoint != mark.At || passed.Token != "t" || passed.OwnerSwitches != 1 ||
		passed.Counter != held.Counter+1 || passed.Ask != (lease.Ask{}) {
		b.Fatalf("passed as %+v", passed)
	}
	_, err := b.table.Renew(b.ctx(), held)
	b.lost(err)
	adopted := b.keep(b.table.Take(b.ctx(), passed, by("w 2")))
	b.stands(adopted)
	if adopted.Passed() || adopted.Hold == held.Hold || adopted.Pin != "w 2" ||
		adopted.OwnerSwitches != 1 {
		b.Fatalf("adopted as %+v", adopted)
	}
	// A person may also keep a lease where the plan has put it.
	taken := b.keep(b.table.Take(b.ctx(), adopted, by("w3")))
	b.must(b.table.Keep(b.ctx(), taken))
	kept := b.keep(b.table.Get(b.ctx(), taken.Key))
	if kept.Pin != "w3" || kept.Counter != taken.Counter {
		b.Fatalf("kept as %+v", kept)
	}
	// The plan's ask ends, and a later one has no effect. A person's has.
	asked = b.ask(kept, lease.Ask{Worker: "w9", Beat: 1})
	b.must(b.table.Keep(b.ctx(), asked))
	kept = b.keep(b.table.Get(b.ctx(), taken.Key))
	if kept.Ask != (lease.Ask{}) {
		b.Fatalf("kept with the ask %+v", kept.Ask)
	}
	asked = b.ask(kept, lease.Ask{Worker: "w9", Beat: 2})
	taken = b.keep(b.table.Renew(b.ctx(), taken))
	if ask, ok := taken.Asked(); ok {
		b.Fatalf("the holder of a lease that is kept here is asked by %+v", ask)
	}
	b.must(b.table.Ask(b.ctx(), asked, lease.Ask{Worker: "w9", Beat: 3, ByHand: true}))
	taken = b.keep(b.table.Renew(b.ctx(), taken))
	if ask, ok := taken.Asked(); !ok || !ask.ByHand {
		b.Fatalf("a person asks, and the holder sees %+v, %v", ask, ok)
	}
	kept = b.keep(b.table.Get(b.ctx(), taken.Key))
	if err := b.table.Keep(b.ctx(), adopted); !errors.Is(err, lease.ErrAskRefused) {
		b.Fatalf("a lease that changed hands was kept: %v", err)
	}
	if taken := b.keep(b.table.Take(b.ctx(), kept, by("w4"))); taken.Pin != "" {
		b.Fatalf("the next owner's row says that it was moved by hand: %+v", taken)
	}
}

// An ask for one hold does not outlive it, and leaves an earlier ask of a live worker in place.
func asksOnce(b *bench) {
	free := b.create(fresh(shard0))
	held := b.keep(b.table.Take(b.ctx(), free, by("w1")))
	refused := func(seen lease.Lease, ask lease.Ask) {
		b.Helper()
		if err := b.table.Ask(b.ctx(), seen, ask); !errors.Is(err, lease.ErrAskRefused) {
			b.Fatalf("got %v, want ErrAskRefused", err)
		}
	}
	first := b.ask(held, lease.Ask{Worker: "w2", Beat: 1})
	refused(held, lease.Ask{Worker: "w3", Beat: 1})
	again := b.ask(first, lease.Ask{Worker: "w2", Beat: 2})
	refused(first, lease.Ask{Worker: "w3", Beat: 1})
	// The ask has not changed for the failover time, so the next asker replaces it.
	replaced := b.ask(again, lease.Ask{Worker: "w3", Beat: 1})
	if ask, ok := replaced.Asked(); !ok || ask.Worker != "w3" {
		b.Fatalf("the row has %+v", replaced)
	}
	taken := b.keep(b.table.Take(b.ctx(), replaced, by("w4")))
	if _, ok := taken.Asked(); ok {
		b.Fatalf("the ask outlived the hold: %+v", taken)
	}
	refused(replaced, lease.Ask{Worker: "w3", Beat: 2})
	b.stands(taken)
}

func passAdopted(b *bench) {
	held := b.keep(b.table.Take(b.ctx(), b.create(fresh(shard0)), by("w1")))
	net := &lossy{DynamoDBAPI: b.api, lose: 1}
	net.then = func() {
		passed := b.keep(b.table.Get(b.ctx(), held.Key))
		_ = b.keep(b.table.Take(b.ctx(), passed, by("w2")))
	}
	passed, err := b.open(net, orders).Pass(b.ctx(), held, lease.Mark{}, "w2", false)
	if err != nil || passed.Owner != "w2" {
		b.Fatalf("got %+v, %v", passed, err)
	}
	// It is no pass if another worker has taken the lease.
	held = b.keep(b.table.Take(b.ctx(), passed, by("w1")))
	robbed := b.keep(b.table.Take(b.ctx(), held, by("w3")))
	_, err = b.table.Pass(b.ctx(), held, lease.Mark{}, "w2", false)
	b.lost(err)
	b.stands(robbed)
}

func cards(b *bench) {
	row := b.create(fresh(shard0))
	for beat := range int64(2) {
		card := lease.Card{Beat: beat + 1, MaxLeases: 4}
		before, err := b.table.Announce(b.ctx(), row, "host.1 2", card)
		b.must(err)
		if before.Beat != beat {
			b.Fatalf("it replaced %+v, want the card before", before)
		}
	}
	_, err := b.table.Announce(b.ctx(), row, "w2", lease.Card{Beat: 9, Leaving: true})
	b.must(err)
	got := b.keep(b.table.Get(b.ctx(), row.Key))
	if len(got.Cards) != 2 || got.Cards["host.1 2"] != (lease.Card{Beat: 2, MaxLeases: 4}) ||
		got.Cards["w2"] != (lease.Card{Beat: 9, Leaving: true}) || got.Counter != row.Counter {
		b.Fatalf("the row has %+v", got)
	}
	old := lease.Card{Beat: 1, MaxLeases: 4}
	err = b.table.Retract(b.ctx(), row, "host.1 2", old)
	if !errors.Is(err, lease.ErrLeaseNotFound) {
		b.Fatalf("a card that has changed was removed: %v", err)
	}
	b.must(b.table.Retract(b.ctx(), row, "host.1 2", got.Cards["host.1 2"]))
	got = b.keep(b.table.Get(b.ctx(), row.Key))
	if _, there := got.Cards["host.1 2"]; there || len(got.Cards) != 1 {
		b.Fatalf("the row has %+v", got)
	}
	gone := fresh("shardId-000000000009")
	_, err = b.table.Announce(b.ctx(), gone, "w2", lease.Card{Beat: 1})
	if !errors.Is(err, lease.ErrLeaseNotFound) {
		b.Fatalf("announced on a row that is not there: %v", err)
	}
}

func ownedLeases(b *bench) {
	for attempt := 0; ; attempt++ {
		ready, err := b.table.Index(b.ctx())
		b.must(err)
		if ready {
			break
		}
		if attempt == 1000 {
			b.Fatal("the index of a new table is not there")
		}
	}
	var want []runnel.ShardID
	for _, id := range []runnel.ShardID{shard0, "shardId-000000000001", "shardId-000000000002"} {
		l := b.create(fresh(id))
		if id != "shardId-000000000001" {
			_ = b.keep(b.table.Take(b.ctx(), l, by("w1")))
			want = append(want, id)
		} else {
			_ = b.keep(b.table.Take(b.ctx(), l, by("w2")))
		}
	}
	got, err := b.table.Owned(b.ctx(), "w1")
	b.must(err)
	if !slices.Equal(got, want) {
		b.Fatalf("the index has %v, want %v", got, want)
	}
	if got, err = b.table.Owned(b.ctx(), "w3"); err != nil || len(got) != 0 {
		b.Fatalf("a worker without leases has %v, %v", got, err)
	}
}
