package lease

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/runnel-stream/runnel"
)

// Member is a live worker, as the rows show it.
type Member struct {
	// Name is the worker's name in the rows.
	Name string
	// Java is set for a worker that passes no lease and asks for none: one of the KCL, or an older
	// version of this package.
	Java bool
	// MaxLeases is how many unended leases it may hold; 0 means no limit.
	MaxLeases int
	// Leaving is set for a worker that takes no lease any more.
	Leaving bool
}

// Readiness says whether a shard can be read.
type Readiness int

const (
	// Readable shards have no unfinished parent, and are not finished themselves.
	Readable Readiness = iota
	// Blocked shards have an unfinished parent.
	Blocked
	// Ended shards are finished.
	Ended
)

// Row is a lease as the plan sees it.
type Row struct {
	Key   runnel.ShardID // the lease's
	Owner string         // the live worker that holds it; "" if there is none
	// Given is set if the lease was passed to its owner, which has not adopted it yet. It stays
	// there until it is silent, also if the owner shows no life otherwise.
	Given bool
	// Silent is set if the row still names an owner, which has died.
	Silent bool
	// Ready says whether the shard can be read.
	Ready Readiness
	// Before are the workers that ended the shard's parents. They know the units there.
	Before []string
	// Pinned is set if a person has moved the lease to its owner. It stays there while the owner
	// lives and is not leaving.
	Pinned bool
}

// View is the fleet at one moment, according to the rows. The order of rows and members does not
// matter.
type View struct {
	Rows    []Row    // all leases
	Members []Member // all live workers
}

// MoveKind is the way in which a lease changes hands.
type MoveKind string

// The kinds of moves.
const (
	// MoveTake takes a lease that no live worker holds.
	MoveTake MoveKind = "take"
	// MovePass is a polite hand-over between two workers of this package.
	MovePass MoveKind = "pass"
	// MoveRob takes a lease from a worker that passes none.
	MoveRob MoveKind = "rob"
)

// Move is one change of a lease's owner. From is "" for MoveTake.
type Move struct {
	Key      runnel.ShardID // the lease's
	From, To string         // the workers
	Kind     MoveKind       // how
}

// FleetPlan is the result of View.Plan.
type FleetPlan struct {
	// Watchers are the workers that watch the table for all; see View.Watchers.
	Watchers []string
	// Shares are the numbers of readable leases that the workers should hold.
	Shares map[string]int
	// Moves lead there, in the order of their keys.
	Moves []Move
	// Unclaimed are the readable leases that no live worker holds and that have no Move: each
	// worker of this package has reached its MaxLeases or is leaving. They are in order.
	Unclaimed []runnel.ShardID
}

// Plan assigns the leases to the workers, for the whole fleet. It is pure, and every worker plans
// alike: each makes the same plan of the same view, and carries out its own part. Two
// views that differ cost a refused write at most.
//
// Shares. The readable leases are spread evenly over the live workers that stay, within their
// MaxLeases. Workers that hold more now get the remainder, so that as few leases as possible move;
// then a hash decides. Beside Java workers a share has an upper bound: they count all leases, ended
// ones included, and rob a worker that has more than the average.
//
// Silence first. A readable lease that no live worker holds goes to a worker of this package with
// room, even beyond its share: a Java worker would come twenty seconds later, and
// robs by itself. A worker that ended a parent comes first.
//
// Moves. A worker's leases above its share go to workers below theirs, and all leases of a
// leaving worker to workers that stay. Nothing is passed to a Java worker, since a running one of
// version 2.x never notices a lease that it is given. A Java worker is robbed of one lease at a
// time by each worker, and only if it holds at least two more than the robber and more than its
// share: so each robbery makes the fleet more even, and they come to an end. Blocked and ended
// leases stay where they are, except for the blocked ones of a leaving worker.
//
// A plan is a fixed point: after its moves the next plan has none, but for further robberies.
func (v View) Plan() FleetPlan {
	p := newPlanner(v)
	p.emptyBlocked()
	p.share()
	p.takeIdle()
	p.empty()
	p.even()
	p.rob()
	slices.SortFunc(p.moves, func(a, b Move) int { return cmp.Compare(a.Key, b.Key) })
	return FleetPlan{
		Watchers: v.Watchers(nil), Shares: p.shares, Moves: p.moves, Unclaimed: p.unclaimed,
	}
}

// Watchers returns the workers that watch the table: the two with the smallest hashes of their
// names among those of this package that are not leaving and are not said to be silent.
func (v View) Watchers(silent map[string]bool) []string {
	var names []string
	for _, m := range v.Members {
		if !m.Java && !m.Leaving && !silent[m.Name] {
			names = append(names, m.Name)
		}
	}
	slices.SortFunc(names, byHash)
	return names[:min(2, len(names))]
}

