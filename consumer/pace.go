package consumer

import "time"

// pace decides how long to wait between two reads of a shard. While data flows it waits next to
// nothing. An idle shard is read less and less often, down to one read per interval. A throttle
// raises a floor under all waits, which then sinks slowly: with a server that allows 5 reads a
// second the floor settles near 200 ms, and elsewhere it remains zero.
type pace struct {
	interval time.Duration // the longest wait of an idle shard
	idle     time.Duration // the last wait for an empty shard; 0 after records
	floor    time.Duration // learnt from throttles
}

const (
	shortestWait = 5 * time.Millisecond  // at the tip: lets a batch gather
	firstFloor   = 50 * time.Millisecond // after the first throttle
	highestFloor = time.Second
)

// onItsWay is the MillisBehindLatest of a position behind which no record can be read yet: records
// are on their way to the server's disk. They may take long, and a reader that asked for them at
// once would ask in a circle.
const onItsWay = time.Millisecond

// after returns the wait after a read that brought the given number of records and ended that far
// behind the shard's tip.
func (p *pace) after(records int, behind time.Duration) time.Duration {
	return p.next(records > 0, behind > onItsWay)
}

// next returns the wait after a read. records is true if it brought records, more if it left unread
// records behind it.
func (p *pace) next(records, more bool) time.Duration {
	if p.floor -= p.floor / 32; p.floor < time.Millisecond {
		p.floor = 0
	}
	switch {
	case records && more:
		p.idle = 0
		return p.floor
	case records || more: // at the tip, or in a stretch without records
		p.idle = 0
		return max(p.floor, min(shortestWait, p.interval))
	default:
		p.idle = min(max(2*p.idle, shortestWait), p.interval)
		return max(p.floor, p.idle)
	}
}

// throttle returns the wait after a read that was refused for coming too soon.
func (p *pace) throttle() time.Duration {
	p.floor = min(max(2*p.floor, firstFloor), highestFloor)
	return p.floor
}
