package fault

import (
	"hash/fnv"
	"sync"
	"time"
)

// Reshards is a rule that reshards streams on a schedule. Each stream has its own turns, which
// count from 1 on: what comes in a turn depends on the seed, the rule's place, the stream's
// name and the turn's number, and not on the time. Safe for concurrent use.
type Reshards struct {
	// Every is the time from one turn of a stream to its next, if it can be had by then.
	Every time.Duration

	in    *Injector
	rule  *rule
	seed  uint64
	place uint64

	mu      sync.Mutex
	streams map[string]*turns
}

// turns is how far a stream is.
type turns struct {
	done  uint64
	first int // open shards when the rule met it first
}

// Turn is a stream's turn to be resharded.
type Turn struct {
	Number uint64 // from 1 on
	Draw   uint64 // what the seed has drawn for it: it decides all that is left to chance
	Skip   bool   // nothing is to be done in this turn
	// Most is how many open shards the stream may have after it: twice what it had when the
	// rule met it first, and at least two.
	Most int
}

// schedule returns the plan's reshard rules, with no turn taken.
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

// Schedule returns the plan's reshard rules, and a channel that is closed when they have been
// replaced by others.
func (in *Injector) Schedule() (rules []*Reshards, replaced <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.replaced == nil {
		in.mu.replaced = make(chan struct{})
	}
	return in.mu.schedule, in.mu.replaced
}

// About reports whether the rule is about the stream of that name. Names are as the API has
// them: their case matters.
func (r *Reshards) About(stream string) bool {
	return r.rule.calls == "*" || r.rule.calls == stream
}

// Next returns the stream's turn that comes next; the same one until Done. id tells streams of
// one name in several worlds apart; shards is how many open ones the stream has now.
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

// Done ends the stream's turn. operation is what was done in it, as "SplitShard", and is
// counted; "" if nothing was.
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

// Keep forgets the turns of all streams but those, by id, so that they do not pile up.
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
