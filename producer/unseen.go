package producer

import (
	"errors"
	"fmt"
	"sync"
)

// UnseenError is returned by Flush and Close for undelivered records with results that no code has
// looked at: neither Config.OnResult nor a callback got them, and neither Wait nor Done of their
// Future was called. It matches the errors of First.
type UnseenError struct {
	Stream string // as in the Config
	// Count is how many records these are: those since the last UnseenError, which reports each
	// record once.
	Count int
	// First is the result of the first of them.
	First *UndeliveredError
}

// Error returns one sentence with the number of records and the first cause.
func (e *UnseenError) Error() string {
	if e.Count == 1 {
		return "a record was not delivered: " + e.First.Error()
	}
	return fmt.Sprintf("%d records were not delivered; the first: %v", e.Count, e.First)
}

// Unwrap returns First.
func (e *UnseenError) Unwrap() error { return e.First }

// unseen counts the undelivered records with results that no code has looked at.
type unseen struct {
	mu    sync.Mutex
	epoch int // counts the takes, from 1; futures remember in which they were added
	count int
	// firsts are the first ones, in order, so that there is another one when the first is looked
	// at; last is for when that happened to all of them.
	firsts []unseenResult
	last   *UndeliveredError
}

// maxFirsts bounds the results that are kept for the sake of one sentence.
const maxFirsts = 64

type unseenResult struct {
	future *Future // nil: the record has none
	err    *UndeliveredError
}

// add counts a result that nothing was called with, unless its future was looked at.
func (u *unseen) add(f *Future, result error) {
	var err *UndeliveredError
	if !errors.As(result, &err) || errors.Is(err.Reason, ErrClosed) ||
		errors.Is(err.Reason, ErrHalted) {
		return // Close, or the HaltedError, reports those that were left
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if f != nil {
		if f.looks.Load() > 0 {
			return
		}
		f.added = u.epoch + 1
	}
	u.count++
	u.last = err
	if len(u.firsts) < maxFirsts {
		u.firsts = append(u.firsts, unseenResult{f, err})
	}
}

// saw takes a future out that was added.
func (u *unseen) saw(f *Future) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f.added == u.epoch+1 {
		u.count--
	}
	f.added = 0
}

// take returns the error of all that were added since the last take, or nil.
func (u *unseen) take(stream string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count == 0 {
		return nil
	}
	err := &UnseenError{Stream: stream, Count: u.count, First: u.last}
	for _, r := range u.firsts {
		if r.future == nil || r.future.added > 0 {
			err.First = r.err
			break
		}
	}
	u.epoch++
	u.count, u.firsts, u.last = 0, nil, nil
	return err
}
