package itemstore

import "sync/atomic"

// Units counts the capacity units that calls have used of a table and of its indexes since the
// start, in any billing mode. The store's callers compute and add them. It is safe for concurrent
// use.
type Units struct{ read, write atomic.Int64 } // halves

// AddRead adds units of a read, a multiple of a half.
func (u *Units) AddRead(units float64) { u.read.Add(int64(2 * units)) }

// AddWrite adds units of a write.
func (u *Units) AddWrite(units float64) { u.write.Add(int64(2 * units)) }

// Total returns the sums.
func (u *Units) Total() (read, write float64) {
	return float64(u.read.Load()) / 2, float64(u.write.Load()) / 2
}
