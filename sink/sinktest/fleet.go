package sinktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

type worker struct {
	sink    sink.Sink
	writers []*writerState // of every shard; nil if the shard is not open
}

type writerState struct {
	sink.Writer
	*reader
	next    int             // the Kinesis record that is read next
	at      runnel.Position // the position that the written batches reach
	pending int             // records that were written since the last commit
}

// follow goes on reading after a commit that a writer has found.
func (s *simulation) follow(w *writerState, shard *shardState, from sink.Committed) (err error) {
	if err := shard.found(from); err != nil {
		return err
	}
	w.reader, err = newReader(from)
	w.next, w.at, w.pending = shard.source.from(from.End), from.End, 0
	return err
}

func (s *simulation) openWriter(
	ctx context.Context, w *worker, shard *shardState,
) (*writerState, error) {
	s.stats.Opens++
	opened := shard.source.shard
	if len(shard.rows) > 0 {
		row := shard.rows[len(shard.rows)-1]
		token := row.Token
		if s.chance(4) {
			s.stats.Stale++
			row = shard.rows[s.rng.IntN(len(shard.rows))]
			token = row.Token
			switch s.rng.IntN(4) {
			case 0:
				row, token = sink.Committed{}, ""
			case 1:
				token = shard.rows[s.rng.IntN(len(shard.rows))].Token
			}
		}
		opened.Checkpoint, opened.Token = row.End, token
	}
	writer, err := w.sink.Open(ctx, opened)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	opening := &writerState{Writer: writer}
	found := writer.Committed()
	if err := s.follow(opening, shard, found); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if len(found.State)+len(found.Parents) > 0 {
		s.stats.Inherited++
	}
	return opening, nil
}

// found checks the commit that a writer has found in the sink: it never lies before a commit that
// any writer has returned.
func (s *shardState) found(c sink.Committed) error {
	if c.End.Less(s.acked) {
		return fmt.Errorf("the sink's commit up to %s is gone: it ends at %s", s.acked, c.End)
	}
	s.ended = s.ended || c.End == runnel.End()
	return s.sound(c, true)
}

// sound checks that a commit ends at the end of a batch and has the reader's state there. A commit
// that a writer has made itself may lack the state.
func (s *shardState) sound(c sink.Committed, found bool) error {
	if s.blind {
		return nil
	}
	if c.End == runnel.Start() {
		same := len(c.State) == 0 && len(c.Parents) == len(s.source.parents)
		for i := range min(len(c.Parents), len(s.source.parents)) {
			same = same && bytes.Equal(c.Parents[i], s.source.parents[i].states[runnel.End()])
		}
		if !same {
			return fmt.Errorf("nothing is committed; the state is %x and the parents' are %x, "+
				"not those of %v", c.State, c.Parents, s.source.shard.Parents)
		}
		return nil
	}
	switch {
	case !s.ends[c.End]:
		return fmt.Errorf("a commit ends at %s, where no batch has ended", c.End)
	case (found || c.State != nil) && !bytes.Equal(c.State, s.source.states[c.End]):
		return fmt.Errorf("the commit up to %s has the state %x, want %x", c.End, c.State,
			s.source.states[c.End])
	case c.Parents != nil:
		return fmt.Errorf("the commit up to %s has the parents' states %x", c.End, c.Parents)
	}
	return nil
}

// use has a writer write, flush or end. The answer may be lost.
func (s *simulation) use(ctx context.Context, w *worker, n int) error {
	s.stats.Writes++
	shard, writer := s.shards[n], w.writers[n]
	committed, whole, err := s.call(ctx, shard, writer)
	if s.chance(10) {
		s.stats.Lost++
		if s.rng.IntN(2) == 0 {
			_ = writer.Close() // whatever the answer was, it was lost
		}
		w.writers[n] = nil
		return nil
	}
	if moved := new(sink.MovedError); errors.As(err, &moved) {
		s.stats.Moved++
		if !moved.To.Equal(writer.Committed()) {
			return fmt.Errorf("moved to %v, but the writer knows %v", moved.To, writer.Committed())
		}
		return s.follow(writer, shard, moved.To)
	}
	if err != nil {
		return err
	}
	if writer.at.Less(committed.End) {
		return fmt.Errorf("committed up to %s, but written up to %s", committed.End, writer.at)
	}
	if whole && committed.End.Less(writer.at) {
		return fmt.Errorf("flushed up to %s, but written up to %s", committed.End, writer.at)
	}
	if committed.End == writer.at {
		if writer.pending == 0 && shard.acked.Less(committed.End) && committed.End != runnel.End() {
			s.stats.Empty++
		}
		writer.pending = 0
	}
	if err := shard.sound(committed, false); err != nil {
		return err
	}
	s.acknowledge(shard, committed)
	return nil
}

// call draws the writer's next call; whole is true if the call commits every written batch.
func (s *simulation) call(
	ctx context.Context, shard *shardState, w *writerState,
) (c sink.Committed, whole bool, err error) {
	rest := len(shard.source.stored) - w.next
	switch {
	case s.rng.IntN(6) == 0:
		c, err = w.Flush(ctx)
		return c, true, err
	case rest == 0 && s.rng.IntN(3) == 0 && w.Committed().End != runnel.End():
		// The state of the parents' readers goes to the children even through an empty shard.
		if c, err = s.write(ctx, shard, w, w.next); err == nil {
			w.at = runnel.End()
			c, err = w.End(ctx)
		}
		return c, true, err
	}
	c, err = s.write(ctx, shard, w, w.next+min(s.rng.IntN(8), s.rng.IntN(8), rest))
	return c, false, err
}

// write reads on up to a Kinesis record, and writes the records that are to be delivered.
func (s *simulation) write(
	ctx context.Context, shard *shardState, w *writerState, hi int,
) (sink.Committed, error) {
	before := w.filter.Counts.Doubles
	batch := sink.Batch{Records: w.read(s.rng, shard.source, w.next, hi), Through: w.at}
	s.stats.Doubles += int(w.filter.Counts.Doubles - before) //nolint:gosec // a few
	if hi > w.next {
		batch.Through = shard.source.stored[hi-1].last
	}
	reader := w.reader
	batch.State, batch.Delta = reader.state, reader.delta()
	if s.chance(12) { // the sink has to take the state
		batch.Delta = nil
	}
	shard.ends[batch.Through] = true
	w.next, w.at = hi, batch.Through
	w.pending += len(batch.Records)
	return w.Write(ctx, batch)
}

// acknowledge may store a committed end in the lease row.
func (s *simulation) acknowledge(shard *shardState, committed sink.Committed) {
	if shard.acked.Less(committed.End) {
		shard.acked = committed.End
	}
	shard.ended = shard.ended || committed.End == runnel.End()
	if !s.chance(5) {
		shard.rows = append(shard.rows, committed)
	}
}
