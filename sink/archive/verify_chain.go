package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
)

// stream verifies a stream's shards, parents before children.
func (v *verification) stream(ctx context.Context, stream Stream) error {
	listing, err := v.store.List(ctx, stream.String())
	if err != nil {
		return err
	}
	for _, base := range listing.Objects {
		v.stray(stream.String(), base)
	}
	var chains []Chain
	for _, base := range listing.Folders {
		if !isName(base) {
			v.report.Others.add(v.options.Examples, "%s/%s/", stream, base)
			continue
		}
		chains = append(chains, Chain{Stream: stream, ShardID: runnel.ShardID(base)})
	}
	if err := v.begin(ctx, chains); err != nil {
		return err
	}
	if err := sortChains(chains); err != nil {
		v.report.Parents.add(v.options.Examples, "%s: %v", stream, err)
	}
	if v.ledger != nil {
		v.ledger.lineage = newLineage(chains)
	}
	links := v.report.Links
	next, stop := iter.Pull(v.listings(ctx, chains))
	defer stop()
	for i := range chains {
		if err := v.parents(ctx, &chains[i]); err != nil {
			return err
		}
		folder, _ := next()
		if folder.err != nil {
			return folder.err
		}
		if err := v.shard(ctx, &chains[i], i, folder.Listing); err != nil {
			return err
		}
	}
	if v.report.Links == links {
		v.report.Nothing.add(v.options.Examples, "%s has no link: nothing of it was archived, or "+
			"everything was removed", stream)
	}
	return nil
}