func byHash(a, b string) int { return cmp.Or(cmp.Compare(hash(a), hash(b)), cmp.Compare(a, b)) }

// hash is FNV-1a of the parts, with a zero byte between two.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for i, part := range parts {
		if i > 0 {
			_, _ = h.Write([]byte{0})
		}
		_, _ = h.Write([]byte(part))
	}
	return h.Sum64()
}

// load counts a worker's leases, as the plan goes on.
type load struct {
	readable int
	blocked  int
	ended    int
}

// planner holds the working data of one plan.
type planner struct {
	rows    []Row // in the order of their keys
	members map[string]Member
	staying []string // members that are not leaving, in the order of their hashes
	java    bool     // a Java worker stays
	loads   map[string]load
	shares  map[string]int
	moves   []Move

	unclaimed []runnel.ShardID
}

func newPlanner(v View) *planner {
	p := &planner{
		rows: slices.Clone(v.Rows), members: map[string]Member{}, loads: map[string]load{},
		shares: map[string]int{},
	}
	slices.SortFunc(p.rows, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	for _, m := range v.Members {
		if p.members[m.Name] = m; !m.Leaving {
			p.staying = append(p.staying, m.Name)
			p.java = p.java || m.Java
		}
	}
	slices.SortFunc(p.staying, byHash)
	for _, r := range p.rows {
		if _, lives := p.members[r.Owner]; lives {
			p.count(r.Owner, r.Ready, 1)
		}
	}
	return p
}

func (p *planner) count(worker string, ready Readiness, n int) {
	l := p.loads[worker]
	switch ready {
	case Readable:
		l.readable += n
	case Blocked:
		l.blocked += n
	case Ended:
		l.ended += n
	}
	p.loads[worker] = l
}

// share sets the shares. It gives the readable leases one by one to the member with the smallest
// share that may have another one. A worker has those that a person moved to it from the start.
//
// Between equals the one that holds more comes first, children of shards that it ended included,
// since then less has to move. A Java worker
// comes last: it is given nothing, so a share that it does not have would leave a lease of ours
// without a place.
func (p *planner) share() {
	left := 0
	pinned := map[string]int{}
	for _, r := range p.rows {
		if r.Ready == Readable {
			left++
			if r.Pinned && !p.leaves(r) {
				pinned[r.Owner]++
			}
		}
	}
	type sharer struct {
		name        string
		share, most int
	}
	order := make([]sharer, len(p.staying))
	for i, name := range p.staying {
		order[i] = sharer{name, pinned[name], p.limit(name)}
		left -= pinned[name]
	}
	more := p.heirs()
	slices.SortStableFunc(order, func(a, b sharer) int {
		if java := p.members[a.name].Java; java != p.members[b.name].Java {
			if java {
				return 1
			}
			return -1
		}
		return cmp.Compare(p.loads[b.name].readable+more[b.name],
			p.loads[a.name].readable+more[a.name])
	})
	for ; left > 0; left-- {
		next := -1
		for i, s := range order {
			if s.share < s.most && (next < 0 || s.share < order[next].share) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		order[next].share++
	}
	for _, s := range order {
		p.shares[s.name] = s.share
	}
}

// heirs returns how many leases without an owner come from shards that each worker ended.
func (p *planner) heirs() map[string]int {
	more := map[string]int{}
	for _, r := range p.rows {
		if name := p.ender(r); name != "" && p.idle(r) {
			more[name]++
		}
	}
	return more
}

// ender returns the first worker that ended a parent, stays, and has room.
func (p *planner) ender(r Row) string {
	for _, name := range r.Before {
		if m, lives := p.members[name]; lives && !m.Leaving && p.room(name) {
			return name
		}
	}
	return ""
}

// idle reports whether a shard could be read, and no live worker holds it.
func (p *planner) idle(r Row) bool {
	_, lives := p.members[r.Owner]
	return !lives && !r.Given && r.Ready == Readable
}

// limit is the largest number of readable leases that a member should hold.
func (p *planner) limit(name string) int {
	l, most := p.loads[name], len(p.rows)
	if m := p.members[name]; m.MaxLeases > 0 {
		most = min(most, max(0, m.MaxLeases-l.blocked))
	}
	if p.java && !p.members[name].Java {
		average := (len(p.rows) + len(p.staying) - 1) / len(p.staying)
		most = min(most, max(0, average-l.blocked-l.ended))
	}
	return most
}

// room reports whether a worker of this package may hold another lease.
func (p *planner) room(name string) bool {
	m, l := p.members[name], p.loads[name]
	return !m.Java && (m.MaxLeases == 0 || l.readable+l.blocked < m.MaxLeases)
}

// below returns the worker for a lease among those with room and with less than their shares.
func (p *planner) below(key runnel.ShardID) string {
	return p.best(key, func(name string) (int, bool) {
		return 0, p.loads[name].readable < p.shares[name]
	})
}

// anyone returns the worker for a lease among all with room: the one least above its share.
func (p *planner) anyone(key runnel.ShardID) string {
	return p.best(key, func(name string) (int, bool) {
		return p.loads[name].readable - p.shares[name], true
	})
}

// best returns the worker with room for which rank returns the smallest number, and true; the hash
// decides between equals. It returns "" if there is none.
func (p *planner) best(key runnel.ShardID, rank func(string) (int, bool)) string {
	best, least, lowest := "", 0, uint64(0)
	for _, name := range p.staying {
		n, ok := rank(name)
		if !ok || !p.room(name) {
			continue
		}
		h := hash(name, string(key))
		if best == "" || n < least || n == least && h < lowest {
			best, least, lowest = name, n, h
		}
	}
	return best
}

// takeIdle gives the readable leases without a live owner to workers of this package.
func (p *planner) takeIdle() {
	for _, r := range p.rows {
		if !p.idle(r) {
			continue
		}
		to := p.ender(r)
		if p.loads[to].readable >= p.shares[to] {
			to = p.below(r.Key)
		}
		if to == "" {
			to = p.anyone(r.Key)
		}
		if to == "" {
			p.unclaimed = append(p.unclaimed, r.Key)
		}
		p.move(r, to, MoveTake)
	}
}

// move adds a move to a plan, unless to is "".
func (p *planner) move(r Row, to string, kind MoveKind) {
	if to == "" {
		return
	}
	from := r.Owner
	if kind == MoveTake {
		from = ""
	} else {
		p.count(from, r.Ready, -1)
	}
	p.count(to, r.Ready, 1)
	p.moves = append(p.moves, Move{Key: r.Key, From: from, To: to, Kind: kind})
}

// leaves reports whether the lease's holder is leaving, and passes its leases.
func (p *planner) leaves(r Row) bool {
	m, lives := p.members[r.Owner]
	return lives && m.Leaving && !m.Java
}

// emptyBlocked passes the blocked leases of leaving workers on, to those that hold least. It comes
// before the shares, since a share depends on the blocked leases that its worker holds.
func (p *planner) emptyBlocked() {
	for _, r := range p.rows {
		if r.Ready == Blocked && p.leaves(r) {
			to := p.best(r.Key, func(name string) (int, bool) {
				return p.loads[name].blocked + p.loads[name].readable, true
			})
			p.move(r, to, MovePass)
		}
	}
}

// empty passes the readable leases of leaving workers on.
func (p *planner) empty() {
	for _, r := range p.rows {
		if r.Ready != Readable || !p.leaves(r) {
			continue
		}
		to := p.below(r.Key)
		if to == "" {
			to = p.anyone(r.Key)
		}
		p.move(r, to, MovePass)
	}
}

// even passes leases above a worker's share to workers below theirs.
func (p *planner) even() {
	for _, name := range p.staying {
		if p.members[name].Java {
			continue
		}
		for _, r := range p.movable(name) {
			if p.loads[name].readable <= p.shares[name] {
				break
			}
			p.move(r, p.below(r.Key), MovePass)
		}
	}
}

// movable returns the leases of a worker that may move, in the order in which they go.
func (p *planner) movable(name string) []Row {
	type ranked struct {
		row  Row
		rank uint64
	}
	var found []ranked
	for _, r := range p.rows {
		if r.Owner == name && r.Ready == Readable && !r.Pinned {
			found = append(found, ranked{r, hash(name, string(r.Key))})
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Compare(b.rank, a.rank) })
	rows := make([]Row, len(found))
	for i, f := range found {
		rows[i] = f.row
	}
	return rows
}

// rob takes leases from Java workers: one for each worker below its share, from the one that holds
// most.
func (p *planner) rob() {
	for _, robber := range p.staying {
		if p.members[robber].Java || !p.room(robber) ||
			p.loads[robber].readable >= p.shares[robber] {
			continue
		}
		victim := ""
		for _, name := range p.staying {
			if p.members[name].Java &&
				(victim == "" || p.loads[name].readable > p.loads[victim].readable) {
				victim = name
			}
		}
		held := p.loads[victim].readable
		if victim == "" || held <= p.shares[victim] || held < p.loads[robber].readable+2 {
			continue
		}
		for _, r := range p.movable(victim) {
			if !p.planned(r.Key) {
				p.move(r, robber, MoveRob)
				break
			}
		}
	}
}

func (p *planner) planned(key runnel.ShardID) bool {
	return slices.ContainsFunc(p.moves, func(m Move) bool { return m.Key == key })
}
