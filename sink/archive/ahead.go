package archive

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
)

// parallelReads is the number of objects that a Reader reads at once.
const parallelReads = 16

// aheadBytes is the part of an object that is read ahead; the rest of a larger one follows when it
// is its turn.
const aheadBytes = 1 << 20

// room bounds the memory of one reading.
type room struct {
	objects int // that are read ahead
	bytes   int // of each
}

// wholeRoom is the room of a reading that is alone.
var wholeRoom = room{parallelReads, aheadBytes}

// split returns the room of each of some readings at once, which then have a few times a whole room
// in all.
func (r room) split(readings int) room {
	readings = max(1, readings)
	return room{
		objects: max(1, r.objects/readings),
		bytes:   min(r.bytes, max(leastBytes, 4*r.objects*r.bytes/readings)),
	}
}

// leastBytes is the least part that is read ahead: a link's header, and a few records.
const leastBytes = 16 << 10

// ahead is a Store that gets the objects which are expected before they are asked for, some at a
// time. It is for one reader, which asks for them in the order in which it expects them. An object
// that was passed over is dropped.
type ahead struct {
	Store
	ctx    context.Context //nolint:containedctx // of the reading for which it is made
	cancel context.CancelFunc
	group  sync.WaitGroup

	room     room
	mu       sync.Mutex
	expected []string // not yet begun
	begun    []*early // in the order of the expected names
}

// early is an object that is read ahead.
type early struct {
	name string
	done chan struct{} // closed when body and err are set
	body io.ReadCloser
	err  error
}

func newAhead(ctx context.Context, store Store, room room) *ahead {
	ctx, cancel := context.WithCancel(ctx)
	return &ahead{Store: store, ctx: ctx, cancel: cancel, room: room}
}

// expect adds names to those that will be asked for.
func (a *ahead) expect(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expected = append(a.expected, names...)
	a.begin()
}

// begin begins with as many expected objects as there is room for.
func (a *ahead) begin() {
	for len(a.expected) > 0 && len(a.begun) < a.room.objects {
		e := &early{name: a.expected[0], done: make(chan struct{})}
		a.expected = a.expected[1:]
		a.begun = append(a.begun, e)
		a.group.Go(func() {
			defer close(e.done)
			e.body, e.err = a.load(e.name)
		})
	}
}

func (a *ahead) load(name string) (io.ReadCloser, error) {
	body, err := a.Store.Get(a.ctx, name)
	if err != nil {
		return nil, err
	}
	var start bytes.Buffer
	_, err = io.CopyN(&start, body, int64(a.room.bytes))
	rest := io.Reader(body)
	if err != nil { // the end, or a failure: it comes where it was
		rest = failing{err}
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&start, rest), body}, nil
}

// failing is a reader that returns an error, io.EOF at the end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Get implements Store.
func (a *ahead) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	e := a.take(name)
	if e == nil {
		return a.Store.Get(ctx, name)
	}
	select {
	case <-e.done:
		return e.body, e.err
	case <-ctx.Done():
		a.drop(e)
		return nil, context.Cause(ctx)
	}
}

// take returns the object if it is read ahead, and drops those before it.
func (a *ahead) take(name string) *early {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, e := range a.begun {
		if e.name != name {
			continue
		}
		for _, passed := range a.begun[:i] {
			a.drop(passed)
		}
		a.begun = a.begun[i+1:]
		a.begin()
		return e
	}
	if i := slices.Index(a.expected, name); i >= 0 { // all that are begun were passed over
		for _, passed := range a.begun {
			a.drop(passed)
		}
		a.begun, a.expected = nil, a.expected[i+1:]
		a.begin()
	}
	return nil
}

// drop closes an object that is not asked for, as soon as it is there.
func (a *ahead) drop(e *early) {
	a.group.Go(func() {
		if <-e.done; e.body != nil {
			_ = e.body.Close() // only read
		}
	})
}

// close ends the reading ahead and waits for it.
func (a *ahead) close() {
	a.cancel()
	a.mu.Lock()
	for _, e := range a.begun {
		a.drop(e)
	}
	a.begun, a.expected = nil, nil
	a.mu.Unlock()
	a.group.Wait()
}
