package wal

// mark appends a mark, if one is due: a frame without content. Like every frame it tells up to
// where the log was synced, so that damage to the batch before it is told from a torn tail. Its
// own batch needs no other: there is nothing in it to lose. So an idle log writes one mark, and
// nothing more.
//
// It is due if frames came since the last one, no snapshot holds them, and they are synced. It
// reports true if that last point is all that is missing: then it is worth another look.
func (l *Log) mark() (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end, file := l.mu.queue.end, l.mu.file
	switch {
	case l.mu.poison != nil, l.mu.state != stateRunning, l.landed.Load() != uint64(end):
		return false // what is pending lands, and then comes the next look
	case end == l.mu.marked, end == l.mu.snapshot:
		return false
	case l.mu.synced != end:
		return true // at an interval
	case file.off+frameHeader > file.size:
		// Not worth a file of its own, for which there may be no room. The next frame begins
		// one, and its first block tells as much.
		l.mu.marked = end
		return false
	}
	l.mu.queue.tail(frameHeader).add(kindMark, 0, nil, nil)
	l.mu.queue.end += frameHeader
	l.mu.marked = l.mu.queue.end
	l.room.add(frameHeader)
	return false
}
