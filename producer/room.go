package producer

import "container/list"

// room shares the producer's buffer among the groups of lanes. A group that cannot deliver keeps
// only its own callers waiting.
//
// One budget for all would be simplest. But a shard that takes less than its caller puts would
// fill it, and every other caller would wait for that shard. Equal parts would be safe, but a
// single hot key could then use no more than a 16th. So half of the buffer is reserved, in equal
// parts, and half is a pool. A group draws from the pool when its reserve is used up:
//
//   - All groups together never hold more than the limit.
//   - A group that holds less than its reserve waits for no other.
//   - A group in trouble, whose shard refuses records, draws from the pool in proportion to its
//     part of the records that were delivered lately. So it leaves the pool to the others, which
//     fill their units better with it. Without trouble a group may draw the pool but for what a
//     large record of another group needs.
//
// Callers of one group are served in their order. So are callers of several groups that wait for
// the pool: while one waits, no later one draws from it. Otherwise many small records could keep
// a large one waiting for ever.
//
// It is a plain structure, without a lock, a clock or a goroutine.
type room struct {
	records, bytes share
	waiting        [groups]list.List // of *waiter, the oldest first
	waiters        int               // in all groups
	tickets        uint64
	troubled       func(group int) bool // nil: no group is in trouble
}

// waiter is a caller that waits for room for one record.
type waiter struct {
	group, bytes int
	ticket       uint64        // counts the waiters
	granted      chan struct{} // closed when the record has its room
	place        *list.Element // nil: it waits no more
}

// newRoom returns the room for so many records and bytes, of records of up to largest bytes.
func newRoom(records, bytes, largest int) *room {
	return &room{records: newShare(records, 1), bytes: newShare(bytes, largest)}
}

// take gives a record of a group its room and returns nil, or returns the waiter for it.
func (r *room) take(group, bytes int) *waiter {
	r.bytes.widen(bytes)
	within := r.records.extra(group, 1) == 0 && r.bytes.extra(group, bytes) == 0
	if r.waiting[group].Len() == 0 && (within || r.waiters == 0) &&
		r.grant(group, bytes, &claims{}) {
		return nil
	}
	r.tickets++
	w := &waiter{group: group, bytes: bytes, ticket: r.tickets, granted: make(chan struct{})}
	w.place = r.waiting[group].PushBack(w)
	r.waiters++
	if r.serve(); w.place == nil {
		return nil
	}
	return w
}

// release gives back the room of so many records of a group. serve is to be called after it.
func (r *room) release(group, records, bytes int) {
	r.records.release(group, records)
	r.bytes.release(group, bytes)
}

// withdraw takes out a waiter. One that was granted its room gives it back.
func (r *room) withdraw(w *waiter) {
	if w.place == nil {
		r.release(w.group, 1, w.bytes)
	} else {
		r.remove(w)
	}
	r.serve()
}

func (r *room) remove(w *waiter) {
	r.waiting[w.group].Remove(w.place)
	w.place = nil
	r.waiters--
}

// claims says, for records and for bytes, that an older waiter waits for the pool.
type claims struct{ records, bytes bool }

// serve grants room to the waiters that now have it.
func (r *room) serve() {
	var held claims
	var stuck [groups]bool // their first waiter has no room
	for r.waiters > 0 {
		var oldest *waiter
		for g := range r.waiting {
			if first := r.waiting[g].Front(); first != nil && !stuck[g] {
				w := first.Value.(*waiter)
				if oldest == nil || w.ticket < oldest.ticket {
					oldest = w
				}
			}
		}
		switch {
		case oldest == nil:
			return
		case r.grant(oldest.group, oldest.bytes, &held):
			r.remove(oldest)
			close(oldest.granted)
		default:
			stuck[oldest.group] = true
			free := r.free(oldest.group)
			r.records.claim(oldest.group, 1, free, &held.records)
			r.bytes.claim(oldest.group, oldest.bytes, free, &held.bytes)
		}
	}
}

// grant gives a record its room, unless there is none or an older waiter claims it.
func (r *room) grant(group, bytes int, held *claims) bool {
	free := r.free(group)
	if !r.records.fits(group, 1, free, held.records) ||
		!r.bytes.fits(group, bytes, free, held.bytes) {
		return false
	}
	r.records.take(group, 1)
	r.bytes.take(group, bytes)
	return true
}

// free reports whether a group may draw all of the pool.
func (r *room) free(group int) bool { return r.troubled == nil || !r.troubled(group) }

