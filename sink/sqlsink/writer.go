package sqlsink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
)

// writer is a sink.Writer: the row as it was last seen, and the progress behind it. Records never
// wait: each batch that has some is committed at once.
type writer struct {
	sink   *Sink
	stream string // its name
	place  place
	// parents are the shard's, in order: of two children that lock them none waits for the other in
	// a circle.
	parents []runnel.ShardID
	row     row            // as this writer has left or found it
	known   sink.Committed // the same, for the caller
	looked  time.Time      // when the row was last seen
	broken  error          // the error that ended the writer's life

	// The fields below describe the batches that were written and not committed.
	through runnel.Position
	moved   time.Time // when through was first ahead
	gap     *sink.Gap
	state   sink.State
	change  *aggregate.Delta // of the state; nil for none
	unknown bool             // a change is not known

	logged time.Time // the last log line about a failure
}

var errClosed = errors.New("the writer is closed")

// adopt goes on from a row, without the batches that were written before.
func (w *writer) adopt(r row) {
	w.row, w.looked = r, time.Now()
	w.known = sink.Committed{End: r.position, State: r.state}
	w.row.state = nil // the caller has it
	w.clear()
	w.state = func() []byte { return r.state }
}

// clear begins behind the row without a batch.
func (w *writer) clear() {
	w.through, w.moved, w.gap = w.row.position, time.Time{}, nil
	w.change, w.unknown = nil, false
}

// Committed implements sink.Writer.
func (w *writer) Committed() sink.Committed { return w.known }

// Write implements sink.Writer. Records and gaps are committed at once, other progress at the age
// of Config.Every. A batch without progress is the time to look whether the row is as it was, since
// the database may have been restored meanwhile: then the error is *sink.MovedError, and its
// position may be before that of an earlier commit.
func (w *writer) Write(ctx context.Context, batch sink.Batch) (sink.Committed, error) {
	err := w.broken
	if err == nil {
		err = batch.Follows(w.place.shard, w.through)
	}
	if err == nil && w.known.End == runnel.End() && len(batch.Records) > 0 {
		err = fmt.Errorf("%w: a record behind the shard's end", sink.ErrOutOfOrder)
	}
	if gap := batch.Gap; err == nil && gap != nil && !w.sink.cfg.AllowGaps {
		err = &GapError{App: w.place.app, ShardID: w.place.shard, Gap: *gap}
	}
	if err == nil {
		err = w.take(batch)
	}
	if err != nil {
		return sink.Committed{}, w.fail("write", err)
	}
	if w.due(len(batch.Records)) {
		return w.commit(ctx, "write", w.through, batch.Records)
	}
	if time.Since(w.looked) >= w.sink.cfg.Every && w.known.End != runnel.End() {
		if err := w.look(ctx); err != nil {
			return sink.Committed{}, err
		}
	}
	return w.known, nil
}

// take takes a batch's progress and state. The changes are merged: an idle shard brings some with
// each batch, and commits none.
func (w *writer) take(batch sink.Batch) error {
	w.through, w.state = batch.Through, batch.State
	switch {
	case batch.Delta != nil:
		delta := new(aggregate.Delta)
		if err := delta.UnmarshalBinary(batch.Delta); err != nil {
			return fmt.Errorf("the change of the reader's state: %w", err)
		}
		if w.change == nil {
			w.change = new(aggregate.Delta)
		}
		w.change.Merge(delta)
	case batch.State != nil || w.row.stored.some:
		w.unknown = true
	}
	if batch.Gap != nil {
		w.gap = new(*batch.Gap)
	}
	if w.progress() && w.moved.IsZero() {
		w.moved = time.Now()
	}
	return nil
}

// progress reports whether there is progress to commit.
func (w *writer) progress() bool { return w.row.position.Less(w.through) }

