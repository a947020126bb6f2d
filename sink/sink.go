// Package sink is the contract between the consumer fleet and a sink that takes each record
// exactly once.
//
// A sink keeps, in one atomic commit, the effects of records and the position that they reach:
// the sink is the truth, the lease row's checkpoint only says where to look. So two workers
// that both believe that they hold a shard (a paused one and its successor) cannot both
// commit: the second one's commit fails on the first one's, it adopts what stands there and
// reads again from that position. Leases are for progress, the sink's compare-and-swap is the
// fence.
package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
)

// Shard is what a worker knows of a shard when it opens it.
type Shard struct {
	Stream  string
	Created time.Time // the stream's creation, in milliseconds: a recreated stream is another
	ID      runnel.ShardID
	Parents []runnel.ShardID // none, one (a split's child) or two (a merge's)
	// Checkpoint and Token are what the lease row holds: where an earlier worker's last known
	// commit ended, and the token that the sink returned with it. Start and "" if none.
	Checkpoint runnel.Position
	Token      string
}

// Sink opens shards. It is safe for concurrent use by the shards of a worker.
type Sink interface {
	// Open finds the sink's last commit for the shard, wherever the checkpoint points, and
	// returns a writer that goes on from there. It may return a *ParentError for a shard with a
	// parent that it has begun and not ended.
	Open(ctx context.Context, shard Shard) (Writer, error)
}

// Batch is the next stretch of a shard's records.
type Batch struct {
	// Records are those to be taken, in order. None, and an unchanged Through, let the sink
	// commit by age.
	Records []runnel.Record
	// Through is the position that the batch reaches, at or after the last record's: records
	// that were filtered out advance it, too. It is the last one of a Kinesis record, never
	// inside an aggregate.
	Through runnel.Position
	// State is the state of the reader at Through; see there. A batch with an unchanged Through has
	// a state as well, and it counts: one without records before Writer.End is how a shard without
	// records hands on the state of its parents.
	State State
	// Delta is the change of the state since the batch that the writer took before. That of the
	// first batch, after Open and after a *MovedError, is the change since Committed.State. Where
	// that state was nil it is the change since nothing. It is an aggregate.Delta's bytes, as small
	// as the batch. A sink may keep it in the place of the state,
	// if it can make the state of the changes; most need not look at it. Nil: the change is not
	// known, and a commit with this batch needs State.
	Delta []byte
	// Gap is set if records before this batch may be missing: the stream removed them before
	// they were read. The sink keeps the gap in the commit that holds this batch. Nothing waits in
	// the writer then: the caller flushes before a gap, since the state there is lost with the next
	// Write. Nil: there is no gap between this batch and the one before it.
	Gap *Gap
}

// State gives the state of a reader: all that it has to know to go on, such as which units it has
// seen. The bytes are opaque to the sink, which keeps them in the commit that ends where the batch
// did; neither side changes them. Call Bytes when you commit, not for every batch, since a large
// state takes a tenth of a second. Once the next Write has begun it is too late: it may then give a
// newer state. Nil is a state, too, and the same as an empty one.
type State func() []byte

// Bytes returns the state.
func (s State) Bytes() []byte {
	if s == nil {
		return nil
	}
	return s()
}

// Gap is a stretch of a shard that the stream removed, by its retention period, before the
// reader came to it. It may have held records. Their number is unknown, since sequence numbers
// are sparse.
//
// A gap begins after the position After, which is runnel.Start at the shard's beginning, and ends
// in one of three places:
//
//   - before the batch's records: Before is the position of the first Kinesis record that the
//     reader found;
//   - at the tip, where nothing follows yet: the batch has no record, its Through is a position
//     behind After that no record has, and Before is the same position;
//   - at the shard's end, if the shard is closed or the stream no longer has it: the batch has no
//     record and an unchanged Through, Before is runnel.End, and Writer.End is the next call.
type Gap struct {
	After, Before runnel.Position
	// Reason says in one clause how the reader found out.
	Reason string
}

func (g *Gap) String() string {
	return fmt.Sprintf("nothing between %s and %s: %s", g.After, g.Before, g.Reason)
}

// Committed is the end of what stands in the sink.
type Committed struct {
	// End is the last position whose effects stand; runnel.Start if nothing stands yet, and
	// runnel.End once the shard's end has been committed.
	End runnel.Position
	// Token helps the next Open to find this commit; it is kept in the lease row.
	Token string
	// State is the bytes of Batch.State of the batch that reached End, or, at runnel.End, for the
	// last one. It is needed where reading begins: in Committed after Open, and in MovedError.To.
	// After a commit of its own a writer may leave it out: the caller has given it.
	State []byte
	// Parents holds, while End is runnel.Start, the states that the shard's parents ended with
	// in this sink, in the order of Shard.Parents; nil for one that has not ended in it.
	Parents [][]byte
}

// Writer takes the records of one shard in order. It is used by one goroutine at a time.
//
// Every method that commits may return a *MovedError: another writer committed first. The
// caller discards what it has read and goes on reading after MovedError.To.End; the writer has
// adopted that position and remains usable. After any other error the writer is closed and the
// shard opened again.
type Writer interface {
	// Committed returns the last commit that this writer knows of. Reading starts after it.
	Committed() Committed
	// Write takes the next batch. It may buffer: the commit that it returns then lags behind
	// Batch.Through. A commit ends where a batch ended, since only there the reader's state is
	// known, and it holds that batch's state. Progress without a record is committed, too, when
	// its age is due: what stood between may have been dropped by the reader, and its state has
	// moved. Where Through stands still there is no progress, and nothing is committed. The
	// writer keeps the records' data until it has committed.
	Write(ctx context.Context, batch Batch) (Committed, error)
	// Flush commits everything that was written, progress without a record included.
	Flush(ctx context.Context) (Committed, error)
	// End commits everything and the shard's end, with the state of the last batch, or, if this
	// writer has taken none, that of the commit before: nothing follows.
	End(ctx context.Context) (Committed, error)
	// Close releases the writer and commits nothing.
	Close() error
}

// MovedError says that another writer's commit stands where ours was to stand.
type MovedError struct {
	To Committed
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("another worker committed first: the shard goes on after %s", e.To.End)
}

// ParentError says that a shard cannot be opened before one of its parents is ended. The caller
// ends the parent: by reading the rest of it, or, if the stream no longer has that shard, by a
// batch with a Gap up to runnel.End.
type ParentError struct {
	Parent runnel.ShardID
	End    runnel.Position // where the sink's last commit for the parent ends
}

func (e *ParentError) Error() string {
	return fmt.Sprintf("the parent %s ends at %s in the sink, which is not the shard's end",
		e.Parent, e.End)
}

// ErrOrder is returned by Writer.Write for records that are not in order, or not of the shard:
// a position at or before what was written already, or beyond Through, and for a Through before
// what was written already, or a Gap that does not begin where the batch before it ended, or
// ends behind one of the batch's records. A sink may return it for a Gap behind batches that wait
// for a Flush. Nothing of the call stands.
var ErrOrder = errors.New("records out of order")

// Equal reports whether two commits are the same, states included.
func (c Committed) Equal(other Committed) bool {
	return c.End == other.End && c.Token == other.Token && bytes.Equal(c.State, other.State) &&
		slices.EqualFunc(c.Parents, other.Parents, bytes.Equal)
}
