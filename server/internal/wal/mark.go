package wal

// mark appends a mark, a frame without content, if one is due. Like every frame it records how
// far the log was synced. So a start can distinguish damage to the batch before the mark from a
// torn tail. The mark itself needs no further mark, since it has no content to lose: an idle log
// writes one mark and then stops. So LSNs grow by a frame's header, 24 bytes, without a frame of
// any machine.
//
// A mark is due if frames were appended since the last one, no snapshot covers them, and they are
// synced. again is true if only the sync is missing: the caller should try again later.
func (l *Log) mark() (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end, file := l.mu.queue.end, l.mu.file
	switch {
	case l.mu.poison != nil, l.mu.state != stateRunning, l.landed.Load() != uint64(end):
		return false // the pending frames will land; that triggers the next call
	case end == l.mu.marked, end == l.mu.snapshot:
		return false
	case l.mu.synced != end:
		return true // the log syncs at intervals
	case file.off+frameHeader > file.size:
		// A mark does not justify a new file, for which the disk may have no room. The next frame
		// begins one; its first block records the same sync.
		l.mu.marked = end
		return false
	}
	l.mu.queue.tail(frameHeader).add(kindMark, 0, nil, nil)
	l.mu.queue.end += frameHeader
	l.mu.marked = l.mu.queue.end
	l.room.add(frameHeader, frameHeader)
	return false
}
