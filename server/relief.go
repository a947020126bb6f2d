package server

import (
	"runtime/debug"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
)

const (
	// reliefAfter is the time after the last large call until the memory of such calls goes back to
	// the operating system. Go alone takes minutes, since an idle program seldom collects garbage.
	reliefAfter = 10 * time.Second
	// reliefAbove is the memory of large calls from which on it is worth a collection.
	reliefAbove = 64 << 20
)

// relief gives the memory of large calls back once there are no more.
type relief struct {
	of []*budget.Budget

	mu    sync.Mutex
	timer *time.Timer
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
	peak := int64(0)
	for _, b := range r.of {
		peak += b.TakePeak()
	}
	if peak >= reliefAbove {
		debug.FreeOSMemory()
		debug.FreeOSMemory() // what the pools of buffers keep over one collection
	}
}

// stop ends the relief.
func (r *relief) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}
