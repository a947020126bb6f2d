package lease_test

import (
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// owned is a row of a worker of this package; one that it has not adopted has no hold.
func owned(key runnel.ShardID, worker, hold string, counter int64) lease.Lease {
	return lease.Lease{Key: key, Owner: worker, Holder: worker, Hold: hold, Counter: counter}
}

// A lease that was passed to a worker shows no life of it, and is nevertheless not free until its
// counter has been silent for the failover time.
func TestPassedLeaseShowsNoLife(t *testing.T) {
	const failover = 10 * time.Second
	var watch lease.Watch
	start := time.Now()
	rows := []lease.Lease{owned("s1", "w1", "h1", 1), owned("s2", "w2", "", 1)}
	watch.Update(start, rows)
	view := watch.View(start, failover)
	if len(view.Members) != 1 || view.Members[0].Name != "w1" || !view.Rows[1].Given {
		t.Fatalf("members %v, rows %v", view.Members, view.Rows)
	}
	if plan := view.Plan(); len(plan.Moves) > 0 {
		t.Errorf("a lease on its way moves: %v", plan.Moves)
	}
	if _, _, ok := watch.LifeOf("w2"); ok {
		t.Error("a lease on its way shows its owner's life")
	}
	rows[0].Counter++
	watch.Update(start.Add(failover+1), rows)
	view = watch.View(start.Add(failover+1), failover)
	if !view.Rows[1].Silent || len(view.Plan().Moves) != 1 {
		t.Errorf("rows %v, moves %v after the failover time", view.Rows, view.Plan().Moves)
	}
}

// Rows and cards of the first look are of any age, so they prove no life. Changes do, but for those
// that other workers made.
func TestAlive(t *testing.T) {
	var watch lease.Watch
	now := time.Now()
	alive := func(want ...string) {
		t.Helper()
		for _, name := range []string{"renews", "silent", "given", "comes", "card", "new card", ""} {
			expected := false
			for _, w := range want {
				expected = expected || w == name
			}
			if watch.Alive(name) != expected {
				t.Errorf("%q alive: %v", name, !expected)
			}
		}
	}
	rows := []lease.Lease{
		owned("s1", "renews", "h1", 1), owned("s2", "silent", "h2", 1), owned("s3", "silent", "h3", 1),
		owned("s4", "silent", "h4", 1),
		{Key: "s5", Cards: map[string]lease.Card{"card": {Beat: 1}}},
	}
	look := func() {
		now = now.Add(time.Second)
		watch.Update(now, rows)
	}
	look()
	alive()
	look()
	alive()
	rows[0].Counter++
	rows[2] = owned("s3", "given", "", 2)
	rows[3] = owned("s4", "comes", "h5", 2)
	rows[4].Cards = map[string]lease.Card{"card": {Beat: 1}, "new card": {Beat: 1}}
	look()
	alive("renews", "comes", "new card")
	rows[2] = owned("s3", "given", "h6", 3)
	rows[4].Cards = map[string]lease.Card{"card": {Beat: 2}}
	look()
	alive("renews", "comes", "given", "card")
	rows = rows[2:]
	look()
	alive("comes", "given", "card")
}
