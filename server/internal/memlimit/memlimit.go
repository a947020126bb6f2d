// Package memlimit bounds the memory that a server takes for its data when it keeps them in memory.
//
// A Limit adds two sums: the data that are there, which a function reads, and what calls under way
// are about to store. The second sum is taken before a call and given back after it. So any number
// of calls at once cannot pass the limit together.
package memlimit

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrFull is wrapped by the refusals of a full memory. The refused call has changed nothing.
var ErrFull = errors.New("the memory for data is full")

// Limit is a limit on memory. It is safe for concurrent use. A nil Limit never refuses.
type Limit struct {
	most  int64
	data  func() int64
	taken atomic.Int64
}

// New returns a limit of so many bytes. data returns the bytes that the data take now; it is called
// for each call that stores something.
func New(most int64, data func() int64) *Limit { return &Limit{most: most, data: data} }

// Most returns the limit in bytes.
func (l *Limit) Most() int64 { return l.most }

// Used returns the bytes in use.
func (l *Limit) Used() int64 { return l.data() + l.taken.Load() }

// Take takes bytes for a call that is about to store them. If they do not fit, it takes none and
// returns an error. The caller gives them back once they are stored, and are a part of the data.
func (l *Limit) Take(bytes int64) error {
	if l == nil {
		return nil
	}
	l.taken.Add(bytes)
	if l.Used() <= l.most {
		return nil
	}
	l.taken.Add(-bytes)
	if bytes >= 1<<20 { // much may be free
		return fmt.Errorf("%w: the call takes %s, and %s", ErrFull, size(bytes), l.use())
	}
	return l.refusal()
}

// GiveBack returns the bytes of a Take.
func (l *Limit) GiveBack(bytes int64) {
	if l != nil {
		l.taken.Add(-bytes)
	}
}

// Full returns an error if nothing more fits.
func (l *Limit) Full() error {
	if l == nil || l.Used() < l.most {
		return nil
	}
	return l.refusal()
}

// nearly is the part of the limit that is left when Warning begins: one part in so many. A large
// call is refused earlier than a small one.
const nearly = 16

// Warning returns a sentence if little is left, or "".
func (l *Limit) Warning() string {
	if l == nil || l.Used() < l.most-l.most/nearly {
		return ""
	}
	return "the memory for data is nearly full: " + l.use()
}

func (l *Limit) refusal() error { return fmt.Errorf("%w: %s", ErrFull, l.use()) }

func (l *Limit) use() string {
	return fmt.Sprintf("%s of the %s of --memory (Config.MemoryLimit) are in use: delete data, or "+
		"wait until they expire", size(l.Used()), size(l.most))
}

// size writes a number of bytes in MiB.
func size(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<19)>>20) }
