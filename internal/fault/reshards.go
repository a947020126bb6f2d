package fault

import (
	"hash/fnv"
	"sync"
	"time"
)

// Reshards is a rule that reshards streams on a schedule. Each stream has its own turns, counted
// from 1. The content of a turn depends on the seed, the rule's place, the stream's name and the
// turn's number, but not on the time. Safe for concurrent use.
type Reshards struct {
	// Every is the time between two turns of a stream, unless the later one has to wait.
	Every time.Duration

	in    *Injector
	rule  *rule
	seed  uint64
	place uint64

	mu      sync.Mutex
	streams map[string]*turns
}

// turns is the progress of a stream.
type turns struct {
	done  uint64
	first int // open shards when the rule first met the stream
}

// Turn is a stream's turn to be resharded.
type Turn struct {
	Number uint64 // from 1 on
	Draw   uint64 // the seed's random number for it: the source of all random choices
	Skip   bool   // do nothing in this turn
	// Most is the largest allowed number of open shards after the turn: twice the number when the
	// rule first met the stream, and at least two.
	Most int
}

// schedule returns the plan's reshard rules at their first turns.
func (p *Plan) schedule(in *Injector) []*Reshards {
	if p == nil {
		return nil
	}
	var schedule []*Reshards
	for i := range p.rules {
		if r := &p.rules[i]; r.kind == kindReshard {
			schedule = append(schedule, &Reshards{
				Every: r.duration, in: in, rule: r, seed: p.seed, place: uint64(i),
				streams: map[string]*turns{},
			})
		}
	}
	return schedule
}

// Schedule returns the plan's reshard rules, and a channel that is closed when the next Set
// replaces them.
func (in *Injector) Schedule() (rules []*Reshards, replaced <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.replaced == nil {
		in.mu.replaced = make(chan struct{})
	}
	return in.mu.schedule, in.mu.replaced
}

// About reports whether the rule applies to the stream with that name. Names are case-sensitive,
// as in the API.
func (r *Reshards) About(stream string) bool {
	return r.rule.calls == "*" || r.rule.calls == stream
}

// Next returns the stream's next turn, and the same one again until Done. id distinguishes
// streams of one name in several worlds; shards is the stream's present number of open shards.
func (r *Reshards) Next(id, stream string, shards int) Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.streams[id]
	if at == nil {
		at = &turns{first: shards}
		r.streams[id] = at
	}
	number := at.done + 1
	draw := mix(r.seed, r.place, hashOf(stream), number)
	return Turn{
		Number: number, Draw: mix(draw), Most: max(2, 2*at.first),
		Skip: !r.rule.when.meets(number, draw),
	}
}

// Done ends the stream's turn. It counts operation, such as "SplitShard"; "" means that the turn
// did nothing.
func (r *Reshards) Done(id, operation string) {
	r.mu.Lock()
	if at := r.streams[id]; at != nil {
		at.done++
	}
	r.mu.Unlock()
	if operation != "" {
		r.in.mu.Lock()
		defer r.in.mu.Unlock()
		r.in.countOne(operation, kindReshard)
	}
}

// Keep drops the turns of all streams for which there returns false, so that they do not
// accumulate.
func (r *Reshards) Keep(there func(id string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.streams {
		if !there(id) {
			delete(r.streams, id)
		}
	}
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}
