package wal

import (
	"context"
	"sync"
	"time"
)

// The log keeps its files from the older of two snapshots on, so it grows while a checkpoint runs.
// Where many segments need a sync each, that takes ten seconds or more, and puts would fill the
// disk meanwhile. So paced callers slow down once the log has paceFrom files of Config.FileSize,
// and it does not grow beyond paceTo. A disk that syncs all segments together needs five or six
// files with 4,000 busy shards, and the pace is then far above its rate.
//
// Paced callers slow down and do not stop: a call would otherwise wait for a whole checkpoint. Half
// of what may come during a checkpoint comes in the time that the last one took, a sixth more in
// as long again, and so on. That time is an estimate: the trap is a checkpoint that takes far
// longer than the one before. The log then still keeps its bound, and calls wait longer.
const (
	paceFrom = 6
	paceTo   = 11
	// paceLeast may come during every checkpoint, even when the log is too long already, as after a
	// backup has postponed the checkpoints.
	paceLeast = 1
	// paceTime is the least time that a checkpoint is expected to take.
	paceTime = time.Second
	// paceTick is the time between two steps of the pace.
	paceTick = 20 * time.Millisecond
)

// SequencePaced is Sequence for records, which make most of the log's bytes and can wait. While a
// checkpoint runs and the log is long, they share the bytes that it may still grow by, first come,
// first served. Their wait ends with the checkpoint, even if it fails. Other callers do not
// wait behind them: a lease must be written in time.
func (l *Log) SequencePaced(ctx context.Context, size int, fn func(tx *Tx)) error {
	return sequence(ctx, l, size, paced, fn)
}

// Rush lets paced callers go on as all others do, until end is called. A server that shuts down
// uses it: its calls must finish in time, and what they may put is bounded by the memory of their
// bodies.
func Rush(l *Log) (end func()) {
	l.room.rush(+1)
	return sync.OnceFunc(func() { l.room.rush(-1) })
}

// Paced returns the number of waits of SequencePaced's callers for a checkpoint, since the start.
func Paced(l *Log) int64 { return l.room.slowed() }

// pace is how far the log may grow during a checkpoint.
type pace struct {
	from, room LSN
	typical    time.Duration
}

// after returns the LSN that the log may reach after some time.
func (p pace) after(t time.Duration) LSN {
	return p.from + LSN(float64(p.room)*float64(t)/float64(t+p.typical))
}

// slowDown slows down paced callers until the returned function is called with the result of the
// checkpoint at at. The caller holds the snapping token.
func slowDown(l *Log, at LSN) (done func(err error)) {
	began, file, slowed := time.Now(), LSN(l.cfg.FileSize), Paced(l)
	l.mu.Lock()
	oldest := l.mu.snapshot
	if len(l.mu.segments) > 0 {
		oldest = l.mu.segments[0].start
	}
	l.mu.Unlock()
	p := pace{from: max(at, oldest+paceFrom*file), typical: max(l.typical, paceTime)}
	p.room = max(oldest+paceTo*file, p.from+paceLeast*file) - p.from
	l.room.pace(p.from)
	stop := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		tick := time.NewTicker(paceTick)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.room.pace(p.after(time.Since(began)))
			case <-stop:
				return
			}
		}
	})
	return func(err error) {
		close(stop)
		ticking.Wait()
		l.room.unpace()
		took := time.Since(began)
		if err == nil {
			l.typical = took
		}
		if slowed = Paced(l) - slowed; slowed > 0 {
			l.logger.Warn("calls waited so that the log stays short: the checkpoint "+
				"syncs segments more slowly than records come", "calls", slowed, "for", took)
		}
	}
}
