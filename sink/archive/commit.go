package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// commit creates the next link, with all written records, up to end. It returns *sink.MovedError if
// another writer has put a link there. It has then adopted that writer's chain and discarded the
// written records.
func (w *writer) commit(ctx context.Context, end runnel.Position) error {
	link := w.link(end)
	err := w.remember(link)
	if err != nil {
		return w.fail("commit", err)
	}
	object, err := w.seal(link)
	if err != nil {
		return w.fail("commit", err)
	}
	there, err := w.create(ctx, link, object)
	switch {
	case err != nil:
		return w.fail("commit", err)
	case there != nil:
		return w.taken(ctx, link, there, object)
	}
	w.advance(link, object)
	return nil
}

// create creates the link's object. If another object has the name, it returns that one's link.
// Some stores refuse a create beside another one that has not ended and may still fail: then there
// is no object, and the create is tried again.
func (w *writer) create(ctx context.Context, link *Link, object []byte) (there *Link, err error) {
	name := w.chain.name(link.Previous)
	err = w.persist(ctx, name, func() error {
		err := w.chain.store.PutIfAbsent(ctx, name, object)
		if !errors.Is(err, ErrObjectExists) {
			return err
		}
		there, err = w.chain.link(ctx, link.Previous)
		if errors.Is(err, ErrObjectNotFound) {
			err = fmt.Errorf("%w: it refused to create the object, and has none: %w",
				ErrStoreUnavailable, err)
		}
		return err
	})
	return there, err
}

// advance moves the tip to the writer's own link.
func (w *writer) advance(link *Link, object []byte) {
	w.kept.add(link)
	w.found = nil
	w.tip = tip{end: link.End, last: link}
	link.State, link.Change = nil, nil // they may be large, and are not needed here
	w.clear()
	w.arrived(&Stored{Link: link, name: w.chain.token(w.tip), data: object})
}

// arrived reports the tip.
func (w *writer) arrived(own *Stored) {
	if w.cfg.OnTip != nil {
		w.cfg.OnTip(Tip{
			Stream: w.chain.stream, ShardID: w.chain.shard, End: w.tip.end, Stored: own,
		})
	}
}

// remember puts the reader's state into the link: its change, or the whole state.
func (w *writer) remember(link *Link) error {
	if w.changes.state == nil {
		return nil
	}
	base, due := w.kept.base, w.kept.due(w.cfg.Whole, w.size)
	if !w.kept.some || w.changes.none {
		base, due = link.Previous, w.cfg.Whole == 1 || w.size > wholeAfter
	}
	if w.changes.delta != nil && !due {
		packed, ok, err := w.changes.packed()
		if err != nil {
			return err
		}
		if ok {
			link.Change = &Change{Base: base, Delta: packed}
			return nil
		}
	}
	if link.State = w.changes.state.Bytes(); len(link.State) > MaxState {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrStateTooLarge, len(link.State), MaxState)
	}
	return nil
}

// taken is called if another object had the link's name. That object is this very link, if it was
// put and the answer lost, or another writer's link.
func (w *writer) taken(ctx context.Context, link, there *Link, object []byte) error {
	if there.Writer == link.Writer && there.Nonce == link.Nonce {
		w.advance(link, object)
		return nil
	}
	at, err := w.chain.walk(ctx, tip{end: there.End, last: there})
	if err != nil {
		return w.fail("commit", err)
	}
	if err := w.adopt(ctx, at); err != nil {
		return w.fail("commit", err)
	}
	return &sink.MovedError{To: w.Committed()}
}

// adopt goes on from a tip that another writer has made, with the state there. It discards all
// records that were written before.
func (w *writer) adopt(ctx context.Context, at tip) error {
	state, k, err := w.chain.fold(ctx, at)
	if err != nil {
		return err
	}
	w.tip, w.kept, w.found = at, k, state
	w.changes.state = nil
	if len(state) > 0 {
		w.changes.state = func() []byte { return state }
	}
	w.discard()
	w.arrived(nil)
	return nil
}

func (w *writer) link(end runnel.Position) *Link {
	link := &Link{
		Stream: w.chain.stream, ShardID: w.chain.shard,
		Previous: w.tip.end, End: end,
		Count: w.count, Bytes: w.size, Mapped: w.cfg.Map != nil, Dropped: w.dropped,
		// The nonce is new for every attempt, not only for every process: one process may try twice
		// with different records, and its first attempt may have been late.
		Writer: w.cfg.WriterID, Nonce: rand.Text(),
		FirstArrival: w.first, LastArrival: w.newest,
		Gap: w.gap,
	}
	if w.tip.last == nil {
		link.Parents = w.parents
	}
	return link
}

// seal finishes the compressed records and returns the object.
func (w *writer) seal(link *Link) ([]byte, error) {
	var packed []byte
	if w.gzip != nil {
		if err := w.compress(); err != nil {
			return nil, err
		}
		if err := w.gzip.Close(); err != nil {
			return nil, err
		}
		packed = w.packed.Bytes()
	}
	link.CRC = w.crc
	const usual = 1 << 10 // a link without a state has less
	room := usual + 2*len(link.State) + len(packed)
	if link.Change != nil {
		room += 2 * len(link.Change.Delta)
	}
	object, err := appendLink(make([]byte, 0, room), link)
	if err != nil {
		return nil, err
	}
	return append(object, packed...), nil
}
