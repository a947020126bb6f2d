package consumer

import (
	"errors"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
)

// errVoid refuses a commit of a shard that was sought, or is no longer held.
var errVoid = errors.New("the shard was sought or handed over meanwhile")

// progress passes the committed positions of a shard's reading to the keeper, each with the
// filter's state there. It is safe for concurrent use.
type progress struct {
	of    *holding
	seeks int // before it

	mu    sync.Mutex
	over  bool            // no commit counts any more
	last  runnel.Position // the last commit announced
	taken []taken         // pages that are not committed, in order
	steps []step          // of a handler's filter, that are not committed, in order
}

// taken is a page that the form has taken.
type taken struct {
	through  runnel.Position
	complete time.Time // page.complete there
}

// step is a change of a handler's filter, by a page or by one Kinesis record.
type step struct {
	from, at runnel.Position // the records after from, to the end of the last one at at
	single   bool            // one Kinesis record

	base   *aggregate.Filter // the filter before the first unit, if it was made there
	change []byte
}

// start sets the position at which the reading begins.
func (p *progress) start(at runnel.Position) { p.last = at }

// move goes to a commit that another worker has made. The pages that were taken are dropped.
func (p *progress) move(to sink.Committed) error {
	err := p.commit(to)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken, p.steps = nil, nil
	return err
}

// take notes a page that the form is about to take.
func (p *progress) take(of *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = append(p.taken, taken{of.through, of.complete})
	p.steps = append(p.steps, of.steps...)
}

// void ends the progress: no later commit counts.
func (p *progress) void() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// commit passes a committed position on: to the lease row, or as an event alone.
func (p *progress) commit(c sink.Committed) error {
	news, err := p.note(c)
	if news { // without the lock: the event's receiver may seek, or wait for one that does
		p.of.event(Event{Kind: EventCommitted, Position: c.End})
	}
	return err
}

// note is commit without the event. It reports whether the position is new.
func (p *progress) note(c sink.Committed) (news bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false, errVoid
	}
	defer p.complete(c)
	if c.End == p.last {
		return false, nil
	}
	h := p.of
	if c.End.Less(p.last) && !h.unended {
		// The sink has gone back. The time of completeness at the old position holds for no earlier
		// one.
		h.keeper.complete(h.run.began())
	}
	p.last = c.End
	switch {
	case h.unended: // the keeper's row is the child's
		return true, nil
	case c.End == runnel.End(): // that one is written with the children
		return true, h.keeper.ended(c.Token, p.passed(c.End))
	default:
		steps := p.passed(c.End)
		exact := len(p.steps) == 0 || p.steps[0].single || !p.steps[0].from.Less(c.End)
		return true, h.keeper.post(c, steps, exact)
	}
}

// passed removes and returns the steps up to a position. The step of a record in which the position
// lies is not among them: the next reader gets the whole record, and judges its units again. The
// state is then still that of the position, unless the step is one of several records.
func (p *progress) passed(at runnel.Position) []step {
	n := 0
	for n < len(p.steps) && !at.Less(p.steps[n].at) {
		n++
	}
	steps := p.steps[:n:n]
	p.steps = p.steps[n:]
	return steps
}

// complete passes on the time up to which the shard is complete at a position. It comes after the
// checkpoint to which it belongs.
func (p *progress) complete(c sink.Committed) {
	n := 0
	for n < len(p.taken) && !c.End.Less(p.taken[n].through) {
		n++
	}
	if n == 0 {
		return
	}
	to := p.taken[n-1].complete
	p.taken = p.taken[n:]
	if !to.IsZero() && !p.of.unended {
		p.of.keeper.complete(to)
	}
}
