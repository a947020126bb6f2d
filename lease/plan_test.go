package lease_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

const failover = 10 * time.Second

// view reads a scenario: "key:owner age flags …", one lease a line. Owner "-" is none; age is the
// time since the counter's last change, in seconds; "ended" and "<parent" are flags.
func view(t *testing.T, now time.Time, text string) []lease.Sighting {
	t.Helper()
	var sightings []lease.Sighting
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		key, owner, _ := strings.Cut(words[0], ":")
		s := lease.Sighting{Lease: lease.Lease{
			Key: runnel.ShardID(key), Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
		}}
		if owner != "-" {
			s.Owner = owner
		}
		age, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatal(err)
		}
		s.Changed = now.Add(-time.Duration(age) * time.Second)
		for _, flag := range words[2:] {
			if parent, ok := strings.CutPrefix(flag, "<"); ok {
				s.Parents = append(s.Parents, runnel.ShardID(parent))
			} else {
				s.Checkpoint = runnel.End()
			}
		}
		sightings = append(sightings, s)
	}
	return sightings
}

func keys(sightings []lease.Sighting) string {
	var names []string
	for _, s := range sightings {
		names = append(names, string(s.Key))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// Scenarios of one plan, from the point of view of the worker "me".
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name, view  string
		limits      lease.Limits
		take, steal int
		from        string // the leases to choose from
	}{
		{name: "an empty table", view: ""},
		{name: "alone, everything is free", view: "a:- 0\nb:- 0\nc:- 0", take: 3, from: "a b c"},
		{
			name: "alone, with a limit", view: "a:- 0\nb:- 0\nc:- 0",
			limits: lease.Limits{MaxLeases: 2}, take: 2, from: "a b c",
		},
		{name: "half of what is free", view: "a:w1 0\nb:w1 0\nc:- 0\nd:- 0", take: 2, from: "c d"},
		{name: "at my share", view: "a:me 0\nb:w1 0\nc:me 0\nd:w1 0"},
		{name: "free, but beyond my share", view: "a:me 0\nb:me 0\nc:- 5\nd:w1 0"},
		{
			name: "free, beyond my share, and forlorn", view: "a:me 0\nb:me 0\nc:- 31\nd:w1 0",
			take: 1, from: "c",
		},
		{
			name: "forlorn, but at my limit", view: "a:me 0\nb:me 0\nc:- 31\nd:w1 0",
			limits: lease.Limits{MaxLeases: 2},
		},
		{name: "not yet expired", view: "a:w1 10\nb:me 0"},
		{name: "expired", view: "a:w1 11\nb:me 0", take: 1, from: "a"},
		{
			name: "the dead's before the free", view: "a:- 2\nb:- 2\nc:w2 11\nd:me 0\ne:w1 0\nf:w1 0",
			take: 2, from: "a b c",
		},
		{name: "my own, expired", view: "a:me 11\nb:me 11", take: 2, from: "a b"},
		{
			name: "steal one from the most loaded", view: "a:w1 0\nb:w1 0\nc:w1 0\nd:w2 0\ne:w2 0",
			steal: 1, from: "a b c",
		},
		{
			name: "no stealing while something is free",
			view: "a:w1 0\nb:w1 0\nc:w1 0\nd:w1 0\ne:- 0", take: 1, from: "e",
		},
		{name: "no stealing for the sake of one", view: "a:w1 0\nb:w1 0\nc:me 0"},
		{
			name: "stealing at the share, two needed", view: "a:w1 0\nb:w1 0\nc:w2 0\nd:w2 0",
			steal: 1, from: "a b c d",
		},
		{
			name: "stealing two at a time", limits: lease.Limits{MaxSteal: 2},
			view: "a:w1 0\nb:w1 0\nc:w1 0\nd:w1 0", steal: 2, from: "a b c d",
		},
		{name: "one shard, many workers", view: "a:w1 0"},
		{name: "ended leases are left alone", view: "a:- 99 ended\nb:w1 99 ended\nc:me 0"},
		{
			name:  "ended leases do not count as work",
			view:  "a:me 0 ended\nb:me 0 ended\nc:w1 0\nd:w1 0\ne:w2 0\nf:w2 0\ng:w2 0\nh:w2 0",
			steal: 1, from: "e f g h",
		},
		{name: "children wait for their parents", view: "a:w1 0\nb:- 0 <a\nc:- 0 <a"},
		{name: "a merge waits for both", view: "a:w1 0\nb:- 0 ended\nc:- 0 <a <b"},
		{
			name: "children of ended parents", view: "a:w1 0 ended\nb:- 0 <a\nc:- 0 <a",
			take: 1, from: "b c",
		},
		{name: "a parent that is not in the table", view: "b:- 0 <a", take: 1, from: "b"},
		{name: "a blocked lease is not stolen", view: "a:w1 0\nb:w1 0 <a\nc:w1 0 <a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Now()
			c.limits.Failover = failover
			v := view(t, now, c.view)
			for seed := range uint64(20) {
				c.limits.Seed = seed
				d := lease.Plan(now, slices.Clone(v), "me", c.limits)
				if len(d.Take) != c.take || len(d.Steal) != c.steal {
					t.Fatalf("take %s, steal %s; want %d and %d", keys(d.Take), keys(d.Steal),
						c.take, c.steal)
				}
				for _, s := range append(d.Take, d.Steal...) {
					if !strings.Contains(c.from, string(s.Key)) {
						t.Fatalf("chose %s, want one of %s", s.Key, c.from)
					}
				}
				if again := lease.Plan(now, slices.Clone(v), "me", c.limits); keys(again.Take) !=
					keys(d.Take) || keys(again.Steal) != keys(d.Steal) {
					t.Fatal("the same plan twice is not the same")
				}
			}
		})
	}
}

