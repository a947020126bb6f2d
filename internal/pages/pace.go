package pages

import "time"

// Pace is the distance between two reads of a shard. While data flows there is next to none. An
// idle shard is read less and less often, down to one read per Idle. The zero value has no waits,
// except after throttles.
type Pace struct {
	// Least is the least time from one read to the next: AWS allows five reads a second of a shard,
	// for all applications together ("GetRecords").
	Least time.Duration
	// Tip is the wait after a page that reached the tip; it lets records gather.
	Tip time.Duration
	// Idle is the longest wait while no record comes.
	Idle time.Duration
}

// pacer decides how long to wait. A throttle raises a floor under all waits, which then sinks
// slowly: with a server that allows 5 reads a second the floor settles near 200 ms, and elsewhere
// it remains zero.
type pacer struct {
	Pace
	idle  time.Duration // the last wait for an empty shard; 0 after records
	floor time.Duration // learnt from throttles
}

const (
	shortestWait = 5 * time.Millisecond  // while no record comes
	firstFloor   = 50 * time.Millisecond // after the first throttle
	highestFloor = time.Second
)

// onItsWay is the MillisBehindLatest of a position behind which no record can be read yet: records
// are on their way to the server's disk. They may take long, and a reader that asked for them at
// once would ask in a circle.
const onItsWay = time.Millisecond

// due returns the time of the next read, after one that was sent and answered at these times.
func (p *pacer) due(sent, answered time.Time, got *Page) time.Time {
	due, least := answered.Add(p.after(len(got.Records), got.Behind)), sent.Add(p.Least)
	if least.After(due) {
		return least
	}
	return due
}

// after returns the wait after a read that brought the given number of records and ended that far
// behind the shard's tip.
func (p *pacer) after(records int, behind time.Duration) time.Duration {
	return p.next(records > 0, behind > onItsWay)
}

// next returns the wait after a read. records is true if it brought records, more if it left unread
// records behind it.
func (p *pacer) next(records, more bool) time.Duration {
	if p.floor -= p.floor / 32; p.floor < time.Millisecond {
		p.floor = 0
	}
	idle := p.idle
	p.idle = 0
	switch {
	case records && more:
		return p.floor
	case more: // in a stretch without records
		return max(p.floor, min(shortestWait, p.Idle))
	case records:
		return max(p.floor, p.Tip)
	default:
		p.idle = min(max(2*idle, shortestWait, p.Least, p.Tip), p.Idle)
		return max(p.floor, p.idle)
	}
}

// throttle returns the wait after a read that was refused for coming too soon.
func (p *pacer) throttle() time.Duration {
	p.floor = min(max(2*p.floor, firstFloor), highestFloor)
	return p.floor
}