// begin reads the first link of each shard, and sets the parents that it names. Its faults are
// reported with the shard's other objects.
func (v *verification) begin(ctx context.Context, chains []Chain) error {
	var group errgroup.Group
	group.SetLimit(parallelReads)
	for i := range chains {
		group.Go(func() error {
			_, err := chains[i].begin(ctx, v.store)
			if errors.Is(err, ErrUnusableLink) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// listedFolder is the listing of a shard's folder, or the error of it.
type listedFolder struct {
	Listing
	err error
}

// listings yields the listing of each shard's folder. It lists the next folder while one is read,
// and has the links read ahead.
func (v *verification) listings(ctx context.Context, chains []Chain) iter.Seq[listedFolder] {
	return func(yield func(listedFolder) bool) {
		ctx, cancel := context.WithCancel(ctx)
		ahead := make(chan listedFolder)
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		group.Go(func() {
			for i := range chains {
				c := chain{store: v.store, stream: chains[i].Stream, shard: chains[i].ShardID}
				listing, err := c.store.List(ctx, c.folder())
				for _, base := range listing.Objects {
					if _, err := parseObject(base); err == nil {
						v.store.expect(c.folder() + "/" + base)
					}
				}
				select {
				case ahead <- listedFolder{listing, err}:
				case <-ctx.Done():
					return
				}
			}
		})
		for range chains {
			if !yield(<-ahead) {
				return
			}
		}
	}
}

// parents checks the parents that a shard's first link names.
func (v *verification) parents(ctx context.Context, shard *Chain) error {
	for _, parent := range shard.Parents {
		at := parent.Link
		if parent.None {
			at = runnel.Start()
		}
		c := chain{store: v.store, stream: shard.Stream, shard: parent.ShardID}
		link, err := c.link(ctx, at)
		found := err == nil
		switch {
		case err != nil && !errors.Is(err, ErrObjectNotFound) && !errors.Is(err, ErrUnusableLink):
			return err
		case parent.None && found:
			v.report.Parents.add(v.options.Examples,
				"%s says that %s has no chain, but it has one", shard.ShardID, parent.ShardID)
		case !parent.None && !found:
			v.report.Parents.add(v.options.Examples,
				"%s follows the end of %s, which is not there: %v", shard.ShardID,
				parent.ShardID, err)
		case !parent.None && link.End != runnel.End():
			v.report.Parents.add(v.options.Examples, "%s follows %s, whose link %s does not end it",
				shard.ShardID, parent.ShardID, c.name(at))
		}
	}
	return nil
}

// shardCheck holds the verification of one shard.
type shardCheck struct {
	of       *verification
	chain    chain
	number   int             // the shard's place among the stream's
	end      runnel.Position // the position that the links so far reach
	lost     bool            // the end is not known: a link could not be read
	kept     kept            // how the links so far store the reader's state
	last     runnel.Position // the furthest record so far
	suspects map[runnel.Position]int
	bases    []string
	tail     Tail
}

// shard verifies one shard: every object in its folder, in the order of their names, which is that
// of their previous ends.
func (v *verification) shard(
	ctx context.Context, shard *Chain, number int, listing Listing,
) error {
	s := &shardCheck{
		of: v, number: number, suspects: map[runnel.Position]int{},
		chain: chain{store: v.store, stream: shard.Stream, shard: shard.ShardID},
		tail:  Tail{Stream: shard.Stream, ShardID: shard.ShardID, Parents: shard.Parents},
	}
	for _, base := range listing.Folders {
		v.report.Others.add(v.options.Examples, "%s/%s/", s.chain.folder(), base)
	}
	for _, base := range listing.Objects {
		previous, err := parseObject(base)
		if err != nil {
			v.stray(s.chain.folder(), base)
			continue
		}
		s.bases = append(s.bases, base)
		if err := s.object(ctx, previous); err != nil {
			return err
		}
	}
	if len(s.bases) > 0 {
		v.report.Shards++
		v.report.Tails = append(v.report.Tails, s.tail)
	}
	if s.end == runnel.End() {
		v.report.Ended++
	}
	if len(s.suspects) > 0 {
		return s.judge(ctx)
	}
	return nil
}

// object verifies an object: its place in the chain, and its records.
func (s *shardCheck) object(ctx context.Context, previous runnel.Position) error {
	report, name := s.of.report, s.chain.name(previous)
	report.Links++
	object, err := openObject(ctx, s.chain.store, name)
	if err == nil {
		if err = s.chain.check(object.link, previous); err != nil {
			err = errors.Join(err, object.close())
		}
	}
	// ErrObjectNotFound: as behind a dangling symlink.
	if errors.Is(err, ErrUnusableLink) || errors.Is(err, ErrObjectNotFound) {
		report.Damaged.add(s.of.options.Examples, "%s: %v", name, err)
		s.lost = true
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.state(object.link); err != nil {
		report.Damaged.add(s.of.options.Examples, "%s: %v", name, err)
	}
	s.place(object.link, name)
	err = s.contents(object)
	switch {
	case object.body.err != nil:
		return errors.Join(err, object.close())
	case err != nil:
		report.Damaged.add(s.of.options.Examples, "%s: %v", name, err)
	}
	return object.close()
}

// state checks that the reader's state at the link can be computed from the links before.
func (s *shardCheck) state(link *Link) error {
	if s.kept.add(link); link.Change == nil {
		return nil
	}
	if s.lost || s.end.Less(link.Previous) { // the whole state may be in a link that is lost
		s.kept.some, s.kept.base = true, link.Change.Base
	}
	if !s.kept.some || s.kept.base != link.Change.Base {
		return fmt.Errorf("%w: its state is based on the link after %s, which does not hold the "+
			"last whole one", ErrUnusableLink, link.Change.Base)
	}
	return checkChange(link)
}

// place checks that the link goes on where the one before it ended.
func (s *shardCheck) place(link *Link, name string) {
	switch order := link.Previous.Compare(s.end); {
	case s.lost: // the cause is reported already
	case order > 0:
		s.of.report.Missing.add(s.of.options.Examples,
			"%s: none goes on after %s; the next one is %s", s.chain.folder(), s.end, name)
	case order < 0:
		s.of.report.Overlaps.add(s.of.options.Examples,
			"%s begins after %s, but the one before it ends at %s", name, link.Previous, s.end)
	}
	s.lost = false
	if s.end.Less(link.End) {
		s.end = link.End
	}
	s.gap(link, name)
}

// gap lists a link's gap, which lies between the link's two ends.
func (s *shardCheck) gap(link *Link, name string) {
	gap := link.Gap
	if gap == nil {
		return
	}
	s.of.report.Gaps.add(s.of.options.Examples, "%s: nothing between %s and %s: %s", name,
		gap.After, gap.Before, gap.Reason)
	if gap.After != link.Previous || !gap.After.Less(gap.Before) || link.End.Less(gap.Before) {
		s.of.report.Damaged.add(s.of.options.Examples,
			"%s: its gap between %s and %s is not at its beginning, which is %s",
			name, gap.After, gap.Before, link.Previous)
	}
}

// contents reads the records and checks each one's place.
func (s *shardCheck) contents(object *object) error {
	link, report := object.link, s.of.report
	var first, newest runnel.Record
	var count int64
	old := false
	err := object.each(func(record runnel.Record) bool {
		old = old || record.ArrivalTime.Before(s.of.options.Since)
		if count++; count == 1 {
			first = record
		}
		newest = record
		at := record.Position
		inGap := link.Gap != nil && at.Less(link.Gap.Before)
		if record.ShardID != s.chain.shard || !link.Previous.Less(at) || link.End.Less(at) ||
			inGap {
			report.Misplaced.add(s.of.options.Examples, "%s: a record of %s at %s", object.name,
				record.ShardID, at)
		}
		if s.last.Less(at) {
			s.last = at
			s.see(&record, true)
		} else {
			s.suspects[at] = 0
		}
		return true
	})
	report.Records += count
	report.Bytes += link.Bytes
	s.tail.extend(link, count, old)
	if err != nil || count == 0 {
		return err
	}
	if report.FirstArrival.IsZero() || first.ArrivalTime.Before(report.FirstArrival) {
		report.FirstArrival = first.ArrivalTime
	}
	if report.LastArrival.Before(newest.ArrivalTime) {
		report.LastArrival = newest.ArrivalTime
	}
	if !first.ArrivalTime.Equal(link.FirstArrival) || !newest.ArrivalTime.Equal(link.LastArrival) {
		return errors.New("the records' arrival times are not those that the link says")
	}
	return nil
}

// see passes a record to the comparison with the source.
func (s *shardCheck) see(record *runnel.Record, placed bool) {
	if s.of.ledger != nil {
		id, ok := s.of.options.Identify(record)
		s.of.ledger.see(s.number, id, ok, placed, record.Position)
	}
}

// judge reads a shard again if records came behind later ones. Such a record is a double if its
// position occurs elsewhere as well; otherwise it is out of order.
func (s *shardCheck) judge(ctx context.Context) error {
	if err := s.suspected(ctx, func(record runnel.Record, _ string) {
		s.suspects[record.Position]++
	}); err != nil {
		return err
	}
	seen := map[runnel.Position]string{}
	return s.suspected(ctx, func(record runnel.Record, name string) {
		at := record.Position
		if s.suspects[at] == 1 {
			s.of.report.Disorder.add(s.of.options.Examples, "%s: the record at %s stands behind a "+
				"later one", name, at)
			s.see(&record, false)
			return
		}
		if before, again := seen[at]; again {
			s.of.report.Twice.add(s.of.options.Examples,
				"%s: the record at %s stands in %s as well", name, at, before)
		} else {
			seen[at] = name
		}
	})
}

// suspected calls visit with every record at a suspicious position.
func (s *shardCheck) suspected(
	ctx context.Context, visit func(record runnel.Record, name string),
) error {
	for _, base := range s.bases {
		name := s.chain.folder() + "/" + base
		object, err := openObject(ctx, s.chain.store, name)
		if errors.Is(err, ErrUnusableLink) || errors.Is(err, ErrObjectNotFound) {
			continue // reported on the first reading
		}
		if err != nil {
			return err
		}
		// Faults of the object were reported on the first reading.
		_ = object.each(func(record runnel.Record) bool {
			if _, suspect := s.suspects[record.Position]; suspect {
				visit(record, name)
			}
			return true
		})
		if err := errors.Join(object.body.err, object.close()); err != nil {
			return err
		}
	}
	return nil
}
