package pages

import "time"

// Pace is the distance between two reads of a shard. While data flows there is next to none. An
// idle shard is read less and less often, down to one read per Idle. The zero value has no waits.
// A Budget's waits come on top.
type Pace struct {
	// Least is the least time from one read to the next.
	Least time.Duration
	// Tip is the wait after a page that reached the tip; it lets records gather.
	Tip time.Duration
	// Idle is the longest wait while no record comes.
	Idle time.Duration
}

// pacer decides how long to wait.
type pacer struct {
	Pace
	idle time.Duration // the last wait for an empty shard; 0 after records
}

const shortestWait = 5 * time.Millisecond // while no record comes

// onItsWay is the MillisBehindLatest of a position behind which no record can be read yet: records
// are on their way to the server's disk. They may take long, and a reader that asked for them at
// once would ask in a circle.
const onItsWay = time.Millisecond

// due returns the time of the next read, after one that was sent and answered at these times. The
// waits of an idle shard grow from distance on: the budget has no reads that are closer together.
func (p *pacer) due(sent, answered time.Time, got *Page, distance time.Duration) time.Time {
	wait := p.after(len(got.Records), got.Behind, max(p.Least, distance))
	return later(answered.Add(wait), sent.Add(p.Least))
}

// after returns the wait after a read that brought the given number of records and ended that far
// behind the shard's tip.
func (p *pacer) after(records int, behind, least time.Duration) time.Duration {
	return p.next(records > 0, behind > onItsWay, least)
}

// next returns the wait after a read. records is true if it brought records, more if it left unread
// records behind it. least is the first wait for an empty shard.
func (p *pacer) next(records, more bool, least time.Duration) time.Duration {
	idle := p.idle
	p.idle = 0
	switch {
	case records && more:
		return 0
	case more: // in a stretch without records
		return min(shortestWait, p.Idle)
	case records:
		return p.Tip
	default:
		p.idle = min(max(2*idle, shortestWait, least, p.Tip), p.Idle)
		return p.idle
	}
}
