package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
)

// Reader reads an archive back. It is safe for concurrent use, and beside writers: it reads the
// links that are committed at the time of the call.
type Reader struct {
	store Store
}

// Open returns a reader of the archive in a folder; fs.ErrNotExist if there is none, and
// fs.ErrInvalid for a file.
func Open(dir string) (*Reader, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("archive: %w: %s is a file; name the folder of the archive",
			fs.ErrInvalid, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	store, err := NewDirStore(dir)
	if err != nil {
		return nil, err
	}
	return NewReader(store), nil
}

// NewReader returns a reader of the archive in a store.
func NewReader(store Store) *Reader { return &Reader{store: store} }

// Streams returns the streams of the archive, by name and creation time.
func (r *Reader) Streams(ctx context.Context) ([]Stream, error) {
	listing, err := r.store.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	var streams []Stream
	for _, base := range listing.Folders {
		if stream, err := parseStream(base); err == nil {
			streams = append(streams, stream)
		}
	}
	slices.SortFunc(streams, func(a, b Stream) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Created.Compare(b.Created))
	})
	return streams, nil
}

// Chain is a shard of the archive.
type Chain struct {
	Stream  Stream         // with ShardID, the name of the chain
	ShardID runnel.ShardID // the shard's id
	Parents []Parent       // as the first link names them
	depth   int            // the longest path up through parents
}

