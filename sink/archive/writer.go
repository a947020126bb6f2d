package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// writer is a sink.Writer: the last tip that it has seen, and the records behind it, compressed as
// they come.
type writer struct {
	cfg       Config
	now       func() time.Time
	chain     chain
	parents   []Parent // for the first link
	inherited [][]byte // the parents' states; nil as soon as there is a first link
	tip       tip
	kept      kept   // how the links store the reader's state at the tip
	found     []byte // that state, if another writer made the tip
	broken    error  // the error that ended the writer's life

	// The fields below describe the records that are written and not committed.
	changes changes
	through runnel.Position
	gap     *sink.Gap // behind the tip, before all written records
	moved   time.Time // when through was first ahead of the tip
	count   int64
	dropped int64 // by Config.Map
	size    int64 // of the lines
	crc     uint32
	first   time.Time // arrival of the first record
	newest  time.Time // arrival of the last record
	since   time.Time // when the first record was written
	lines   []byte
	packed  *bytes.Buffer
	gzip    *gzip.Writer // nil without records
}

// flushLines is the number of bytes that are collected before they are compressed.
const flushLines = 32 << 10

// keepPacked is the largest buffer that a writer keeps between links, in bytes.
const keepPacked = 1 << 20

var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

var errClosed = errors.New("the writer is closed")

// emptyAge is the age, in units of Config.Every, at which progress without a record is committed.
// The wait loses no data: a reader that goes on from the tip reads the same records again and drops
// them again, as long as the stream has them. But each link is an object for ever, and a shard that
// brings only doubles, or other programs' records, must not make one every few seconds.
const emptyAge = 12

// Committed implements sink.Writer.
func (w *writer) Committed() sink.Committed {
	return sink.Committed{
		End: w.tip.end, Token: w.chain.token(w.tip), State: w.found, Parents: w.inherited,
	}
}

// Write implements sink.Writer. It commits a link in these cases: the link has reached Config.Size;
// its first record has waited for Config.Every; it has no record and its first progress has waited
// for twelve times that; or it begins with a gap, in which case it commits at once. A link ends
// with the batch, because the reader's state inside a batch is not known. A link has one gap at
// most, at its beginning. So a gap behind a batch that waits for a Flush is sink.ErrOutOfOrder, as
// is a record that is not after the one before it. A state above MaxState is ErrStateTooLarge, from
// the call that commits.
func (w *writer) Write(ctx context.Context, batch sink.Batch) (sink.Committed, error) {
	if w.broken != nil {
		return sink.Committed{}, w.fail("write", w.broken)
	}
	if err := w.check(&batch); err != nil {
		return sink.Committed{}, w.fail("write", err)
	}
	records, err := w.mapped(ctx, batch.Records)
	if err != nil {
		return sink.Committed{}, w.fail("map", err)
	}
	w.dropped += int64(len(batch.Records) - len(records))
	err = w.changes.take(batch.State, batch.Delta, records, w.count)
	if err != nil {
		return sink.Committed{}, w.fail("write", err)
	}
	if batch.Gap != nil {
		w.gap = new(*batch.Gap)
	}
	for i := range records {
		if err := w.add(&records[i]); err != nil {
			return sink.Committed{}, w.fail("compress", err)
		}
	}
	w.through = batch.Through
	if w.due() {
		if err := w.commit(ctx, w.through); err != nil {
			return sink.Committed{}, err
		}
	}
	return w.Committed(), nil
}

// progress reports whether there is progress to commit. An idle shard has none: without a new
// position there is no name for a link.
func (w *writer) progress() bool { return w.tip.end.Less(w.through) }

// due reports whether a link is to be committed now.
func (w *writer) due() bool {
	if !w.progress() {
		return false
	}
	now := w.now()
	if w.moved.IsZero() {
		w.moved = now
	}
	return w.gap != nil || w.size >= w.cfg.Size || w.count > 0 && now.Sub(w.since) >= w.cfg.Every ||
		now.Sub(w.moved)/emptyAge >= w.cfg.Every
}

