package wal

// Life returns the number of this life of the directory, which exceeds the numbers of all lives
// before it, and whether the life before may have lost acknowledged frames. A life may lose some
// if it synced at intervals and did not end in order. Clients may have read those frames, so
// their sequence numbers must not be used again. Directories up to format 3 do not record how a
// life synced; there every life that did not end in order counts as lossy. Call Life after Start.
func (l *Log) Life() (number uint64, lossy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.first, l.mu.lossy
}

// acks returns the time at which this life acknowledges frames.
func (l *Log) acks() acks {
	if l.cfg.SyncInterval > 0 {
		return acksEarly
	}
	return acksSynced
}
