package wal

import (
	"context"
	"errors"
	"fmt"
)

// Start restores the snapshot, replays the log, and begins to take frames. ctx limits Start only;
// background work continues until Close. Errors: *CorruptError if durable data cannot be read,
// and those of the machines and the file system. After an error the log can only be closed.
func (l *Log) Start(ctx context.Context) error {
	l.mu.Lock()
	again := l.mu.begun || l.mu.state != stateOpen
	l.mu.begun = true
	l.mu.Unlock()
	if l.cfg.ReadOnly {
		return errReadOnly
	}
	if again {
		return errors.New("start the log: it was started before")
	}
	if err := l.begin(ctx); err != nil {
		return fmt.Errorf("start the log in %s: %w", l.cfg.Dir, err)
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.mu.Lock()
	l.mu.state = stateRunning
	l.room.refuse(nil)
	due := int64(l.mu.queue.end-l.mu.snapshot) >= l.cfg.FileSize
	l.mu.asked = l.mu.snapshot
	if due {
		l.mu.asked = l.mu.queue.end
	}
	l.mu.Unlock()
	if due {
		nudge(l.checkpoint)
	}
	l.group.Go(l.commit)
	l.group.Go(l.prepare)
	l.group.Go(func() { l.checkpoints(background) })
	if l.cfg.SyncInterval > 0 {
		l.group.Go(l.syncAtIntervals)
	}
	return nil
}

func (l *Log) begin(ctx context.Context) error {
	from, err := l.recovery().restore()
	if err != nil {
		return from.explain(err)
	}
	files, err := l.folder.listFiles()
	if err != nil {
		return err
	}
	if from.at == 0 && len(from.damage) > 0 && len(files.begun()) == 0 {
		return from.explain(l.folder.gone(0)) // not a new directory
	}
	last, err := l.recovery().replay(ctx, files, from.at)
	if err != nil {
		return from.explain(err)
	}
	if len(files.begun()) > 0 {
		if err := l.folder.raiseFormat(); err != nil {
			return err
		}
	}
	if err := l.open(files, from, last); err != nil {
		return err
	}
	if err := l.folder.raiseFormat(); err != nil { // also for a new directory: see formatVersion
		return err
	}
	for _, corrupt := range from.damage {
		l.logger.Warn("a snapshot is damaged; the start used the one before it and the log since "+
			"then, and nothing is lost: look for a failing disk", "file", corrupt.File,
			"reason", corrupt.Reason)
	}
	return l.folder.removeSnapshots(from.at, from.older)
}

// open makes the file in which the log continues. It is a new file with a new generation: the
// rest of the last file may hold frames that were cut off as a torn tail, and this life must not
// find them again at the same LSN.
func (l *Log) open(files logFiles, from base, last tail) error {
	end, at, keep := last.end, from.at, from.at
	if !l.cfg.KeepOne && firstNeeded(files.begun(), from.older) >= 0 {
		keep = from.older
	}
	l.mu.Lock()
	l.mu.queue.end, l.mu.written, l.mu.synced, l.mu.snapshot = end, end, end, at
	l.mu.marked = end // its first block records the sync up to here
	l.mu.segments, l.mu.spares = files.needed(keep)
	l.mu.lossy = last.lossy
	l.mu.first = files.highest() + 1
	l.mu.fresh = l.mu.first
	surplus := l.surplus(files)
	l.mu.Unlock()
	l.landed.Store(uint64(end))
	for _, generation := range surplus {
		if err := l.folder.remove(generation); err != nil {
			return err
		}
	}
	file, err := l.makeFile()
	if err != nil {
		return err
	}
	if l.mu.lossy { // and stays so if this start is interrupted before the life's first file
		file.acks = acksEarly
	}
	l.mu.Lock()
	l.mu.file = file
	l.mu.Unlock()
	if err = l.folder.announce(last, file.generation); err == nil {
		err = file.begin(end)
	}
	if err == nil {
		err = l.syncWritten()
	}
	if err != nil {
		err = errors.Join(err, file.Close())
	}
	return err
}

// surplus reduces the spares to keepSpares and returns the others.
func (l *Log) surplus(files logFiles) []uint64 {
	keep, surplus := l.mu.spares[:0:0], []uint64(nil)
	for _, generation := range l.mu.spares {
		if len(keep) <= keepSpares && files.size(generation) == l.cfg.FileSize {
			keep = append(keep, generation)
		} else {
			surplus = append(surplus, generation)
		}
	}
	l.mu.spares = keep
	return surplus
}
