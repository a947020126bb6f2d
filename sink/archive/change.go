package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
)

// A reader's state holds 17 bytes for each lane that its producers have used: 4.5 MB after 51 runs
// of 5,000 keys, however few records a link has. So a link holds the change since the link before,
// which consists of the link's own units. Most of the change would be the lanes, which are hashes
// of the records' keys, 16 bytes each. The records are in the link. So the change gives a record's
// index for a lane, which takes a byte or two.
//
// If there was no state before, the change since an empty state is a whole state.
//
// The state at a link is the last whole state plus the changes since; the link with the whole state
// is the Base. A reader of the state needs the links from Base on, and the records whose indices
// the changes hold. Two rules limit that. First, at least every Config.Whole-th link has a whole
// state. Second, a link has a whole state if the records since Base have become many: wholeAfter
// bytes, and wholeTimes the size of the whole state, so that whole states are a small part of the
// archive.
const (
	wholeAfter = 64 << 20
	wholeTimes = 64
)

// kept describes how the links store the state at a tip. The zero value is for a tip without a
// state.
type kept struct {
	some  bool
	base  runnel.Position // the previous end of the link with the whole state
	whole int             // bytes of the whole state
	links int             // links with a change since then
	bytes int64           // of the lines of the records whose indices the changes hold
}

// add updates k for the next link.
func (k *kept) add(link *Link) {
	switch {
	case link.Change == nil:
		*k = kept{some: len(link.State) > 0, base: link.Previous, whole: len(link.State)}
	case link.Change.Base == link.Previous:
		*k = kept{some: true, base: link.Previous, whole: len(link.Change.Delta), bytes: link.Bytes}
	default:
		k.links++
		k.bytes += link.Bytes
	}
}

// due reports whether the next link, with size bytes of records, is to hold the whole state.
func (k *kept) due(every int, size int64) bool {
	return k.some && (k.links+1 >= every || k.bytes+size > wholeAfter+wholeTimes*int64(k.whole))
}

// fold returns the reader's state at a tip, and how the links store it. If a link that belongs to
// the state is missing or damaged, it returns an error, never an empty state.
func (c chain) fold(ctx context.Context, at tip) (state []byte, k kept, err error) {
	switch {
	case at.last == nil:
		return nil, k, nil
	case at.last.Change == nil:
		k.add(at.last)
		return at.last.State, k, nil
	}
	name := c.name(at.last.Previous)
	base := at.last.Change.Base
	object, err := c.object(ctx, base)
	if err != nil {
		return nil, k, fmt.Errorf("the state at %s: %w", name, err)
	}
	filter, err := object.base()
	end := object.link.End
	if k.add(object.link); !k.some || k.base != base {
		err = fmt.Errorf("%w: it has no whole state", ErrUnusableLink)
	}
	if err = errors.Join(err, object.close()); err != nil {
		return nil, k, fmt.Errorf("the state at %s: link %s: %w", name, c.name(base), err)
	}
	for end != at.end {
		link, err := c.apply(ctx, end, base, filter)
		if err == nil && at.end.Less(link.End) {
			err = fmt.Errorf("%w: link %s does not lead there", ErrUnusableLink, c.name(end))
		}
		if err != nil {
			return nil, k, fmt.Errorf("the state at %s, made of the changes since %s: %w", name,
				c.name(base), err)
		}
		k.add(link)
		end = link.End
	}
	return filter.bytes(), k, nil
}

// folded is a state with changes applied to it. Before the first change it is the whole state as it
// was stored, in whatever form.
type folded struct {
	whole  []byte
	filter *aggregate.Filter
}

func (f *folded) apply(delta *aggregate.Delta) error {
	if f.filter == nil {
		f.filter = new(aggregate.Filter)
		if err := f.filter.UnmarshalBinary(f.whole); len(f.whole) > 0 && err != nil {
			return err
		}
	}
	f.filter.Apply(delta)
	return nil
}

func (f *folded) bytes() []byte {
	if f.filter == nil {
		return f.whole
	}
	state, _ := f.filter.MarshalBinary() // it returns no error
	return state
}

// object opens the link that follows previous. The link must exist.
func (c chain) object(ctx context.Context, previous runnel.Position) (*object, error) {
	object, err := openObject(ctx, c.store, c.name(previous))
	if errors.Is(err, ErrObjectNotFound) {
		return nil, fmt.Errorf("%w: link %s is missing", ErrUnusableLink, c.name(previous))
	}
	if err != nil {
		return nil, err
	}
	if err := c.check(object.link, previous); err != nil {
		return nil, errors.Join(fmt.Errorf("link %s: %w", c.name(previous), err), object.close())
	}
	return object, nil
}

// base returns the whole state in the object's link.
func (o *object) base() (*folded, error) {
	if o.link.Change == nil {
		return &folded{whole: o.link.State}, nil
	}
	delta, err := o.change()
	if err != nil {
		return nil, err
	}
	f := new(folded)
	return f, f.apply(delta)
}

// apply reads the link that follows previous, and applies its change.
func (c chain) apply(
	ctx context.Context, previous, base runnel.Position, to *folded,
) (link *Link, err error) {
	object, err := c.object(ctx, previous)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, object.close()) }()
	link = object.link
	if link.Change == nil || link.Change.Base != base {
		return nil, fmt.Errorf("%w: link %s holds no change since there", ErrUnusableLink,
			c.name(previous))
	}
	if len(link.Change.Delta) == 0 {
		return link, nil
	}
	delta, err := object.change()
	if err == nil {
		err = to.apply(delta)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: link %s: %w", ErrUnusableLink, c.name(previous), err)
	}
	return link, nil
}