// Flush implements sink.Writer. Progress without a record is committed, too.
func (w *writer) Flush(ctx context.Context) (sink.Committed, error) {
	if w.broken != nil {
		return sink.Committed{}, w.fail("flush", w.broken)
	}
	if w.progress() {
		if err := w.commit(ctx, w.through); err != nil {
			return sink.Committed{}, err
		}
	}
	return w.Committed(), nil
}

// End implements sink.Writer. The last link holds the written records and ends at runnel.End, with
// the last batch's state; a shard without a record has that one link.
func (w *writer) End(ctx context.Context) (sink.Committed, error) {
	if w.broken != nil {
		return sink.Committed{}, w.fail("end", w.broken)
	}
	if w.tip.end != runnel.End() {
		if err := w.commit(ctx, runnel.End()); err != nil {
			return sink.Committed{}, err
		}
	}
	return w.Committed(), nil
}

// Close implements sink.Writer.
func (w *writer) Close() error {
	w.discard()
	if w.broken == nil {
		w.broken = errClosed
	}
	return nil
}

// check reports whether the batch follows the earlier batches. The records before a gap need a link
// of their own, with the state before the gap. The State function of their batch may already return
// the state of this batch.
func (w *writer) check(batch *sink.Batch) error {
	if batch.Gap != nil && w.progress() {
		return fmt.Errorf("%w: a gap behind batches that wait for a Flush, from %s to %s",
			sink.ErrOutOfOrder, w.tip.end, w.through)
	}
	return batch.Follows(w.chain.shard, w.through)
}

// add encodes a record and compresses it.
func (w *writer) add(record *runnel.Record) error {
	if w.gzip == nil {
		w.begin(record)
	}
	before := len(w.lines)
	w.lines = AppendRecord(w.lines, record)
	w.lines = append(w.lines, '\n')
	w.size += int64(len(w.lines) - before)
	w.count++
	w.newest = record.ArrivalTime
	if len(w.lines) >= flushLines {
		return w.compress()
	}
	return nil
}

func (w *writer) begin(record *runnel.Record) {
	w.first, w.since = record.ArrivalTime, w.now()
	if w.packed == nil {
		w.packed = new(bytes.Buffer)
	}
	w.gzip = compressors.Get().(*gzip.Writer)
	w.gzip.Reset(w.packed)
}

func (w *writer) compress() error {
	w.crc = crc32.Update(w.crc, castagnoli, w.lines)
	_, err := w.gzip.Write(w.lines)
	w.lines = w.lines[:0]
	return err
}

// discard drops the records that are written and not committed.
func (w *writer) discard() {
	if n := w.count + w.dropped; n > 0 && w.cfg.OnDiscard != nil {
		w.cfg.OnDiscard(n)
	}
	w.clear()
}

// clear begins behind the tip without a record.
func (w *writer) clear() {
	if w.gzip != nil {
		w.gzip.Reset(nil)
		compressors.Put(w.gzip)
		w.gzip = nil
	}
	if w.packed != nil {
		w.packed.Reset()
		if w.packed.Cap() > keepPacked {
			w.packed = nil
		}
	}
	if w.lines = w.lines[:0]; cap(w.lines) > keepPacked {
		w.lines = nil
	}
	w.through = w.tip.end
	w.changes.begin()
	if w.tip.last != nil {
		w.parents, w.inherited = nil, nil
	}
	w.moved, w.gap = time.Time{}, nil
	w.count, w.dropped, w.size, w.crc = 0, 0, 0, 0
	w.first, w.newest, w.since = time.Time{}, time.Time{}, time.Time{}
}

// fail ends the writer's life. After an error the end of the chain is not known, so the caller
// opens the shard again.
func (w *writer) fail(doing string, err error) error {
	if w.broken == nil {
		w.broken = fmt.Errorf("the writer is closed after an error: %w", err)
		w.discard()
	}
	return fmt.Errorf("archive: %s %s of %s: %w", doing, w.chain.shard, w.chain.stream.Name, err)
}
