package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/runnel-stream/runnel"
)

// Stored is one object of the archive, compressed in memory. It is safe for concurrent use.
type Stored struct {
	// Link is the link, without the reader's state.
	Link *Link
	name string
	data []byte
}

// Size returns the bytes of the compressed object.
func (s *Stored) Size() int { return len(s.data) }

// Records yields the object's records in order, as often as it is called. An error is the last
// item: ErrContentsDiffer if the records are not those of the link.
func (s *Stored) Records() iter.Seq2[runnel.Record, error] {
	return recordsOf(func(yield func(*object, error) bool) {
		object, err := newObject(s.name, &body{ReadCloser: io.NopCloser(bytes.NewReader(s.data))})
		yield(object, err)
	})
}

// Stored reads the object of the link that follows previous. ErrObjectNotFound: there is none yet.
func (r *Reader) Stored(
	ctx context.Context, shard Chain, previous runnel.Position,
) (*Stored, error) {
	c := chain{store: r.store, stream: shard.Stream, shard: shard.ShardID}
	from, err := r.store.Get(ctx, c.name(previous))
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	data, err := io.ReadAll(from)
	if closeErr := from.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("archive: read %s: %w", c.name(previous), err)
	}
	object, err := newObject(c.name(previous), &body{
		ReadCloser: io.NopCloser(bytes.NewReader(data)),
	})
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	if err := object.close(); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	if err := c.check(object.link, previous); err != nil {
		return nil, fmt.Errorf("archive: link %s: %w", c.name(previous), err)
	}
	object.link.State, object.link.Change = nil, nil
	return &Stored{Link: object.link, name: c.name(previous), data: data}, nil
}

// Tip is the end of a shard's archive, as a writer has just reached it.
type Tip struct {
	Stream  Stream          // with ShardID, the name of the chain
	ShardID runnel.ShardID  // the shard's id
	End     runnel.Position // runnel.Start without a link
	// Stored is the writer's own last commit. It is nil after Open, and after another writer's
	// commit was adopted.
	Stored *Stored
}