// due reports whether the batches are to be committed now. A gap up to the shard's end has no
// position; Writer.End commits it.
func (w *writer) due(records int) bool {
	return records > 0 || w.progress() &&
		(w.gap != nil || time.Since(w.moved) >= w.sink.cfg.Every)
}

// Flush implements sink.Writer.
func (w *writer) Flush(ctx context.Context) (sink.Committed, error) {
	if w.broken != nil {
		return sink.Committed{}, w.fail("flush", w.broken)
	}
	if w.progress() {
		return w.commit(ctx, "flush", w.through, nil)
	}
	return w.known, nil
}

// End implements sink.Writer.
func (w *writer) End(ctx context.Context) (sink.Committed, error) {
	if w.broken != nil {
		return sink.Committed{}, w.fail("end", w.broken)
	}
	if w.known.End != runnel.End() {
		return w.commit(ctx, "end", runnel.End(), nil)
	}
	return w.known, nil
}

// Close implements sink.Writer.
func (w *writer) Close() error {
	if w.broken == nil {
		w.broken = errClosed
	}
	return nil
}

// look compares the row with the one that this writer knows. A database that does not answer is
// asked again later: there is nothing to commit.
func (w *writer) look(ctx context.Context) error {
	token, err := w.sink.token(ctx, w.place)
	if err == nil && token == "" && !w.row.there {
		_, err = w.sink.ends(ctx, w.place, w.parents)
		if open := new(sink.ParentError); errors.As(err, &open) {
			return w.fail("look at the position", errGone)
		}
	}
	var found row
	if err == nil && token != w.row.token {
		found, err = w.sink.read(ctx, w.place)
	}
	w.looked = time.Now()
	if err != nil {
		w.report(Retry{
			ShardID: w.place.shard, Err: fmt.Errorf("look at the position: %w", err),
			Since: w.looked, Pause: w.sink.cfg.Every,
		})
		return nil
	}
	if token == w.row.token {
		return nil
	}
	err = w.movedTo(found)
	if errors.Is(err, errGone) {
		return w.fail("look at the position", err)
	}
	return err
}

// left reports whether a row is as this writer has left or found it.
func (w *writer) left(found row) bool {
	return found.there == w.row.there && found.token == w.row.token
}

// errGone means that the row of the shard, or the end of a parent, is not there any more.
var errGone = errors.New("the position of the shard, or the end of its parent, is gone from " +
	"runnel_position, as after a restore of the database: the shard is opened anew")

// movedTo adopts a row that is not the one that this writer has left.
func (w *writer) movedTo(found row) error {
	if !found.there { // a parent may be unended as well
		return errGone
	}
	w.adopt(found)
	return &sink.MovedError{To: w.known}
}

// fail ends the writer's life. The caller opens the shard again.
func (w *writer) fail(doing string, err error) error {
	if w.broken == nil {
		w.broken = fmt.Errorf("the writer is closed after an error: %w", err)
	}
	return fmt.Errorf("sqlsink: %s %s of %s: %w", doing, w.place.shard, w.stream, err)
}

// mostGaps bounds the gaps that a row keeps.
const mostGaps = 100

// keptGap is a gap in a row's JSON. Its positions are Position.SortText.
type keptGap struct {
	After  string `json:"after"`
	Before string `json:"before"`
	Reason string `json:"reason"`
	At     string `json:"at"` // RFC 3339
}

// gaps returns the row's gaps with the new one.
func (w *writer) gaps() (string, error) {
	if w.gap == nil {
		return w.row.gaps, nil
	}
	var all []keptGap
	if w.row.gaps != "" {
		if err := json.Unmarshal([]byte(w.row.gaps), &all); err != nil {
			return "", badRow(w.place, "gap", err)
		}
	}
	all = append(all, keptGap{
		After: w.gap.After.SortText(), Before: w.gap.Before.SortText(), Reason: w.gap.Reason,
		At: time.Now().UTC().Format(time.RFC3339),
	})
	text, err := json.Marshal(all[max(0, len(all)-mostGaps):])
	return string(text), err
}
