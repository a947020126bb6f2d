package producer

import (
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
)

const (
	markShare  = 10   // one part in markShare of H is the least time between marks of a shard
	shardMarks = 40   // the most marks of a shard, which reach back 4H
	markShards = 4096 // the most shards with marks
	markLooks  = 16   // at most so many results of a call are considered
)

// mark is a record that was acknowledged at a moment.
type mark struct {
	at       time.Time
	sequence runnel.SequenceNumber
}

// marks holds some acknowledged records of each shard. The sequence numbers of a shard grow, so a
// unit that is first sent after a mark's moment is stored behind the mark's record. A look-up that
// begins there depends on no clock of the stream.
type marks map[runnel.ShardID][]mark

// note adds marks for records that a call has stored.
func (m marks) note(now time.Time, o outcome, horizon time.Duration) {
	for i := 0; i < len(o.each); i += 1 + len(o.each)/markLooks {
		if v := &o.each[i]; v.fate == stored {
			m.add(mark{now, v.sequence}, v.shard, horizon)
		}
	}
}

func (m marks) add(next mark, shard runnel.ShardID, horizon time.Duration) {
	list := m[shard]
	switch {
	case len(list) == 0:
		if len(m) >= markShards {
			m.prune(next.at.Add(-2 * shardMarks / markShare * horizon))
		}
		if len(m) >= markShards {
			return
		}
	case next.at.Sub(list[len(list)-1].at) < horizon/markShare:
		return
	case len(list) >= shardMarks:
		list = slices.Delete(list, 0, 1)
	}
	m[shard] = append(list, next)
}

// prune removes the shards with no mark since a moment.
func (m marks) prune(before time.Time) {
	for shard, list := range m {
		if list[len(list)-1].at.Before(before) {
			delete(m, shard)
		}
	}
}

// before returns the last mark of a shard before a moment.
func (m marks) before(shard runnel.ShardID, moment time.Time) (mark, bool) {
	for _, marked := range slices.Backward(m[shard]) {
		if marked.at.Before(moment) {
			return marked, true
		}
	}
	return mark{}, false
}

// start is the place where a search of a shard begins: behind a record, or if after is empty at a
// time of the stream, or if both are zero at the oldest record.
type start struct {
	after runnel.SequenceNumber
	at    time.Time
}

// startOf returns where the search for the units of some lanes begins in a shard: before any copy
// of them, but not much before. It prefers a mark, unless the mark is more than H older than the
// Date seen before their first attempts: then it begins at that time, to read less.
func (c *core) startOf(shard runnel.ShardID, lanes []*lane) start {
	var first, seen time.Time
	var s start
	for i, l := range lanes {
		u := &l.unit
		if i == 0 || u.firstSent.Before(first) {
			first = u.firstSent
		}
		if i == 0 || u.from.Before(s.at) {
			s.at, seen = u.from, u.sinceSeen
		}
	}
	marked, ok := c.marks.before(shard, first)
	if ok && !marked.at.Before(seen.Add(-c.limits.horizon)) {
		s.after = marked.sequence
	}
	return s
}