// With room for one and choice, the dead worker's lease goes first.
func TestPlanPrefersExpired(t *testing.T) {
	now := time.Now()
	v := view(t, now, "a:- 1\nb:- 1\nc:w2 11\nd:me 0\ne:w1 0\nf:w1 0")
	for seed := range uint64(50) {
		d := lease.Plan(now, slices.Clone(v), "me", lease.Limits{
			Failover: failover, Seed: seed, MaxLeases: 2,
		})
		if keys(d.Take) != "c" {
			t.Fatalf("seed %d: took %s", seed, keys(d.Take))
		}
	}
}

// Any fleet comes to rest: every lease that can be read has one owner, no two workers differ by
// more than one, and then no lease moves any more. Workers plan at random moments on views that are
// one step old, as scans are.
func TestPlanConverges(t *testing.T) {
	runs := 100
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil {
		runs *= max(1, n)
	}
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 7))
		now := time.Now()
		leases, workers := 1+random.IntN(40), 1+random.IntN(8)
		var rows []lease.Lease
		for i := range leases {
			l := lease.Lease{
				Key:        runnel.ShardID(fmt.Sprintf("s%02d", i)),
				Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
			}
			switch random.IntN(4) {
			case 0:
				l.Owner = fmt.Sprint("w", random.IntN(workers))
			case 1:
				l.Checkpoint = runnel.End()
			case 2:
				l.Owner = "dead"
			}
			rows = append(rows, l)
		}
		watches := make([]lease.Watch, workers)
		quiet := 0
		for step := 0; quiet < 4*workers; step++ {
			if step > 4000 {
				t.Fatalf("seed %d: no rest: %v", seed, loads(rows))
			}
			now = now.Add(time.Second)
			for i := range rows { // heartbeats
				if strings.HasPrefix(rows[i].Owner, "w") {
					rows[i].Counter++
				}
			}
			w := step % workers
			if random.IntN(10) == 0 {
				continue
			}
			d := lease.Plan(now, watches[w].Update(now, rows), fmt.Sprint("w", w), lease.Limits{
				Failover: failover + time.Duration(workers)*time.Second, Seed: random.Uint64(),
			})
			for _, s := range append(d.Take, d.Steal...) {
				i := slices.IndexFunc(rows, func(l lease.Lease) bool { return l.Key == s.Key })
				rows[i].Owner, rows[i].Counter = fmt.Sprint("w", w), rows[i].Counter+1
			}
			if quiet++; len(d.Take)+len(d.Steal) > 0 || d.Idle > 0 {
				quiet = 0
			}
			if step < 3*int(failover/time.Second) {
				quiet = 0
			}
		}
		spread := slices.Sorted(maps.Values(loads(rows)))
		free := loads(rows)[""] + loads(rows)["dead"]
		if free > 0 || len(spread) > 0 && len(spread) == workers && spread[len(spread)-1]-spread[0] > 1 ||
			len(spread) > 0 && len(spread) < workers && spread[len(spread)-1] > 1 {
			t.Fatalf("seed %d: %d workers rest at %v", seed, workers, loads(rows))
		}
	}
	t.Logf("soak: %d seeds", runs)
}

func loads(rows []lease.Lease) map[string]int {
	loads := map[string]int{}
	for _, l := range rows {
		if !l.Ended() {
			loads[l.Owner]++
		}
	}
	return loads
}

// A counter that changes means that the owner is alive, whether it grows or shrinks. Time counts
// from the moment at which the observer saw the change.
func TestWatch(t *testing.T) {
	var w lease.Watch
	t0 := time.Now()
	row := lease.Lease{Key: "a", Owner: "w1", Counter: 5}
	at := func(seconds int, l lease.Lease) lease.Sighting {
		return w.Update(t0.Add(time.Duration(seconds)*time.Second), []lease.Lease{l})[0]
	}
	expired := func(seconds int, s lease.Sighting) bool {
		return s.Expired(t0.Add(time.Duration(seconds)*time.Second), failover)
	}
	if s := at(0, row); expired(10, s) || !expired(11, s) {
		t.Error("a new lease counts from its first sight")
	}
	if s := at(9, row); !expired(11, s) {
		t.Error("the same counter again is no life")
	}
	row.Counter++
	if s := at(11, row); expired(21, s) || !expired(22, s) {
		t.Error("a changed counter is life")
	}
	row.Counter = 1
	if s := at(22, row); expired(32, s) {
		t.Error("a counter that was set back is life, too")
	}
	row.Owner = "w2"
	if s := at(33, row); expired(43, s) {
		t.Error("a new owner is life")
	}
	w.Update(t0.Add(34*time.Second), nil)
	if s := at(50, row); expired(60, s) {
		t.Error("a lease that was away is a new one")
	}
	row.Owner = ""
	if s := at(99, row); expired(200, s) {
		t.Error("what has no owner cannot expire")
	}
}
