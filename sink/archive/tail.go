package archive

import (
	"context"
	"fmt"
	"iter"

	"github.com/runnel-stream/runnel"
)

// Tail is the last part of a shard's archive, as a verification found it: the links behind the last
// one with a record that arrived before VerifyOptions.Since.
type Tail struct {
	Stream  Stream         // with ShardID, the name of the chain
	ShardID runnel.ShardID // the shard's id
	Parents []Parent       // as the first link names them
	// Start and End are the positions between which the tail lies. Start is runnel.Start for the
	// whole chain, and End is runnel.End for a shard that is archived to its end.
	Start, End runnel.Position
	Before     int64 // records up to Start
	Records    int64 // records of the tail
	// Behind counts the records of links behind a place where the chain is broken. The tail ends
	// before that place.
	Behind int64
	// Mapped is true if a link of the tail was written with Config.Map, and Dropped counts the
	// records that Map dropped from the tail.
	Mapped  bool
	Dropped int64

	last runnel.Position // the previous end of the link that ends at Start
}

// extend adds a link's records to the tail, which begins anew behind a link with an old record.
func (t *Tail) extend(link *Link, count int64, old, broken bool) {
	switch {
	case broken:
		t.Behind += count
	case old:
		t.Before += t.Records + count
		t.Records, t.Start, t.End, t.last = 0, link.End, link.End, link.Previous
		t.Mapped, t.Dropped = false, 0
	default:
		t.Records += count
		t.End = link.End
		t.Mapped = t.Mapped || link.Mapped
		t.Dropped += link.Dropped
	}
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

// TailRecords yields the tail's records in order. It reads ahead with the memory of one of several
// readings at once. An error is the last item.
func (r *Reader) TailRecords(
	ctx context.Context, tail Tail, readings int,
) iter.Seq2[runnel.Record, error] {
	shard := Chain{Stream: tail.Stream, ShardID: tail.ShardID}
	return recordsOf(r.objectsOf(ctx, shard, span{tail.Start, tail.End},
		wholeRoom.split(readings), openObject))
}
