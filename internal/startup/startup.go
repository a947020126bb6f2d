// Package startup sets how a process uses memory: it keeps the start of a command quick, garbage
// collections rare while the heap is small, and the memory of an idle server small.
package startup

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// leastGoal is the least heap, in bytes, at which garbage is collected; Go's own is smallestGoal.
//
// A start allocates some 4 MB before a command does anything, most of it the tables of the AWS SDK.
// That is where Go collects for the first time, for 2 ms in vain: all of it is in use. A server
// with little data would mark these tables again for each 4 MB that its calls allocate, which took
// an eighth of its processor time under load.
const leastGoal = 32 << 20

// smallestGoal is the least heap at which Go collects with a GOGC of 100. It grows with GOGC.
const smallestGoal = 4 << 20

// A function of main would be too late: the SDK makes its tables before main.
func init() {
	if os.Getenv("GOGC") == "" {
		adjust(debug.SetGCPercent(-1))
	}
}

// adjust sets GOGC for leastGoal, now and after each collection. least is its setting from a live
// heap of half of leastGoal on.
func adjust(least int) {
	read := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
	}
	metrics.Read(read)
	live, roots := read[0].Value.Uint64(), read[1].Value.Uint64()+read[2].Value.Uint64()
	debug.SetGCPercent(percentFor(live, roots, least))
	// The next collection finds that nothing refers to the array. It must not be smaller: tiny
	// values share a block, which lives as long as the others of it.
	runtime.AddCleanup(new([64]byte), adjust, least)
}

// percentFor returns the setting of GOGC with which the next collection comes at leastGoal; at
// least least. Go adds the percentage of the live heap and of the roots, which are stacks and
// globals (the Go GC guide): thousands of goroutines have more stacks than heap.
func percentFor(live, roots uint64, least int) int {
	percent := leastGoal * 100 / smallestGoal
	if all := live + roots; all > 0 {
		percent = min(percent, int((leastGoal-min(live, leastGoal))*100/all))
	}
	return max(percent, least)
}

// Settle ends the start: on Linux the pages of the binary go back to the operating system. A start
// touches pages all over it that are not used again, but count as the process' memory. Those that
// the process still uses return by themselves, for a page fault each, from the cache of files.
func Settle() error { return releaseBinary() }
