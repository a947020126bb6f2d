// Package pause detects that the process did not run for a while: it was stopped by a signal, its
// machine was suspended, or its virtual machine was frozen. Requests from before a pause wait in
// sockets meanwhile. Their clients may have given up and sent the same records again.
//
// A goroutine ticks at a steady rate, and a late tick is a pause. After the pause, any other
// goroutine may run before that tick, so Check looks at the age of the last tick itself. There is
// no moment in which neither of the two sees the pause:
//
//	before the tick after the pause   the last tick is too old
//	after it                          the number of pauses has grown: it grows before the tick is
//	                                  noted, and Check reads them in the other order
package pause

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/seam"
)

// ErrPaused is wrapped by the errors of Check.
var ErrPaused = errors.New("the server was paused after this call had come")

const (
	// The limit is a sixtieth of H, which is 5 s. With the short H of a test a busy machine would
	// look like a paused one, so it is half a second there, or a quarter of H.
	limitOfH   = 60
	leastLimit = 500 * time.Millisecond
)

// Limit is the permitted delay of a tick, and the time between two ticks, by the H in force.
// Default 5 s: so a pause of more than 10 s is always detected.
func Limit() time.Duration {
	h := seam.H()
	return max(h/limitOfH, min(leastLimit, h/4))
}

// Watch counts the pauses of the process. Its methods are safe for concurrent use.
type Watch struct {
	limit, every time.Duration
	began        bootclock.Instant
	tick         atomic.Int64 // the time from began to the last tick, in ns
	count        atomic.Uint64
	stopped      atomic.Bool // changed under mu

	mu struct {
		sync.Mutex
		started bool
		next    int
		hooks   map[int]func()
	}
	stop chan struct{}
	done chan struct{}
}

// New makes a watch and takes its first tick.
func New() *Watch {
	limit := Limit()
	w := &Watch{
		limit: limit, every: limit, began: bootclock.Now(),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	w.mu.hooks = map[int]func(){}
	return w
}

// Start begins to tick, until Stop; a second call does nothing. If more time has passed since New
// than the limit, that counts as a pause. After each pause the watch calls paused with its length,
// and then the functions of OnPause.
func (w *Watch) Start(paused func(length time.Duration)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.started || w.stopped.Load() {
		return
	}
	w.mu.started = true
	now := bootclock.Now()
	if w.late(now) > 0 {
		w.count.Add(1)
	}
	w.note(now)
	go w.run(paused)
}

// Stop ends the ticks, and waits for a running call of a function. From then on Check finds no
// pause: the caller stops the watch when nothing can be stored any more.
func (w *Watch) Stop() {
	w.mu.Lock()
	wait := w.mu.started
	if !w.stopped.Swap(true) {
		close(w.stop)
	}
	w.mu.Unlock()
	if wait {
		<-w.done
	}
}

// OnPause calls hook after each pause, once Count has grown, until the caller calls remove. The
// hook must not block.
func (w *Watch) OnPause(hook func()) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.mu.next
	w.mu.next++
	w.mu.hooks[id] = hook
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.mu.hooks, id)
	}
}

// Count returns the number of pauses so far. A pause counts once a tick has detected it.
func (w *Watch) Count() uint64 { return w.count.Load() }

// Young reports whether less time has passed since New than the shortest pause that is surely
// detected.
func (w *Watch) Young() bool { return bootclock.Since(w.began) <= w.every+w.limit }

// Limit returns the permitted delay of a tick.
func (w *Watch) Limit() time.Duration { return w.limit }

// Check returns an error, which wraps ErrPaused, if there was a pause since Count returned count,
// also one that no tick has detected yet. now is the present moment.
func (w *Watch) Check(count uint64, now bootclock.Instant) error {
	if w.stopped.Load() {
		return nil
	}
	if late := w.late(now); late > 0 { // before the count is read: see the package comment
		return fmt.Errorf("%w: its last sign of life is %v old", ErrPaused,
			(late + w.limit + w.every).Round(time.Millisecond))
	}
	if w.count.Load() != count {
		return ErrPaused
	}
	return nil
}

// late returns the delay of the next tick beyond the limit; not above 0 if there is none.
func (w *Watch) late(now bootclock.Instant) time.Duration {
	return now.Sub(w.began) - time.Duration(w.tick.Load()) - w.every - w.limit
}

func (w *Watch) note(now bootclock.Instant) { w.tick.Store(int64(now.Sub(w.began))) }

func (w *Watch) run(paused func(length time.Duration)) {
	defer close(w.done)
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-w.stop:
			return
		}
		now := bootclock.Now()
		late := w.late(now)
		if late > 0 {
			w.count.Add(1) // before the tick is noted
		}
		w.note(now) // and not a later moment: the process may be paused between these lines
		if late <= 0 {
			continue
		}
		paused(late + w.limit)
		for _, hook := range w.hooks() {
			hook()
		}
	}
}

func (w *Watch) hooks() []func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	hooks := make([]func(), 0, len(w.mu.hooks))
	for _, hook := range w.mu.hooks {
		hooks = append(hooks, hook)
	}
	return hooks
}
