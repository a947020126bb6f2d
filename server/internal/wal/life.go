package wal

// Life returns the number of this life of the directory, which is above those of all lives before,
// and whether the life before may have lost frames that it had acknowledged: it synced at intervals
// and did not end in order. What was read of those frames may be known elsewhere, so that their
// numbers must not be given again. Up to format 3 the directory does not say how it was synced, and
// any life that did not end in order counts. After Start.
func (l *Log) Life() (number uint64, lossy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.first, l.mu.lossy
}

// acks is when this life acknowledges frames.
func (l *Log) acks() acks {
	if l.cfg.SyncInterval > 0 {
		return acksEarly
	}
	return acksSynced
}