// change returns the change in the object's link. It reads the object's records if the change holds
// indices of them.
func (o *object) change() (*aggregate.Delta, error) {
	text, err := inflate(o.link.Change.Delta)
	if err != nil {
		return nil, err
	}
	wanted := map[int]struct{}{}
	delta, err := indexed(text, o.link.Count, wanted)
	if err != nil || len(wanted) == 0 {
		return delta, err
	}
	lanes := make(map[int]aggregate.Lane, len(wanted))
	n := 0
	err = o.each(func(record runnel.Record) bool {
		if _, some := wanted[n]; some {
			lanes[n] = aggregate.LaneOf(record.PartitionKey, record.ExplicitHashKey)
		}
		n++
		return true
	})
	if err != nil {
		return nil, err
	}
	return aggregate.ParseDelta(text, func(i int) (aggregate.Lane, bool) {
		lane, ok := lanes[i]
		return lane, ok
	})
}

// indexed reads a change of a link with the given number of records, without its lanes, and adds
// the change's indices to wanted. A change without indices is left as it is.
func indexed(text []byte, records int64, wanted map[int]struct{}) (*aggregate.Delta, error) {
	return aggregate.ParseDelta(text, func(i int) (aggregate.Lane, bool) {
		wanted[i] = struct{}{}
		return aggregate.Lane{}, int64(i) < records
	})
}

// checkChange reports whether the link's change can be read. It does not check the link's records.
func checkChange(link *Link) error {
	text, err := inflate(link.Change.Delta)
	if err == nil {
		_, err = indexed(text, link.Count, map[int]struct{}{})
	}
	return err
}

// deflate compresses a change, which is mostly one byte a lane: without matches if that is smaller.
func deflate(text []byte) (packed []byte, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	for _, level := range []int{flate.DefaultCompression, flate.HuffmanOnly} {
		var out bytes.Buffer
		w, err := flate.NewWriter(&out, level)
		if err == nil {
			_, err = w.Write(text)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return nil, err
		}
		if packed == nil || out.Len() < len(packed) {
			packed = out.Bytes()
		}
	}
	return packed, nil
}

func inflate(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), MaxState+1))
	if err == nil && len(text) > MaxState {
		err = fmt.Errorf("the change has more than %d bytes", MaxState)
	}
	return text, err
}

// changes is the writer's knowledge of the reader's state since the tip.
type changes struct {
	// state returns the state at the last batch, or, with no batch since the tip was adopted, that
	// at the tip; nil if there is no state.
	state sink.State
	// delta is the change since the tip, or since an empty state if the tip has no state; nil if it
	// is not known.
	delta *aggregate.Delta
	// none is true if a batch since the tip had no state: then delta is the change since an empty
	// state.
	none bool
	// places holds the index of a record for each lane in delta that has one.
	places map[aggregate.Lane]int
}

// begin discards the change: there is a new tip.
func (c *changes) begin() { c.delta, c.places, c.none = new(aggregate.Delta), nil, false }

// take stores the state of a batch. Its first record gets the given index.
func (c *changes) take(
	state sink.State, delta []byte, records []runnel.Record, first int64,
) error {
	switch c.state = state; {
	case state == nil: // the next change is since an empty state
		c.delta, c.places, c.none = new(aggregate.Delta), nil, true
		return nil
	case delta == nil || c.delta == nil:
		c.delta, c.places = nil, nil
		return nil
	}
	next := new(aggregate.Delta)
	if err := next.UnmarshalBinary(delta); err != nil {
		return err
	}
	c.delta.Merge(next)
	c.locate(next, records, int(first))
	return nil
}

// locate finds a record of each lane in the change.
func (c *changes) locate(delta *aggregate.Delta, records []runnel.Record, first int) {
	wanted := map[aggregate.Lane]struct{}{}
	delta.Lanes(func(lane aggregate.Lane) {
		if _, known := c.places[lane]; !known {
			wanted[lane] = struct{}{}
		}
	})
	var key, hashKey string
	for i := range records {
		if len(wanted) == 0 {
			return
		}
		record := &records[i]
		if i > 0 && record.PartitionKey == key && record.ExplicitHashKey == hashKey {
			continue
		}
		key, hashKey = record.PartitionKey, record.ExplicitHashKey
		if !utf8.ValidString(hashKey) {
			continue // a line cannot hold it
		}
		lane := aggregate.LaneOf(key, hashKey)
		if _, some := wanted[lane]; !some {
			continue
		}
		delete(wanted, lane)
		if c.places == nil {
			c.places = map[aggregate.Lane]int{}
		}
		c.places[lane] = first + i
	}
}

// packed returns the change in the form for a link. It returns false if the change is too large for
// a link.
func (c *changes) packed() ([]byte, bool, error) {
	text := c.delta.AppendIndexed(nil, func(lane aggregate.Lane) (int, bool) {
		i, ok := c.places[lane]
		return i, ok
	})
	if len(text) > MaxState/2 {
		return nil, false, nil
	}
	packed, err := deflate(text)
	return packed, true, err
}
