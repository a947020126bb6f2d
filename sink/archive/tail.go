package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/runnel-stream/runnel"
)

// Tail is the last part of a shard's archive, as a verification found it. It begins at the first
// link that has records, and none that arrived before VerifyOptions.Since. Links that cannot be
// read are not in it.
type Tail struct {
	Stream  Stream         // with ShardID, the name of the chain
	ShardID runnel.ShardID // the shard's id
	Parents []Parent       // as the first link names them
	// Start and End are the positions between which the tail lies. Start is runnel.Start for the
	// whole chain, and End is runnel.End for a shard that is archived to its end.
	Start, End runnel.Position
	Before     int64 // records up to Start
	Records    int64 // records of the tail
	// Mapped is true if a link of the tail was written with Config.Map, and Dropped counts the
	// records that Map dropped from the tail.
	Mapped  bool
	Dropped int64

	last runnel.Position // the previous end of the link that ends at Start
}

// extend adds a link's records to the tail. Before the tail's first record, it begins anew behind a
// link with an old record: arrival times do not step back.
func (t *Tail) extend(link *Link, count int64, old bool) {
	if t.End.Less(link.End) {
		t.End = link.End
	}
	if old && t.Records == 0 {
		t.Before += count
		t.Start, t.last = link.End, link.Previous
		t.Mapped, t.Dropped = false, 0
		return
	}
	t.Records += count
	t.Mapped = t.Mapped || link.Mapped
	t.Dropped += link.Dropped
}

// TailStates returns the reader's state at the tail's start: one state, or at the beginning of a
// shard those at the ends of its archived parents. An error that wraps ErrUnusableLink names a link
// that a state needs, and that is missing or damaged.
func (r *Reader) TailStates(ctx context.Context, tail Tail) ([][]byte, error) {
	c := chain{store: r.store, stream: tail.Stream, shard: tail.ShardID}
	if tail.Start != runnel.Start() {
		state, err := c.stateBehind(ctx, tail.last)
		return [][]byte{state}, err
	}
	var states [][]byte
	for _, parent := range tail.Parents {
		if parent.None {
			continue
		}
		c.shard = parent.ShardID
		state, err := c.stateBehind(ctx, parent.Link)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// stateBehind returns the reader's state at the end of the link that follows previous.
func (c chain) stateBehind(ctx context.Context, previous runnel.Position) ([]byte, error) {
	link, err := c.link(ctx, previous)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	state, _, err := c.fold(ctx, tip{end: link.End, last: link})
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return state, nil
}

// TailRecords yields the tail's records in order, also behind a link that is missing. It leaves out
// objects that cannot be read, and the rest of one that is damaged: the verification has reported
// them. It reads ahead with the memory of one of several readings at once. An error is the last
// item.
func (r *Reader) TailRecords(
	ctx context.Context, tail Tail, readings int,
) iter.Seq2[runnel.Record, error] {
	return func(yield func(runnel.Record, error) bool) {
		store := newAhead(ctx, r.store, wholeRoom.split(readings))
		defer store.close()
		c := chain{store: store, stream: tail.Stream, shard: tail.ShardID}
		for previous, err := range c.names(ctx, store, tail.Start) {
			var opened *object
			if err == nil && !previous.Less(tail.End) {
				return
			}
			if err == nil {
				opened, err = c.object(ctx, previous)
			}
			if isDamage(err) {
				continue
			}
			one := func(yield func(*object, error) bool) { yield(opened, err) }
			for record, err := range recordsOf(one) {
				if isDamage(err) {
					break
				}
				if !yield(record, err) || err != nil {
					return
				}
			}
		}
	}
}

// isDamage reports whether an error is that of an object's contents, or of a missing object.
func isDamage(err error) bool {
	return errors.Is(err, ErrUnusableLink) || errors.Is(err, ErrContentsDiffer) ||
		errors.Is(err, ErrObjectNotFound)
}

// names yields the previous ends of the links in the shard's folder, from one on, and has the links
// read ahead.
func (c chain) names(
	ctx context.Context, store *ahead, from runnel.Position,
) iter.Seq2[runnel.Position, error] {
	return func(yield func(runnel.Position, error) bool) {
		after := from.SortText()
		for more := true; more; {
			names, others, err := c.store.After(ctx, c.folder(), after)
			if err != nil {
				yield(runnel.Position{}, fmt.Errorf("archive: %w", err))
				return
			}
			var ends []runnel.Position
			for _, base := range names {
				if previous, err := parseObject(base); err == nil {
					ends = append(ends, previous)
					store.expect(c.name(previous))
				}
			}
			for _, previous := range ends {
				if !yield(previous, nil) {
					return
				}
			}
			if more = others && len(names) > 0 && names[len(names)-1] > after; more {
				after = names[len(names)-1]
			}
		}
	}
}
