package lease

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/runnel-stream/runnel"
)

type Member struct {
	Name      string
	Java      bool
	MaxLeases int
	Leaving   bool
}

type Readiness int

const (
	Readable Readiness = iota
	Blocked
	Ended
)

type Row struct {
	Key    runnel.ShardID
	Owner  string
	Silent bool
	Ready  Readiness
	Before []string
	Pinned bool
}

type View struct {
	Rows    []Row
	Members []Member
}

type MoveKind string

const (
	MoveTake MoveKind = "take"
	MovePass MoveKind = "pass"
	MoveRob  MoveKind = "rob"
)

type Move struct {
	Key      runnel.ShardID
	From, To string
	Kind     MoveKind
}

type FleetPlan struct {
	Watchers []string
	Shares   map[string]int
	Moves    []Move
}

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for i, p := range parts {
		if i > 0 {
			h.Write([]byte{0})
		}
		h.Write([]byte(p))
	}
	return h.Sum64()
}

// Plan: a first version.
func (v View) Plan() FleetPlan {
	ms := slices.Clone(v.Members)
	slices.SortFunc(ms, func(a, b Member) int { return cmp.Compare(hash(a.Name), hash(b.Name)) })
	p := FleetPlan{Shares: map[string]int{}}
	stay := map[string]Member{}
	for _, m := range ms {
		if !m.Leaving {
			stay[m.Name] = m
			if !m.Java && len(p.Watchers) < 2 {
				p.Watchers = append(p.Watchers, m.Name)
			}
		}
	}
	rows := slices.Clone(v.Rows)
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	load, all := map[string]int{}, map[string]int{}
	n := 0
	java := map[string]bool{}
	for _, m := range ms {
		java[m.Name] = m.Java
	}
	for _, r := range rows {
		if r.Owner != "" {
			all[r.Owner]++
		}
		if r.Ready == Readable {
			n++
			load[r.Owner]++
		}
	}
	order := make([]string, 0, len(stay))
	for _, m := range ms {
		if _, ok := stay[m.Name]; ok {
			order = append(order, m.Name)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(load[b], load[a]) })
	for left := n; left > 0; {
		low, who := 1<<30, ""
		for _, name := range order {
			if most := stay[name].MaxLeases; most > 0 && p.Shares[name] >= most {
				continue
			}
			if p.Shares[name] < low {
				low, who = p.Shares[name], name
			}
		}
		if who == "" {
			break
		}
		p.Shares[who]++
		left--
	}
	now := map[string]int{}
	for k, x := range load {
		now[k] = x
	}
	pick := func(key runnel.ShardID, before []string, beyond bool) string {
		best := ""
		for _, name := range order {
			m := stay[name]
			if java[name] || m.MaxLeases > 0 && now[name] >= m.MaxLeases {
				continue
			}
			if !beyond && now[name] >= p.Shares[name] {
				continue
			}
			if slices.Contains(before, name) {
				return name
			}
			if best == "" || beyond && now[name] < now[best] ||
				!beyond && hash(name, string(key)) < hash(best, string(key)) {
				best = name
			}
		}
		return best
	}
	for _, r := range rows {
		if r.Ready != Readable || r.Owner != "" {
			continue
		}
		to := pick(r.Key, r.Before, false)
		if to == "" {
			to = pick(r.Key, r.Before, true)
		}
		if to != "" {
			now[to]++
			p.Moves = append(p.Moves, Move{Key: r.Key, To: to, Kind: MoveTake})
		}
	}
	robbed := map[string]bool{}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Compare(hash(b.Owner, string(b.Key)), hash(a.Owner, string(a.Key)))
	})
	for _, r := range rows {
		_, stays := stay[r.Owner]
		if r.Owner == "" || r.Ready == Ended || stays && (r.Ready != Readable || r.Pinned || now[r.Owner] <= p.Shares[r.Owner]) {
			continue
		}
		kind := MovePass
		if java[r.Owner] {
			kind = MoveRob
		}
		to := pick(r.Key, nil, !stays)
		if to == "" || kind == MoveRob && (robbed[to] || now[r.Owner] < now[to]+2) {
			continue
		}
		robbed[to] = robbed[to] || kind == MoveRob
		now[to]++
		now[r.Owner]--
		p.Moves = append(p.Moves, Move{Key: r.Key, From: r.Owner, To: to, Kind: kind})
	}
	slices.SortFunc(p.Moves, func(a, b Move) int { return cmp.Compare(a.Key, b.Key) })
	return p
}
