package server

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// reliefAfter is the time after the last large call until the memory of such calls goes back to
	// the operating system. Go alone takes minutes, since an idle program seldom collects garbage.
	reliefAfter = 10 * time.Second
	// reliefAbove is the growth of the heap from which on it is worth a collection.
	reliefAbove = 64 << 20
)

// relief gives the memory of large calls back once there are no more. It looks at the heap, and not
// at the budgets of bodies and answers: parsing a document of 5 MB may take 100 MB.
type relief struct {
	mu    sync.Mutex
	timer *time.Timer

	left atomic.Uint64 // of the heap, after the last relief
}

// ended notes the end of a large call.
func (r *relief) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		r.timer = time.AfterFunc(reliefAfter, r.run)
		return
	}
	r.timer.Reset(reliefAfter)
}

func (r *relief) run() {
	held, live := heap()
	if held < min(r.left.Load(), live)+reliefAbove { // the data may have shrunk since
		return
	}
	debug.FreeOSMemory()
	debug.FreeOSMemory() // what the pools of buffers keep over one collection
	held, _ = heap()
	r.left.Store(held)
}

// heap returns the bytes of the heap that the process holds, with garbage and with free pages that
// have not gone back to the operating system, and those that were in use at the last collection.
func heap() (held, live uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	for _, s := range samples[1:] {
		held += s.Value.Uint64()
	}
	return held, samples[0].Value.Uint64()
}

// stop ends the relief.
func (r *relief) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}
