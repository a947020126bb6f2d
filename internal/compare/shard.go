package compare

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/sink/archive"
)

// comparison is the state of one Run.
type comparison struct {
	ctx     context.Context //nolint:containedctx // of the one Run: pages have shorter ones
	cfg     Config
	stream  archive.Stream
	horizon shardmap.Horizon
	now     time.Time // of the stream, at a time before the reading
	asked   time.Time // when that was, by our clock
	since   time.Time // zero: from the beginning on
	limit   int       // examples of each finding

	mu     sync.Mutex // guards the fields below, and the shards
	report *archive.StreamReport
	shards map[runnel.ShardID]*shard
	newest time.Time // the last arrival in the archive
}

// shard is the comparison of one shard: a merge of the archive's records with the stream's.
type shard struct {
	of       *comparison
	id       runnel.ShardID
	parents  []runnel.ShardID
	tail     archive.Tail
	archived bool   // the archive has links of it
	listed   bool   // the stream has it
	trimmed  bool   // the stream has removed records before the next one
	cut      bool   // it was so at some time
	met      bool   // a record of the stream has come
	stopped  string // why the comparison ended early; "" if it did not

	pull  func() (runnel.Record, error, bool)
	close func()
	head  runnel.Record // the archive's next record
	some  bool          // there is one

	seen   int64     // archived records that were compared or reported
	absent int64     // of the stream, dropped by archive.Config.Map
	newer  int64     // of the stream, behind the archive's tip
	first  time.Time // arrival of the first of those
}

// shard returns a shard that the stream lists.
func (c *comparison) shard(listed runnel.Shard) *shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shards[listed.ID]
	if s == nil {
		s = &shard{of: c, id: listed.ID}
		c.shards[listed.ID] = s
	}
	s.listed, s.parents = true, listed.Parents
	return s
}

// notice marks the places where the stream has removed records unread.
func (c *comparison) notice(n follow.Notice) {
	if c.cfg.OnNotice != nil {
		c.cfg.OnNotice(n)
	}
	if n.Kind != follow.Gap && n.Kind != follow.Gone {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.shards[n.Shard]; s != nil {
		s.trimmed, s.cut = true, true
	}
}

// handle compares the records of one page.
func (c *comparison) handle(_ context.Context, records iter.Seq[*runnel.Record]) error {
	for record := range records {
		c.mu.Lock()
		err := c.shards[record.ShardID].take(record)
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// stop ends the comparison of a shard.
func (s *shard) stop(reason string) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.stopped = reason
}

// next moves on to the archive's next record.
func (s *shard) next() error {
	if s.pull == nil {
		s.pull, s.close = iter.Pull2(
			s.of.cfg.Archive.TailRecords(s.of.ctx, s.tail, len(s.of.shards)))
	}
	record, err, some := s.pull()
	if s.head, s.some = record, some && err == nil; s.some {
		s.of.newest = later(s.of.newest, record.ArrivalTime)
	}
	return err
}

// take compares the stream's next record.
func (s *shard) take(record *runnel.Record) error {
	if s.stopped != "" || !s.archived && record.ArrivalTime.Before(s.of.since) {
		return nil
	}
	if !s.archived || s.tail.End.Less(record.Position) {
		if s.newer++; s.first.IsZero() {
			s.first = record.ArrivalTime
		}
		return nil
	}
	if s.pull == nil {
		if err := s.next(); err != nil {
			return err
		}
	}
	for s.some && s.head.Position.Less(record.Position) {
		s.alone()
		if err := s.next(); err != nil {
			return err
		}
	}
	s.trimmed, s.met = false, true
	switch report := s.of.report; {
	case s.some && s.head.Position == record.Position:
		s.seen++
		report.Compared++
		if what := difference(&s.head, record); what != "" && !s.tail.Mapped {
			report.Differ.Add(1, s.of.limit, "%s: the record at %s has another %s", s.id,
				record.Position, what)
		}
		return s.next()
	case record.ArrivalTime.Before(s.of.since):
		return nil
	case s.tail.Mapped && s.absent < s.tail.Dropped:
		s.absent++
		return nil
	default:
		report.Missing.Add(1, s.of.limit, "%s: the record at %s, key %q, arrived %s", s.id,
			record.Position, record.PartitionKey, record.ArrivalTime.Format(time.RFC3339Nano))
		return nil
	}
}

// alone counts the archive's next record, which the stream does not have.
func (s *shard) alone() {
	if s.trimmed || !s.met && s.of.mayBeRemoved(s.head.ArrivalTime) {
		s.cut = true
		return // it is counted as unchecked at the end
	}
	s.seen++
	s.of.report.Extra.Add(1, s.of.limit, "%s: the record at %s, key %q, arrived %s", s.id,
		s.head.Position, s.head.PartitionKey, s.head.ArrivalTime.Format(time.RFC3339Nano))
}

// mayBeRemoved reports whether the stream can have removed a record that arrived at a time, under a
// retention period that was shorter than now. No period is shorter than 24 hours (AWS,
// "DecreaseStreamRetentionPeriod"). The oldest records go first, so it concerns a shard's records
// before the first one that the stream has.
func (c *comparison) mayBeRemoved(arrival time.Time) bool {
	const shortest, margin = 24 * time.Hour, time.Minute
	return c.now.Add(time.Since(c.asked)).Sub(arrival) >= shortest-margin
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// difference names the first part in which two records of one position differ; "" if none does.
func difference(archived, record *runnel.Record) string {
	switch {
	case archived.PartitionKey != record.PartitionKey:
		return "partition key"
	case archived.ExplicitHashKey != record.ExplicitHashKey:
		return "explicit hash key"
	case !archived.ArrivalTime.Equal(record.ArrivalTime):
		return "arrival time"
	case !bytes.Equal(archived.Data, record.Data):
		return "data"
	}
	return ""
}

// finish reports on each shard as a whole.
func (c *comparison) finish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*shard, 0, len(c.shards))
	for _, s := range c.shards {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *shard) int { return cmp.Compare(a.id, b.id) })
	for _, s := range all {
		if err := s.drain(); err != nil {
			return err
		}
		c.report.Mapped = c.report.Mapped || s.tail.Mapped
	}
	for _, s := range all {
		c.judge(s)
	}
	return nil
}