// share is how one measure of the buffer is shared out.
type share struct {
	limit   int
	largest int // that a record takes of it, as far as is known
	most    int // that a record of any stream takes of it; 0: no more than a reserve
	reserve int // of each group, for it alone
	pool    int // of all groups, above their reserves

	used   [groups]int
	pooled int // of the pool

	// gone counts the room that each group gave back lately, and sum adds it up. Both are
	// halved whenever sum exceeds the limit, so that older deliveries count less and less.
	gone [groups]int
	sum  int
}

const (
	// reserves is the reserve's part of all: half of the buffer is that of 16 groups.
	reserves = 2 * groups
	// headroom times its part of the recent deliveries is the part of the pool that a group in
	// trouble may draw: with more than once its part, a growing group can grow.
	headroom = 2
	// Every group may draw one idlePart-th of the rest of the pool, even if it delivers nothing.
	// The two groups of a dead shard (of eight) so leave the others four fifths of the pool.
	idlePart = 8
	// keptPart: at most a quarter of the pool is for groups that have drawn nothing.
	keptPart = 4
)

// newShare shares out a limit, of which one record takes up to largest. Every such record has
// room if nothing else is there: where the limit is so low that the reserves leave no room for
// it, they are smaller, down to nothing.
func newShare(limit, largest int) share {
	s := share{limit: limit, largest: largest}
	s.reserve = max(0, min(limit/reserves, (limit-largest)/(groups-1)))
	s.pool = limit - groups*s.reserve
	return s
}

// widen makes the reserves smaller for a record that is larger than any was to be: the stream's
// record limit is not known at first, and may be raised. What is held stays within the limit, since
// the pool grows by as much as what the groups have drawn from it.
func (s *share) widen(largest int) {
	if largest <= s.largest {
		return
	}
	wider := newShare(s.limit, largest)
	s.largest, s.reserve, s.pool, s.pooled = largest, wider.reserve, wider.pool, 0
	for _, used := range s.used {
		s.pooled += s.above(used)
	}
}

// above returns how much n exceeds the reserve by.
func (s *share) above(n int) int { return max(0, n-s.reserve) }

// extra returns how much of n more of a group comes from the pool.
func (s *share) extra(group, n int) int {
	return s.above(s.used[group]+n) - s.above(s.used[group])
}

// fits reports whether there is room for n more of a group. If claimed, an older waiter waits for
// the pool.
func (s *share) fits(group, n int, free, claimed bool) bool {
	extra := s.extra(group, n)
	return extra == 0 || !claimed && s.pooled+extra <= s.open(group) &&
		(free || s.mayDraw(group, n))
}

// open returns how much of the pool a group may fill up. A part is for groups that have drawn
// nothing, so that a record above its group's reserve finds room. Without it a hot key that had
// drawn all of the pool before its shard began to refuse would keep such a record waiting.
func (s *share) open(group int) int {
	if s.used[group] <= s.reserve {
		return s.pool
	}
	return s.pool - max(0, min(s.pool/keptPart, s.most-s.reserve))
}

// mayDraw reports whether a group in trouble may draw n more from the pool, if there is so much.
// One that has drawn nothing may always, or a record larger than the reserve would never go, and
// so may all as long as nothing was delivered.
func (s *share) mayDraw(group, n int) bool {
	if s.used[group] <= s.reserve || s.sum == 0 {
		return true
	}
	part := min(1, headroom*float64(s.gone[group])/float64(s.sum))
	most := max((s.pool-s.pooled)/idlePart, int(part*float64(s.pool)))
	return s.above(s.used[group]+n) <= most
}

// claim notes that a waiter for n more of a group waits for the pool. One that waits for its own
// group, since it may not draw more, does not.
func (s *share) claim(group, n int, free bool, claimed *bool) {
	*claimed = *claimed || s.extra(group, n) > 0 && (free || s.mayDraw(group, n))
}

// take counts n more of a group.
func (s *share) take(group, n int) {
	s.pooled += s.extra(group, n)
	s.used[group] += n
}

// release counts n less of a group.
func (s *share) release(group, n int) {
	s.pooled += s.extra(group, -n)
	s.used[group] -= n
	s.gone[group] += n
	if s.sum += n; s.sum > s.limit {
		s.sum = 0
		for g := range s.gone {
			s.gone[g] /= 2
			s.sum += s.gone[g]
		}
	}
}
