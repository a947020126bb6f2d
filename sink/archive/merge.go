package archive

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Part is the part of a stream's archive that Merge reads: for each shard its links up to an end.
type Part struct {
	Shards []ShardPart // parents before children
}

// ShardPart is the part of one shard.
type ShardPart struct {
	ShardID runnel.ShardID   // the shard
	Parents []runnel.ShardID // that the part has
	End     runnel.Position  // of its last link
}

// Part returns the part that is archived now. An error that wraps ErrUnusableLink names a link that
// is missing or damaged: a shard's first or last one, or the end of a parent. Merge finds the
// others.
func (r *Reader) Part(ctx context.Context, stream Stream) (Part, error) {
	chains, err := r.Shards(ctx, stream)
	if err != nil {
		return Part{}, err
	}
	part := Part{Shards: make([]ShardPart, len(chains))}
	var group errgroup.Group
	group.SetLimit(parallelReads)
	for i, shard := range chains {
		part.Shards[i].ShardID = shard.ShardID
		for _, parent := range shard.Parents {
			if !parent.None {
				part.Shards[i].Parents = append(part.Shards[i].Parents, parent.ShardID)
			}
		}
		group.Go(func() (err error) {
			c := chain{store: r.store, stream: stream, shard: shard.ShardID}
			part.Shards[i].End, err = c.reached(ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Part{}, fmt.Errorf("archive: %w", err)
	}
	ends := make(map[runnel.ShardID]runnel.Position, len(chains))
	for _, shard := range part.Shards {
		ends[shard.ShardID] = shard.End
	}
	for _, shard := range chains {
		for _, parent := range shard.Parents {
			if !parent.None && ends[parent.ShardID] != runnel.End() {
				c := chain{store: r.store, stream: stream, shard: parent.ShardID}
				return Part{}, fmt.Errorf("archive: %w: %s is missing, the last link of a parent "+
					"of %s", ErrUnusableLink, c.name(parent.Link), shard.ShardID)
			}
		}
	}
	return part, nil
}

// reached returns the end of the chain, as a reader finds it by the last name.
func (c chain) reached(ctx context.Context) (runnel.Position, error) {
	at, _, err := c.furthest(ctx)
	for err == nil && at != runnel.End() {
		var next *Link
		next, err = c.link(ctx, at)
		if errors.Is(err, ErrObjectNotFound) {
			return at, nil
		}
		if err == nil {
			at = next.End
		}
	}
	return at, err
}

// MergeOptions select the records that Merge yields.
type MergeOptions struct {
	// From and Until bound the records' arrival times: From itself belongs to them, Until does not.
	// Default: none.
	From, Until time.Time
	// OnGap is called for each gap that is passed. Default: none.
	OnGap func(runnel.ShardID, sink.Gap)
}

func (o MergeOptions) has(record *runnel.Record) bool {
	at := record.ArrivalTime
	return !at.Before(o.From) && (o.Until.IsZero() || at.Before(o.Until))
}

// Merge yields the records of a part. The open shards are merged by the records' arrival times, and
// records of one time by shard and position; a shard begins when its parents have ended. So the
// order is the same at each call, and one key's records are in their order. A link is checked
// before its first record is yielded. An error is the last item.
func (r *Reader) Merge(
	ctx context.Context, stream Stream, part Part, options MergeOptions,
) iter.Seq2[runnel.Record, error] {
	return func(yield func(runnel.Record, error) bool) {
		m := &merge{
			ctx: ctx, reader: r, stream: stream, options: options,
			room:  wholeRoom.split(len(part.Shards)),
			waits: map[runnel.ShardID]int{}, children: map[runnel.ShardID][]*source{},
		}
		defer m.close()
		err := m.run(part, func(record runnel.Record) bool { return yield(record, nil) })
		if err != nil {
			yield(runnel.Record{}, fmt.Errorf("archive: %w", err))
		}
	}
}

// merge is the state of one Merge.
type merge struct {
	ctx      context.Context //nolint:containedctx // of the one call
	reader   *Reader
	stream   Stream
	options  MergeOptions
	room     room
	waits    map[runnel.ShardID]int // unfinished parents
	children map[runnel.ShardID][]*source
	open     sources
}

// source is a shard under way, with its next record.
type source struct {
	part ShardPart
	head runnel.Record
	next func() (runnel.Record, error, bool)
	stop func()
}

func (m *merge) run(part Part, yield func(runnel.Record) bool) error {
	var ready []*source
	for _, shard := range part.Shards {
		s := &source{part: shard}
		m.waits[shard.ShardID] = len(shard.Parents)
		for _, parent := range shard.Parents {
			m.children[parent] = append(m.children[parent], s)
		}
		if len(shard.Parents) == 0 {
			ready = append(ready, s)
		}
	}
	for _, s := range ready {
		if err := m.begin(s); err != nil {
			return err
		}
	}
	for len(m.open) > 0 {
		s := m.open[0]
		if !yield(s.head) {
			return nil
		}
		more, err := s.advance()
		switch {
		case err != nil:
			return err
		case more:
			heap.Fix(&m.open, 0)
		default:
			heap.Pop(&m.open)
			if err := m.ended(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin adds a shard to the open ones, or ends it if it has no record.
func (m *merge) begin(s *source) error {
	s.next, s.stop = iter.Pull2(m.reader.records(m.ctx, m.stream, s.part, m.options, m.room))
	more, err := s.advance()
	switch {
	case err != nil:
		s.stop()
		return err
	case !more:
		return m.ended(s)
	}
	heap.Push(&m.open, s)
	return nil
}

func (s *source) advance() (more bool, err error) {
	record, err, more := s.next()
	s.head = record
	return more, err
}

// ended begins the children whose parents have all ended.
func (m *merge) ended(s *source) error {
	s.stop()
	for _, child := range m.children[s.part.ShardID] {
		if m.waits[child.part.ShardID]--; m.waits[child.part.ShardID] == 0 {
			if err := m.begin(child); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merge) close() {
	for _, s := range m.open {
		s.stop()
	}
}

// sources is a heap by the next records.
type sources []*source

func (s sources) Len() int      { return len(s) }
func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(x any)   { *s = append(*s, x.(*source)) }

func (s *sources) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// Less compares arrival times, and then shards: a shard has one record here.
func (s sources) Less(i, j int) bool {
	a, b := s[i], s[j]
	return cmp.Or(a.head.ArrivalTime.Compare(b.head.ArrivalTime),
		cmp.Compare(a.part.ShardID, b.part.ShardID)) < 0
}

// records yields the records of a shard's part.
func (r *Reader) records(
	ctx context.Context, stream Stream, part ShardPart, options MergeOptions, room room,
) iter.Seq2[runnel.Record, error] {
	return func(yield func(runnel.Record, error) bool) {
		shard, at := Chain{Stream: stream, ShardID: part.ShardID}, runnel.Start()
		open := func(ctx context.Context, store Store, name string) (*object, error) {
			return openCopied(ctx, store, name, room.bytes)
		}
		for object, err := range r.objectsOf(ctx, shard, span{at, part.End}, room, open) {
			if err != nil {
				yield(runnel.Record{}, err)
				return
			}
			at = object.link.End
			more, err := r.checked(ctx, object, options, func(record runnel.Record) bool {
				return yield(record, nil)
			})
			if err != nil {
				yield(runnel.Record{}, fmt.Errorf("object %s: %w", object.name, err))
			}
			if err != nil || !more {
				return
			}
		}
		if at != part.End {
			c := chain{stream: stream, shard: part.ShardID}
			yield(runnel.Record{}, fmt.Errorf("%w: %s is missing", ErrUnusableLink, c.name(at)))
		}
	}
}

// stepBack is how far the arrival times of a shard may step back: a link whose last record came
// longer before MergeOptions.From is passed over.
const stepBack = time.Hour

// checked yields the records of an object, after it has read it to its end once. It closes the
// object.
func (r *Reader) checked(
	ctx context.Context, o *object, options MergeOptions, yield func(runnel.Record) bool,
) (more bool, err error) {
	link := o.link
	if link.Gap != nil && options.OnGap != nil {
		options.OnGap(link.ShardID, *link.Gap)
	}
	if link.Count == 0 && link.Bytes == 0 ||
		hasTime(link.LastArrival) && link.LastArrival.Before(options.From.Add(-stepBack)) {
		return true, o.close()
	}
	err = o.each(func(runnel.Record) bool { return true })
	if err := errors.Join(err, o.close()); err != nil {
		return false, err
	}
	var again *object
	if small := o.body.copy; small != nil {
		again, err = newObject(o.name, &body{ReadCloser: io.NopCloser(small)})
	} else {
		again, err = openObject(ctx, r.store, o.name)
	}
	if err != nil {
		return false, err
	}
	more = true
	err = again.each(func(record runnel.Record) bool {
		if options.has(&record) {
			more = yield(record)
		}
		return more
	})
	return more, errors.Join(err, again.close())
}
