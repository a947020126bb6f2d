package producer

import (
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
)

const (
	markShare  = 10   // of H: the least time between two marks of a shard
	shardMarks = 40   // so they reach back 4H
	markShards = 4096 // that have marks
	markLooks  = 16   // results of a call that are looked at
)

// mark is a record that was acknowledged at a moment.
type mark struct {
	at       time.Time
	sequence runnel.SequenceNumber
}

// marks holds some acknowledged records of each shard. The sequence numbers of a shard grow, so
// that a unit that is sent after the moment of a mark lies behind the mark's record. A look-up
// that begins there depends on no clock of the stream.
type marks map[runnel.ShardID][]mark

// note marks records that a call has stored.
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

// prune takes out the shards that were last written to before a moment.
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

// start is where a search begins in a shard: behind a record, or else at a time of the stream, or
// else, where both are zero, at the oldest record.
type start struct {
	after runnel.SequenceNumber
	at    time.Time
}

// startOf returns where to begin looking for units in a shard: before any copy of them, and not
// much before.
//
// A mark that is older than the Date that their first sends had seen by more than H is left for
// that, since it has more to be read.
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
