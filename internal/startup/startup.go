// Package startup keeps the start of a command quick, and the memory of an idle server small.
//
// A start allocates some 4 MB before a command does anything, most of it the tables of the AWS SDK.
// That is where Go collects for the first time, for 2 ms in vain: all of it is in use. And it
// touches pages all over the binary that are not used again, but count as the process' memory.
package startup

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// firstCollection is the setting of GOGC until the first collection. The first one then comes at a
// heap of 16 MiB: 4 MiB for each 100.
const firstCollection = 400

// collector is the process' garbage collector.
type collector struct {
	putOff sync.Once
	before int // the setting of GOGC before; 0: it was not changed
	resume sync.Once
}

var process collector

// A function of main would be too late: the SDK makes its tables before main.
func init() { process.putOffCollection() }

// putOffCollection puts the first garbage collection off until the heap has 16 MiB, once in a
// process. From that collection on, or from Settle, the setting is as before. It does nothing if
// the environment sets GOGC.
//
// The bound is in bytes and not in time, since a server that recovers a large directory allocates
// far more than that in its start.
func (c *collector) putOffCollection() {
	c.putOff.Do(func() {
		if os.Getenv("GOGC") != "" {
			return
		}
		c.before = debug.SetGCPercent(firstCollection)
		// The first collection finds that nothing refers to the array. It must not be smaller: tiny
		// values share a block, which lives as long as the others of it.
		runtime.AddCleanup(new([64]byte), (*collector).resumeCollection, c)
	})
}

func (c *collector) resumeCollection() {
	c.resume.Do(func() {
		if c.before != 0 {
			debug.SetGCPercent(c.before)
		}
	})
}

// Settle ends the start: collections come as usual, and on Linux the pages of the binary go back to
// the operating system. Those that the process still uses return by themselves, for a page fault
// each, from the cache of files.
func Settle() error {
	process.putOff.Do(func() {}) // later is too late
	process.resumeCollection()
	return releaseBinary()
}
