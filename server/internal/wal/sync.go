package wal

import "time"

// syncAtIntervals is the interval syncer's goroutine. It syncs once an interval after the first
// write.
func (l *Log) syncAtIntervals() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		select {
		case <-l.dirty:
		case <-l.stop:
			return
		}
		timer.Reset(l.cfg.SyncInterval)
		select {
		case <-timer.C:
		case <-l.stop:
			return
		}
		if err := l.syncWritten(); err != nil {
			return // the log is poisoned
		}
	}
}
