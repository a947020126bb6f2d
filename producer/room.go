package producer

import "container/list"

// room divides the producer's buffer among the groups of lanes, so that a group that cannot deliver
// blocks only its own callers.
//
// One budget for all groups would be simplest. But the records of a shard that takes fewer than
// its callers put would fill it, and every other caller would wait for that shard. Equal parts
// would be safe, but then a single busy lane could use only a 16th. So half of the buffer is
// reserved, in equal parts, and the other half is a pool. A group draws from the pool when its
// reserve is used up:
//
//   - All groups together never hold more than the limit.
//   - A group that holds less than its reserve waits for no other.
//   - A group in trouble, whose shard refuses records, draws from the pool in proportion to its
//     part of the recent deliveries. So it leaves the pool to the others, which can use it to
//     fill their units better. A group without trouble may draw all of the pool, except the part
//     that a large record of another group needs.
//
// Callers of one group are served in order. So are callers of different groups that wait for the
// pool: while one waits, no later one draws from it. Otherwise many small records could block a
// large one for ever.
//
// room is a plain data structure, without a lock, a clock or a goroutine.
type room struct {
	records, bytes share
	waiting        [groups]list.List    // of *waiter, oldest first
	waiters        int                  // the number of waiters in all groups
	tickets        uint64               // the ticket of the newest waiter
	troubled       func(group int) bool // nil: no group is in trouble
}

// waiter is a caller that waits for room for one record.
type waiter struct {
	group, bytes int
	ticket       uint64        // the order of the waiters
	granted      chan struct{} // closed when the record has its room
	place        *list.Element // in room.waiting; nil: granted or withdrawn
}

// newRoom returns the room for a number of records and bytes, where one record has at most
// `largest` bytes.
func newRoom(records, bytes, largest int) *room {
	return &room{records: newShare(records, 1), bytes: newShare(bytes, largest)}
}

// take gives a record of a group its room and returns nil, or returns a waiter for it.
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

// release returns the room of some records of a group. The caller then calls serve.
func (r *room) release(group, records, bytes int) {
	r.records.release(group, records)
	r.bytes.release(group, bytes)
}

// withdraw removes a waiter. If it has been granted room, that is released.
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

// claims says whether an older waiter waits for the pool, of records and of bytes.
type claims struct{ records, bytes bool }

// serve grants room to the waiters for which there is some now, oldest first.
func (r *room) serve() {
	var held claims
	var stuck [groups]bool // groups without room for their first waiter
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

// grant gives a record its room. It returns false if there is too little, or if an older waiter
// claims it.
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

// free reports whether a group may draw all of the pool, because it is not in trouble.
func (r *room) free(group int) bool { return r.troubled == nil || !r.troubled(group) }

// share divides one measure of the buffer, records or bytes, among the groups.
type share struct {
	limit   int
	largest int // the most that one record takes, as far as is known
	most    int // the most that a record of any stream can take; 0: no more than a reserve
	reserve int // the part of each group
	pool    int // the part that all groups share, above their reserves

	used   [groups]int
	pooled int // used of the pool

	// recent is the room that each group has released recently, and recentSum is the total. Both
	// are halved whenever recentSum exceeds the limit, so that older deliveries count less and
	// less.
	recent    [groups]int
	recentSum int
}

const (
	// reserves is 1 divided by the part of the buffer that is one group's reserve. The reserves of
	// the 16 groups are half of the buffer.
	reserves = 2 * groups
	// headroom bounds a group in trouble: its part of the recent deliveries, times headroom, is the
	// part of the pool that it may draw. With a factor of 1 a growing group could not grow.
	headroom = 2
	// A group that delivers nothing may still draw one part in idlePart of the free pool. So the
	// two groups of a dead shard (of eight) leave the others four fifths of the pool.
	idlePart = 8
	// At most one part in keptPart of the pool is kept for groups that have drawn nothing.
	keptPart = 4
)

// newShare divides a limit, of which one record takes up to `largest`. Every such record has room
// if the buffer is otherwise empty: if the limit is too low for that, the reserves are smaller,
// down to 0.
func newShare(limit, largest int) share {
	s := share{limit: limit, largest: largest}
	s.reserve = max(0, min(limit/reserves, (limit-largest)/(groups-1)))
	s.pool = limit - groups*s.reserve
	return s
}

// widen makes the reserves smaller for a record that is larger than any before: the stream's record
// limit is not known at first, and may be raised. The total in use stays within the limit, since
// the pool grows by as much as the groups' use of it.
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

// above returns the part of n that exceeds the reserve.
func (s *share) above(n int) int { return max(0, n-s.reserve) }

// extra returns how much of n more for a group comes from the pool.
func (s *share) extra(group, n int) int {
	return s.above(s.used[group]+n) - s.above(s.used[group])
}

// fits reports whether there is room for n more for a group. claimed means that an older waiter
// waits for the pool.
func (s *share) fits(group, n int, free, claimed bool) bool {
	extra := s.extra(group, n)
	return extra == 0 || !claimed && s.pooled+extra <= s.open(group) &&
		(free || s.mayDraw(group, n))
}

// open returns the total up to which a group may fill the pool. One part is kept for groups that
// have drawn nothing, so that they find room for a record larger than their reserve. Otherwise a
// busy lane that had drawn all of the pool before its shard began to refuse would keep such a
// record waiting.
func (s *share) open(group int) int {
	if s.used[group] <= s.reserve {
		return s.pool
	}
	return s.pool - max(0, min(s.pool/keptPart, s.most-s.reserve))
}

// mayDraw reports whether a group in trouble may draw n more from the pool, as far as there is so
// much. A group that has drawn nothing always may, since otherwise a record larger than the reserve
// could never go. So may all groups as long as nothing was delivered.
func (s *share) mayDraw(group, n int) bool {
	if s.used[group] <= s.reserve || s.recentSum == 0 {
		return true
	}
	part := min(1, headroom*float64(s.recent[group])/float64(s.recentSum))
	most := max((s.pool-s.pooled)/idlePart, int(part*float64(s.pool)))
	return s.above(s.used[group]+n) <= most
}

// claim sets claimed if a waiter for n more for a group waits for the pool. A waiter whose own
// group may draw no more waits for its group instead.
func (s *share) claim(group, n int, free bool, claimed *bool) {
	*claimed = *claimed || s.extra(group, n) > 0 && (free || s.mayDraw(group, n))
}

// take adds n to the use of a group.
func (s *share) take(group, n int) {
	s.pooled += s.extra(group, n)
	s.used[group] += n
}

// release subtracts n from the use of a group.
func (s *share) release(group, n int) {
	s.pooled += s.extra(group, -n)
	s.used[group] -= n
	s.recent[group] += n
	if s.recentSum += n; s.recentSum > s.limit {
		s.recentSum = 0
		for g := range s.recent {
			s.recent[g] /= 2
			s.recentSum += s.recent[g]
		}
	}
}
