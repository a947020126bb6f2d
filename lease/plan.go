package lease

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
)

// Limits are the limits on the Decision of Plan for one worker.
type Limits struct {
	// Failover is the time without a change of the counter after which the owner counts as dead.
	Failover time.Duration
	// MaxLeases is how many leases the worker may hold; 0 means no limit.
	MaxLeases int
	// MaxSteal is how many leases it may steal at a time; 0 means 1.
	MaxSteal int
	// Seed spreads the choices of workers that plan at the same moment.
	Seed uint64
}

// Decision is the result of Plan: the leases to take, which no live worker holds, or the leases to
// steal from the most loaded worker. At most one of the two is not empty.
type Decision struct {
	// Take or Steal is empty, or both are.
	Take, Steal []Sighting
	// Workers is the number of live workers, the planner's included, and Target its share.
	Workers, Target int
	// Idle counts the leases that no live worker holds and that could be read now.
	Idle int
}

// Plan decides which leases the worker me should take or steal. It is pure: same arguments, same
// decision.
//
// It is the taker of KCL 2.x (DynamoDBLeaseTaker) with two refinements. A worker's share is
// ceil(leases / workers) over all leases. Stealing is the last resort, one lease per plan unless
// Limits.MaxSteal says otherwise.
//
// The first refinement is a second share, over the leases that can be read. A lease cannot be read
// while a parent is unfinished or after SHARD_END; such leases are neither taken nor stolen.
// Without the second share, a worker that happens to hold many ended leases would read nothing. The
// share over all leases remains an upper bound, so Java workers, which count all of them, have no
// cause to steal from us.
//
// The second refinement is for leases that are left over, because Java workers fill their shares
// with ended leases and other workers have a limit. A lease that no worker has taken for three
// failover times is taken beyond the share, one per plan.
//
// A worker steals only from a worker that holds at least two more leases. So each steal makes the
// fleet more even, and stealing comes to an end.
func Plan(now time.Time, view []Sighting, me string, limits Limits) Decision {
	p := survey(now, view, me, limits)
	share := p.share(len(p.active))
	whole := p.share(len(view))
	if limits.MaxLeases > 0 {
		share, whole = min(share, limits.MaxLeases), min(whole, limits.MaxLeases)
	}
	d := Decision{Workers: len(p.workers), Target: share, Idle: len(p.idle)}
	mine, held := p.load[me], p.workers[me]
	room := min(share-mine, whole-held)
	if len(p.idle) > 0 {
		forlorn := slices.ContainsFunc(p.idle, func(s Sighting) bool {
			return now.Sub(s.Changed) > 3*limits.Failover
		})
		if forlorn && (limits.MaxLeases == 0 || held < limits.MaxLeases) {
			room = max(room, 1)
		}
		d.Take = p.choose(max(0, room))
		return d
	}
	if room <= 0 {
		return d
	}
	most := min(room, max(1, limits.MaxSteal))
	d.Steal = p.steal(me, mine, most)
	return d
}

// choose picks up to n of the idle leases at random. It begins with the leases of dead owners,
// since their shards have waited longest.
func (p *plan) choose(n int) []Sighting {
	p.shuffle(p.idle)
	slices.SortStableFunc(p.idle, func(a, b Sighting) int {
		if free := a.Owner == ""; free != (b.Owner == "") {
			if free {
				return 1
			}
			return -1
		}
		return 0
	})
	return p.idle[:min(n, len(p.idle))]
}

// plan holds the working data of one Plan.
type plan struct {
	random  *rand.Rand
	workers map[string]int // leases held by each live worker, including ended ones and those of me
	load    map[string]int // of these, the ones that can be read
	active  []Sighting     // the leases that can be read
	idle    []Sighting     // of these, the ones without a live owner
}

func survey(now time.Time, view []Sighting, me string, limits Limits) *plan {
	p := &plan{
		random:  rand.New(rand.NewPCG(limits.Seed, uint64(len(view)))),
		workers: map[string]int{me: 0},
		load:    map[string]int{},
	}
	unfinished := map[runnel.ShardID]bool{}
	for _, s := range view {
		unfinished[s.Key] = !s.Ended()
	}
	for _, s := range view {
		alive := s.Owner != "" && !s.Expired(now, limits.Failover)
		if alive {
			p.workers[s.Owner]++
		}
		blocked := slices.ContainsFunc(s.Parents, func(id runnel.ShardID) bool {
			return unfinished[id]
		})
		if s.Ended() || blocked {
			continue
		}
		p.active = append(p.active, s)
		if alive {
			p.load[s.Owner]++
		} else {
			p.idle = append(p.idle, s)
		}
	}
	return p
}

// share is ceil(n / workers), and at least 1.
func (p *plan) share(n int) int {
	w := len(p.workers)
	return max(1, (n+w-1)/w)
}

func (p *plan) shuffle(s []Sighting) {
	p.random.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

// steal picks up to most leases of the worker that holds most, provided that it holds at least two
// more than me.
func (p *plan) steal(me string, mine, most int) []Sighting {
	owners := make([]string, 0, len(p.load))
	for owner := range p.load {
		if owner != me {
			owners = append(owners, owner)
		}
	}
	slices.Sort(owners)
	p.random.Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
	victim := ""
	for _, owner := range owners {
		if victim == "" || p.load[owner] > p.load[victim] {
			victim = owner
		}
	}
	most = min(most, (p.load[victim]-mine)/2)
	if victim == "" || most <= 0 {
		return nil
	}
	var loot []Sighting
	for _, s := range p.active {
		if s.Owner == victim {
			loot = append(loot, s)
		}
	}
	p.shuffle(loot)
	return loot[:min(most, len(loot))]
}
