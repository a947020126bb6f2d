package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// Archive is a sink.Sink. It is safe for concurrent use. Its data is in the store, so it needs no
// closing.
type Archive struct {
	cfg   Config
	now   func() time.Time // for the age of links; tests replace it
	store Store
}

var _ sink.Sink = (*Archive)(nil)

// New returns the archive of a configuration. It reads and makes no object before a shard is
// opened.
func New(cfg Config) (*Archive, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	store := cfg.Store
	if store == nil {
		dir, err := NewDirStore(cfg.Dir)
		if err != nil {
			return nil, err
		}
		store = dir
	}
	return &Archive{cfg: cfg, now: time.Now, store: store}, nil
}

// AheadError is returned if a checkpoint is ahead of the archive: the application has processed
// records that the archive does not hold.
type AheadError struct {
	Checkpoint, Tip runnel.Position // the application's position, and the archive's
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("the application's checkpoint, %s, is ahead of the archive, which ends at "+
		"%s: the application was used with another target, and going on would leave out what "+
		"lies between; name that target, or choose another application with --app, which begins "+
		"at --from oldest", e.Checkpoint, e.Tip)
}

// Open implements sink.Sink: it removes the remains of a crash, finds the chain's tip and returns a
// writer that goes on from there. It returns *AheadError if the checkpoint is ahead of the tip,
// ErrParentOpen if a parent's chain has no end yet, and ErrUnusableLink if an object is damaged or
// foreign.
func (a *Archive) Open(ctx context.Context, shard sink.Shard) (sink.Writer, error) {
	w, err := a.open(ctx, shard)
	if err != nil {
		return nil, fmt.Errorf("archive: open %s of %s: %w", shard.ID, shard.Stream, err)
	}
	return w, nil
}

func (a *Archive) open(ctx context.Context, shard sink.Shard) (*writer, error) {
	if err := checkShard(shard); err != nil {
		return nil, err
	}
	stream := Stream{Name: shard.Stream, Created: shard.Created.Truncate(time.Millisecond).UTC()}
	c := chain{store: a.store, stream: stream, shard: shard.ID}
	if err := a.store.Sweep(ctx, c.folder()); err != nil {
		return nil, err
	}
	checkpoint := shard.Checkpoint
	if checkpoint != runnel.End() && !checkpoint.Sequence.IsNumber() {
		checkpoint = runnel.Start() // TRIM_HORIZON and its like name a beginning, no progress
	}
	at, err := c.find(ctx, checkpoint, shard.Token)
	if err != nil {
		return nil, err
	}
	if at.end.Less(checkpoint) {
		return nil, &AheadError{Checkpoint: checkpoint, Tip: at.end}
	}
	w := &writer{cfg: a.cfg, now: a.now, chain: c}
	if err := w.adopt(ctx, at); err != nil {
		return nil, err
	}
	if at.last == nil {
		// The first link names the parents' ends, and the reader begins with the states there. They
		// are final: a shard is opened after its parents are done.
		for _, id := range shard.Parents {
			parent, state, err := chain{store: a.store, stream: stream, shard: id}.ends(ctx)
			if err != nil {
				return nil, err
			}
			w.parents = append(w.parents, parent)
			w.inherited = append(w.inherited, state)
		}
	}
	return w, nil
}

func checkShard(shard sink.Shard) error {
	var faults []error
	if !isName(shard.Stream) {
		faults = append(faults, fmt.Errorf("%q cannot be a stream's name", shard.Stream))
	}
	for _, id := range append([]runnel.ShardID{shard.ID}, shard.Parents...) {
		if !isName(string(id)) {
			faults = append(faults, fmt.Errorf("%q cannot be a shard's name", id))
		}
	}
	if len(shard.Parents) > 2 {
		faults = append(faults, fmt.Errorf("%d parents: a shard has two at most",
			len(shard.Parents)))
	}
	if shard.Created.IsZero() {
		faults = append(faults, errors.New("the stream's creation time is not known"))
	}
	return errors.Join(faults...)
}