// Shards returns the stream's shards, parents before children and otherwise by their ids.
func (r *Reader) Shards(ctx context.Context, stream Stream) ([]Chain, error) {
	listing, err := r.store.List(ctx, stream.String())
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	var chains []Chain
	for _, base := range listing.Folders {
		if isName(base) {
			chains = append(chains, Chain{Stream: stream, ShardID: runnel.ShardID(base)})
		}
	}
	begun := make([]bool, len(chains))
	var group errgroup.Group
	group.SetLimit(parallelReads)
	for i := range chains {
		group.Go(func() (err error) {
			if begun[i], err = chains[i].begin(ctx, r.store); err != nil || begun[i] {
				return err
			}
			c := chain{store: r.store, stream: stream, shard: chains[i].ShardID}
			if _, others, _, err := c.after(ctx, ""); err != nil || !others {
				return err
			}
			return fmt.Errorf("%w: %s is missing", ErrUnusableLink, c.name(runnel.Start()))
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	n := 0
	for i := range chains {
		if begun[i] {
			chains[n] = chains[i]
			n++
		}
	}
	chains = chains[:n]
	return chains, sortChains(chains)
}

// begin reads the first link, and sets the parents that it names. begun is false if there is none.
func (s *Chain) begin(ctx context.Context, store Store) (begun bool, err error) {
	first, err := chain{store: store, stream: s.Stream, shard: s.ShardID}.link(ctx, runnel.Start())
	if errors.Is(err, ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.Parents = first.Parents
	return true, nil
}

// sortChains puts parents before children. It returns an error for shards that are their own
// ancestors, and leaves them in the order of their ids.
func sortChains(chains []Chain) error {
	place := make(map[runnel.ShardID]int, len(chains))
	for i := range chains {
		place[chains[i].ShardID] = i
		chains[i].depth = 0
	}
	const open = -1 // the shard is on the current path
	var circle error
	var deepen func(i int) int
	deepen = func(i int) int {
		if chains[i].depth != 0 {
			if chains[i].depth == open {
				circle = fmt.Errorf("%w: %s is its own ancestor", ErrUnusableLink,
					chains[i].ShardID)
			}
			return max(chains[i].depth, 0)
		}
		chains[i].depth = open
		depth := 0
		for _, parent := range chains[i].Parents {
			if at, there := place[parent.ShardID]; there {
				depth = max(depth, deepen(at))
			}
		}
		chains[i].depth = depth + 1
		return depth + 1
	}
	for i := range chains {
		deepen(i)
	}
	slices.SortFunc(chains, func(a, b Chain) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.ShardID, b.ShardID))
	})
	return circle
}

// Links yields the shard's links from the first to the tip. An error is the last item.
func (r *Reader) Links(ctx context.Context, shard Chain) iter.Seq2[*Link, error] {
	return func(yield func(*Link, error) bool) {
		for object, err := range r.objects(ctx, shard) {
			if err != nil {
				yield(nil, err)
				return
			}
			link := object.link
			if err := object.close(); err != nil {
				yield(nil, fmt.Errorf("archive: %w", err))
				return
			}
			if !yield(link, nil) {
				return
			}
		}
	}
}

// Records yields the shard's records in order. An error is the last item.
func (r *Reader) Records(ctx context.Context, shard Chain) iter.Seq2[runnel.Record, error] {
	return recordsOf(r.objects(ctx, shard))
}

// recordsOf yields the records of some objects, and closes each one.
func recordsOf(objects iter.Seq2[*object, error]) iter.Seq2[runnel.Record, error] {
	return func(yield func(runnel.Record, error) bool) {
		for object, err := range objects {
			if err != nil {
				yield(runnel.Record{}, err)
				return
			}
			more := true
			err := object.each(func(record runnel.Record) bool {
				more = yield(record, nil)
				return more
			})
			if closeErr := object.close(); err == nil {
				err = closeErr
			}
			if err != nil && more {
				yield(runnel.Record{}, fmt.Errorf("archive: object %s: %w", object.name, err))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// All yields the stream's records, shard by shard, parents before children: one key's records in
// their order. An error is the last item.
func (r *Reader) All(ctx context.Context, stream Stream) iter.Seq2[runnel.Record, error] {
	return func(yield func(runnel.Record, error) bool) {
		shards, err := r.Shards(ctx, stream)
		if err != nil {
			yield(runnel.Record{}, err)
			return
		}
		for _, shard := range shards {
			for record, err := range r.Records(ctx, shard) {
				if !yield(record, err) || err != nil {
					return
				}
			}
		}
	}
}

// objects yields the shard's objects from the first to the tip. The caller closes each one. The
// names in the folder say which objects are read ahead, and the links which ones are yielded.
func (r *Reader) objects(ctx context.Context, shard Chain) iter.Seq2[*object, error] {
	return r.objectsOf(ctx, shard, span{runnel.Start(), runnel.End()}, wholeRoom, openObject)
}

// span is a part of a chain, between the ends of two links.
type span struct{ start, end runnel.Position }

// objectsOf yields the objects of a span, or to the tip if that comes before, as open opens them.
func (r *Reader) objectsOf(
	ctx context.Context, shard Chain, of span, room room,
	open func(context.Context, Store, string) (*object, error),
) iter.Seq2[*object, error] {
	return func(yield func(*object, error) bool) {
		store := newAhead(ctx, r.store, room)
		defer store.close()
		c := chain{store: store, stream: shard.Stream, shard: shard.ShardID}
		var page page
		for at := of.start; at.Less(of.end); {
			err := page.turn(ctx, c, store, at)
			var object *object
			if err == nil {
				object, err = open(ctx, c.store, c.name(at))
			}
			if errors.Is(err, ErrObjectNotFound) {
				return
			}
			if err == nil {
				if err = c.check(object.link, at); err != nil {
					err = errors.Join(err, object.close())
				}
			}
			if err != nil {
				yield(nil, fmt.Errorf("archive: %w", err))
				return
			}
			at = object.link.End
			if !yield(object, nil) {
				return
			}
		}
	}
}

// page is the last part of a folder's names that was asked for.
type page struct {
	last  string // of its names; "" before the first page
	ended bool   // no names follow
}

// turn gets the next names if the link that follows at is not among the names so far, and has them
// read ahead.
func (p *page) turn(ctx context.Context, c chain, store *ahead, at runnel.Position) error {
	base := at.SortText() + extension
	if p.ended || base <= p.last {
		return nil
	}
	names, more, err := c.store.After(ctx, c.folder(), at.SortText())
	if err != nil {
		return err
	}
	p.ended = !more || len(names) == 0 || names[len(names)-1] <= p.last
	for _, name := range names {
		if _, err := parseObject(name); err == nil {
			store.expect(c.folder() + "/" + name)
		}
		p.last = name
	}
	return nil
}
