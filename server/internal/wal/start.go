package wal

import (
	"context"
	"errors"
	"fmt"
)

// Start restores the snapshot, replays the log, and begins to take frames. On a disk without room
// for a log file it begins read-only: the log is stalled and continues once there is room, as it
// would after any other stall. ctx limits Start only; background work continues until Close.
// Errors: *CorruptError if durable data cannot be read, and those of the machines and the file
// system. After an error the log can only be closed.
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
	s := &starter{log: l}
	if err := s.begin(ctx); err != nil {
		return fmt.Errorf("start the log in %s: %w", l.cfg.Dir, err)
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.mu.Lock()
	l.mu.state = stateRunning
	l.room.refuse(l.refusal())
	due := int64(l.mu.queue.end-l.mu.snapshot) >= l.cfg.FileSize
	l.mu.asked = l.mu.snapshot
	if due {
		l.mu.asked = l.mu.queue.end
	}
	l.mu.Unlock()
	if due {
		nudge(l.checkpoint)
	}
	if readOnly := l.current() == nil; readOnly {
		l.group.Go(s.openLater)
	} else {
		l.group.Go(l.commit)
		l.group.Go(l.prepare)
	}
	l.group.Go(func() { l.checkpoints(background) })
	l.group.Go(watcher{l}.run)
	if l.cfg.SyncInterval > 0 {
		l.group.Go(l.syncAtIntervals)
	}
	return nil
}

// starter is the start of a log. A read-only one goes on in the background.
type starter struct {
	log  *Log
	last tail // the end of the log before this life
}

func (s *starter) begin(ctx context.Context) error {
	from, err := s.log.recovery().restore()
	if err != nil {
		return from.explain(err)
	}
	files, err := s.log.folder.listFiles()
	if err != nil {
		return err
	}
	if from.at == 0 && len(from.damage) > 0 && len(files.begun()) == 0 {
		return from.explain(s.log.folder.gone(0)) // not a new directory
	}
	s.last, err = s.log.recovery().replay(ctx, files, from.at)
	if err != nil {
		return from.explain(err)
	}
	if len(files.begun()) > 0 {
		if err := s.log.folder.raiseFormat(); err != nil {
			return err
		}
	}
	for _, corrupt := range from.damage {
		s.log.logger.Warn("a snapshot is damaged; the start used the one before it and the log "+
			"since then, and nothing is lost: look for a failing disk", "file", corrupt.File,
			"reason", corrupt.Reason)
	}
	if err := s.resume(files, from); err != nil {
		return err
	}
	err = s.open()
	if err != nil && mayPass(err) && s.last.generation != 0 && !s.log.poisoned() {
		s.readOnly(err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.log.folder.raiseFormat(); err != nil { // also for a new one: see formatVersion
		return err
	}
	if err := s.log.folder.removeSnapshots(from.at, from.older); err != nil {
		return err
	}
	for _, keeper := range fileKeepers(s.log.machines) {
		if err := keeper.Began(); err != nil {
			return err
		}
	}
	return nil
}

// resume sets the log's places after a replay, and removes the files without use.
func (s *starter) resume(files logFiles, from base) error {
	end, at, keep := s.last.end, from.at, from.at
	if !s.log.cfg.KeepOne && firstNeeded(files.begun(), from.older) >= 0 {
		keep = from.older
	}
	s.log.mu.Lock()
	s.log.mu.queue.end, s.log.mu.written, s.log.mu.synced, s.log.mu.snapshot = end, end, end, at
	s.log.mu.marked = end // the next file's first block records the sync up to here
	s.log.mu.segments, s.log.mu.spares = files.needed(keep)
	s.log.mu.lossy = s.last.lossy
	s.log.mu.first = files.highest() + 1
	s.log.mu.fresh = s.log.mu.first
	surplus := s.surplus(files)
	s.log.mu.Unlock()
	s.log.landed.Store(uint64(end))
	s.log.room.land(end, 0)
	for _, generation := range surplus {
		if err := s.log.folder.remove(generation); err != nil {
			return err
		}
	}
	return nil
}

// open makes the file in which the log continues. It is a new file with a new generation: the
// rest of the last file may hold frames that were cut off as a torn tail, and this life must not
// find them again at the same LSN.
func (s *starter) open() error {
	// A life that wrote nothing leaves its file to this one: restarts in a row take no space.
	if _, err := s.untake(s.log.cfg.FileSize); err != nil {
		return err
	}
	file, err := s.log.makeFile(s.log.cfg.FileSize)
	switch {
	case err == nil:
		s.log.setFileErr(nil)
	case mayPass(err):
		file, err = s.takeTail(err)
	}
	if err != nil {
		return err
	}
	if s.log.mu.lossy { // and stays so if this start is interrupted before the life's first file
		file.acks = acksEarly
	}
	if err = s.log.folder.announce(s.last, file.generation); err == nil {
		err = file.begin(s.last.end)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.log.mu.Lock()
	s.log.mu.file = file
	s.log.mu.Unlock()
	return s.log.syncWritten()
}

// surplus reduces the spares to keepSpares and returns the others.
func (s *starter) surplus(files logFiles) []uint64 {
	keep, surplus := s.log.mu.spares[:0:0], []uint64(nil)
	for _, generation := range s.log.mu.spares {
		if len(keep) <= keepSpares && files.size(generation) == s.log.cfg.FileSize {
			keep = append(keep, generation)
		} else {
			surplus = append(surplus, generation)
		}
	}
	s.log.mu.spares = keep
	return surplus
}
