package wal

import (
	"context"
	"errors"
	"fmt"
)

// Close commits all appended frames, makes a checkpoint and releases the directory. Sequence
// returns ErrClosed as soon as Close begins. If ctx ends first, Close abandons the frames that
// are not durable, and returns once the file-system call in progress has returned. Further calls
// of Close wait for the first one and return its result. An error that is ErrNoLastCheckpoint says
// that nothing is lost.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	was := l.mu.state
	l.mu.state = max(was, stateClosing)
	if was == stateRunning && l.mu.poison == nil {
		l.room.refuse(ErrClosed)
	}
	l.mu.Unlock()
	if was >= stateClosing {
		select {
		case <-l.closed:
			return l.closeErr
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	close(l.closing)
	var err error
	if was == stateRunning {
		err = l.finish(ctx)
	}
	if err = errors.Join(err, l.folder.lock.Close()); err != nil {
		err = fmt.Errorf("close the log in %s: %w", l.cfg.Dir, err)
	}
	l.closeErr = err
	close(l.closed)
	return err
}

// finish makes all frames durable and ends the goroutines.
func (l *Log) finish(ctx context.Context) error {
	l.gate.Lock() // waits for running functions; later callers of Sequence get ErrClosed
	l.shut.Store(true)
	l.gate.Unlock()
	l.mu.Lock()
	end := l.mu.queue.end
	l.mu.Unlock()
	err := l.Wait(ctx, end)
	if err == nil {
		err = lastSnap(ctx, l)
	}
	l.cancel()
	close(l.stop)
	l.group.Wait()
	if err == nil {
		l.noteEnd()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.state = stateClosed
	l.mu.queue.fail()
	if l.mu.file == nil { // it was read-only
		return err
	}
	return errors.Join(err, l.mu.file.Close())
}

// lastSnap makes the snapshot of the end. If it fails, as on a full disk, the log may still have
// everything: the error says so once a sync has proven it.
func lastSnap(ctx context.Context, l *Log) error {
	err := l.snap(ctx)
	if err == nil {
		return nil
	}
	// With a SyncInterval, frames count as durable before they are synced.
	switch unsynced := l.syncWritten(); {
	case unsynced == nil:
	case errors.Is(err, unsynced): // it is why there is no snapshot
		return err
	default:
		return errors.Join(err, unsynced)
	}
	return fmt.Errorf("%w: %w", ErrNoLastCheckpoint, err)
}

// noteEnd writes a note into the last file that no further file follows, so that the next start
// need not search for one. All frames are already durable: without the note that start only takes
// longer.
func (l *Log) noteEnd() {
	l.mu.Lock()
	file, end, known := l.mu.file, l.mu.queue.end, l.mu.synced == l.mu.queue.end
	l.mu.Unlock()
	if !known || file == nil {
		return
	}
	err := file.writeNote(file.File, end, 0, true)
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		l.logger.Warn("could not note the end of the log; the next start looks for it",
			"error", err)
	}
}
