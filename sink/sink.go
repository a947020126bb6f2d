// Package sink is the contract between the consumer fleet and a sink that takes each record exactly
// once.
//
// A sink writes the effects of records and the position that they reach in one atomic commit. The
// sink is the truth; the checkpoint in the lease row only says where to look. Two workers may both
// believe that they hold a shard, for example a paused worker and its successor. They cannot both
// commit: the second commit fails because of the first. The second worker then adopts the position
// of the first commit and reads again from there. So leases serve progress, and the sink's
// compare-and-swap is the fence.
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

// Shard is the description of a shard that a worker passes to Sink.Open.
type Shard struct {
	Stream  string           // the stream's name
	Created time.Time        // the stream's creation, in milliseconds
	ID      runnel.ShardID   // the shard's id
	Parents []runnel.ShardID // none, one (a split's child) or two (a merge's)
	// Checkpoint and Token come from the lease row: the end of an earlier worker's last known
	// commit, and the token that the sink returned with it. They are Start and "" if there is none.
	Checkpoint runnel.Position
	Token      string
}

// Sink opens shards. It is safe for concurrent use by the shards of a worker.
type Sink interface {
	// Open finds the sink's last commit for the shard, wherever the checkpoint points, and
	// returns a writer that goes on from there. It may return a *ParentError for a shard of which
	// nothing is committed and that has a parent which the sink has not ended.
	Open(ctx context.Context, shard Shard) (Writer, error)
}

// Lister is a Sink whose data may go back, as that of a database that is restored from a backup. A
// worker then has to read shards again whose ends are in the lease table.
type Lister interface {
	Sink
	// Unended returns the shards of a stream that the sink has begun and not ended.
	Unended(ctx context.Context, stream string, created time.Time) ([]runnel.ShardID, error)
}

// Batch is the next run of a shard's records.
type Batch struct {
	// Records are the records to write, in order. An empty Records with an unchanged Through gives
	// the sink a chance to commit by age.
	Records []runnel.Record
	// Through is the position that the batch reaches. It is at or after the position of the last
	// record, because filtered records advance it, too. It is the last position of a Kinesis
	// record, never one inside an aggregate.
	Through runnel.Position
	// State is the reader's state at Through; see the type State. A batch with an unchanged Through
	// has a state as well, and that state counts: a shard without records hands on the state of its
	// parents by such a batch before Writer.End.
	State State
	// Delta is the change of the state since the batch that the writer took before. For the first
	// batch after Open or after a *MovedError, it is the change since Committed.State, or since an
	// empty state if Committed.State was nil. Its bytes are those of an aggregate.Delta, and they
	// are as small as the batch. A sink that can build the state from the changes may store Delta
	// instead of the state; most sinks can ignore it. Nil means that the change is not known: a
	// commit with this batch needs State.
	Delta []byte
	// Gap is set if records before this batch may be missing because the stream removed them before
	// they were read. The sink keeps the gap in the commit that holds this batch. The caller
	// flushes before a gap, since the next Write loses the state before the gap; so the writer has
	// no batch waiting then. Nil means that there is no gap between this batch and the one before
	// it.
	Gap *Gap
}

// State returns the state of a reader: all that the reader needs to go on, such as which units it
// has seen. The bytes are opaque to the sink, which keeps them in the commit that ends at the end
// of the batch. Neither side changes them. Call Bytes when you commit, not for every batch, since a
// large state takes a tenth of a second. Do not call it after the next Write has begun: it may then
// return a newer state. Nil is a valid state, the same as an empty one.
type State func() []byte

// Bytes returns the state.
func (s State) Bytes() []byte {
	if s == nil {
		return nil
	}
	return s()
}

// Gap is a range of a shard that the stream removed, by its retention period, before the reader
// came to it. The range may have held records. Their number is unknown, since sequence numbers are
// sparse.
//
// A gap begins after the position After, which is runnel.Start() at the shard's beginning, and ends
// in one of three places:
//
//   - before the batch's records: Before is the position of the first Kinesis record that the
//     reader found;
//   - at the tip, where nothing follows yet: the batch has no record, its Through is a position
//     behind After that no record has, and Before is the same position;
//   - at the shard's end, if the shard is closed or the stream no longer has it: the batch has no
//     record and an unchanged Through, Before is runnel.End(), and Writer.End is the next call.
type Gap struct {
	After, Before runnel.Position // its ends, see above
	// Reason says in one clause how the reader found out.
	Reason string
}