// drain reports the archive's records behind the stream's last one. The stream was read later, and
// so at least to the archive's tip.
func (s *shard) drain() error {
	if !s.archived || s.stopped != "" {
		return nil
	}
	if s.pull == nil {
		if err := s.next(); err != nil {
			return err
		}
	}
	for s.some {
		s.alone()
		if err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) judge(s *shard) {
	const unchecked, newer = "%s: %d records: %s", "%s: %d records, the first arrived %s"
	if n := s.tail.Before; n > 0 {
		c.report.Unchecked.Add(n, c.limit, unchecked, s.id, n, "in links that begin too early")
	}
	if n := s.tail.Records - s.seen; n > 0 {
		reason := "the stream removed them meanwhile"
		switch {
		case s.stopped != "":
			reason = s.stopped
		case !s.listed:
			reason = "the stream does not list the shard any more"
		}
		c.report.Unchecked.Add(n, c.limit, unchecked, s.id, n, reason)
	}
	if n := s.tail.Dropped; s.whole() && s.absent < n {
		c.report.Differ.Add(1, c.limit, "%s: its links say that %d records were dropped, and the "+
			"stream has %d records that they lack", s.id, n, s.absent)
	}
	if s.newer == 0 {
		return
	}
	since := s.first.UTC().Format(time.RFC3339Nano)
	if c.lacks(s) {
		c.report.Shards.Add(1, c.limit, newer+"; the archive has later ones of other shards",
			s.id, s.newer, since)
		return
	}
	c.report.Behind.Add(s.newer, c.limit, newer, s.id, s.newer, since)
}

// whole reports whether the stream had every record of the tail.
func (s *shard) whole() bool {
	return s.listed && !s.cut && s.stopped == "" && s.of.since.IsZero()
}

// lateCommit is the time for which a worker may hold the first records of a shard while those of
// other shards are archived.
const lateCommit = 10 * time.Minute

// lacks reports whether the archive lacks a shard that it should have. A shard may be behind as a
// whole: its parents are not archived to their ends, or its first commit is not due. So later
// records of other shards must be archived, and much later ones while these are behind as well: a
// fleet is then at work.
func (c *comparison) lacks(s *shard) bool {
	if s.archived || slices.ContainsFunc(s.parents, c.unfinished) {
		return false
	}
	first := s.first
	for _, other := range c.shards {
		if other.archived && other.newer > 0 {
			first = s.first.Add(lateCommit)
		}
	}
	return !c.newest.Before(first)
}

// unfinished reports whether a parent keeps its children out of the archive: the archive has not
// reached its end.
func (c *comparison) unfinished(id runnel.ShardID) bool {
	s := c.shards[id]
	switch {
	case s == nil || !s.listed:
		return false
	case s.archived:
		return s.tail.End != runnel.End()
	}
	return s.newer > 0 || slices.ContainsFunc(s.parents, c.unfinished)
}

func (c *comparison) close() {
	for _, s := range c.shards {
		if s.close != nil {
			s.close()
		}
	}
}
