package producer

import (
	"errors"
	"fmt"
	"sync"
)

// UnseenError is returned by Flush and Close if records were not delivered and no code has looked
// at their results: Config.OnResult is nil, the record has no callback, and neither Wait nor Done
// of its Future was called. It matches the errors of First.
type UnseenError struct {
	Stream string // as in the Config
	// Count is the number of these records since the last UnseenError, which reports each
	// record once.
	Count int
	// First is the error of the first of them.
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
	epoch int // calls of take; a future remembers the epoch in which it was added
	count int
	// firsts has the first of these results, in order, so that another one can replace the first
	// when a program looks at that. last is the fallback if it has looked at all of firsts.
	firsts []unseenResult
	last   *UndeliveredError
}

// maxFirsts bounds firsts: the results are kept only for the text of one error.
const maxFirsts = 64

type unseenResult struct {
	future *Future // nil: the record has none
	err    *UndeliveredError
}

// add counts a result without a callback, unless the program has looked at its future.
func (u *unseen) add(f *Future, result error) {
	var err *UndeliveredError
	if !errors.As(result, &err) || errors.Is(err.Reason, ErrClosed) ||
		errors.Is(err.Reason, ErrHalted) {
		return // Close or the HaltedError reports the records left at the end
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

// saw uncounts the result of a future that was added.
func (u *unseen) saw(f *Future) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f.added == u.epoch+1 {
		u.count--
	}
	f.added = 0
}

// take returns the error for all results added since the last take, or nil.
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