func (g *Gap) String() string {
	return fmt.Sprintf("nothing between %s and %s: %s", g.After, g.Before, g.Reason)
}

// Committed describes the last commit of a shard in the sink.
type Committed struct {
	// End is the last position whose effects are committed. It is runnel.Start() before the first
	// commit, and runnel.End() once the shard's end has been committed.
	End runnel.Position
	// Token helps the next Open to find this commit. The worker keeps it in the lease row.
	Token string
	// State is the state, as bytes, of the batch that reached End. If End is runnel.End(), it is
	// the state of the last batch. It is needed where reading begins: in Committed after Open, and
	// in MovedError.To. After its own commit a writer may leave it out, because the caller supplied
	// it.
	State []byte
	// Parents is used while End is runnel.Start(). It holds the states with which the shard's
	// parents ended in this sink, in the order of Shard.Parents; nil for a parent that has not
	// ended in it.
	Parents [][]byte
}

// Writer takes the records of one shard in order. It is used by one goroutine at a time.
//
// Every method that commits may return a *MovedError: another writer committed first. The caller
// discards the records that it has read and goes on reading after MovedError.To.End. The writer has
// adopted that position and remains usable. After any other error the writer is closed, and the
// caller opens the shard again.
type Writer interface {
	// Committed returns the last commit that this writer knows of. Reading starts after it.
	Committed() Committed
	// Write takes the next batch. It may buffer: the commit that it returns then lags behind
	// Batch.Through. A commit ends at the end of a batch, since the reader's state is known only
	// there, and it holds that batch's state. Progress without a record is committed, too, when its
	// age is due: the reader may have dropped the records in between, and its state has moved. If
	// Through does not advance, there is no progress, and nothing is committed. The writer keeps
	// the records' data until it has committed.
	Write(ctx context.Context, batch Batch) (Committed, error)
	// Flush commits every batch that was written, including progress without a record.
	Flush(ctx context.Context) (Committed, error)
	// End commits every batch and the shard's end; nothing follows. Its state is that of the last
	// batch, or that of the commit before if this writer has taken no batch.
	End(ctx context.Context) (Committed, error)
	// Close releases the writer and commits nothing.
	Close() error
}

// MovedError is returned when another writer's commit has taken the place of ours.
type MovedError struct {
	To Committed // the commit that the writer has adopted
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("another worker committed first: the shard goes on after %s", e.To.End)
}

// ParentError is returned when a shard cannot be opened because one of its parents has not ended.
// The caller ends the parent: it reads the rest of it. If the stream no longer has that shard, the
// caller writes a batch with a Gap up to runnel.End(), or ends a shard that was never begun.
type ParentError struct {
	Parent runnel.ShardID  // the parent that has not ended
	End    runnel.Position // where the sink's last commit for the parent ends
}

func (e *ParentError) Error() string {
	return fmt.Sprintf("the parent %s ends at %s in the sink, which is not the shard's end",
		e.Parent, e.End)
}

// ErrOutOfOrder is returned by Writer.Write for records that are out of order or of another shard.
// These are its cases: a position at or before one that was written already, a position beyond
// Through, a Through before one that was written already, and a Gap that does not begin where the
// batch before it ended or that ends behind one of the batch's records. A sink may return it for a
// Gap behind batches that wait for a Flush. Nothing of the call is written.
var ErrOutOfOrder = errors.New("records out of order")

// Equal reports whether two commits are the same, states included.
func (c Committed) Equal(other Committed) bool {
	return c.End == other.End && c.Token == other.Token && bytes.Equal(c.State, other.State) &&
		slices.EqualFunc(c.Parents, other.Parents, bytes.Equal)
}

type stoppingKey struct{}

// WithStopping returns a context with which a sink's methods are called. stopping is closed when
// the shard is to be handed over or the worker is to stop, while ctx lives on for the work in hand.
func WithStopping(ctx context.Context, stopping <-chan struct{}) context.Context {
	return context.WithValue(ctx, stoppingKey{}, stopping)
}

// Stopping returns the channel of WithStopping; nil if there is none. A method that repeats a
// failed call should return its error instead, once the channel is closed.
func Stopping(ctx context.Context) <-chan struct{} {
	stopping, _ := ctx.Value(stoppingKey{}).(<-chan struct{})
	return stopping
}
