package serverclock

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// file is the clock's file. It belongs to one party at a time: Open's caller, then Start's, then
// the writer, then Close's.
type file struct {
	vfs.File
	newest record
	failed *record // the disk may have it or not; nil: none
}

// Open makes a clock with the file in Config.Dir and goes on from the newest record. No other
// process may use Dir. Directories of older versions have no such file. The caller raises the clock
// to the times of its own data by NotBefore, calls Start, and ends the clock with Close.
func Open(cfg Config) (*Clock, error) {
	c := New(cfg)
	name := path.Join(c.cfg.Dir, FileName)
	f, err := c.cfg.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = c.cfg.FS.Create(name); err == nil {
			err = c.cfg.FS.SyncDir(c.cfg.Dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the clock's file: %w", err)
	}
	c.file = &file{File: f}
	r, ok, err := readRecord(f)
	if err == nil {
		err = f.Allocate(fileSize) // a record in place needs no room later
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the clock's file: %w", err), f.Close())
	}
	if ok {
		c.file.newest = r
		c.NotBefore(r.floor(c.boot()))
	}
	return c, nil
}

// Start makes the first record and keeps it up to date until Close. From then on no stamp is later
// than the file permits. Without a file it only compares the system's clock with the latest time
// of the data.
func (c *Clock) Start() error {
	c.begin()
	if c.file == nil {
		return nil
	}
	if err := c.record(false); err != nil {
		return err
	}
	c.mu.Lock()
	c.mu.started = true
	c.mu.Unlock()
	c.done.Go(c.write)
	return nil
}

// write is the writer: it makes a record once a minute, and at a reader's request.
func (c *Clock) write() {
	timer := time.NewTimer(refreshEvery)
	defer timer.Stop()
	failed := false
	for {
		kick := c.kick
		if failed {
			kick = nil // the timer decides
		}
		select {
		case <-timer.C:
		case <-kick:
		case <-c.stop:
			return
		}
		err := c.record(false)
		if err != nil && !failed {
			c.cfg.Logger.Warn("the server's clock cannot be noted, and stops soon; trying again",
				"error", err)
		}
		failed = err != nil
		wait := refreshEvery
		if failed {
			wait = retryAfter
		}
		timer.Reset(wait)
	}
}

// record makes a record of the time now, or of the last reading if it is the final one. Once the
// record is durable, readers follow it. Until then both the earlier record and the new one hold: a
// crash may leave either, and each permits all readings so far. The same is true of a record that
// could not be written or synced, for the disk may have it: it is written again first.
func (c *Clock) record(final bool) error {
	if c.file.failed != nil {
		if err := c.put(*c.file.failed); err != nil {
			return err
		}
	}
	boot, _ := c.boot()
	s := c.look()
	c.mu.Lock()
	next := limit{vouched: c.last.Load(), since: time.Now()}
	if final {
		next.ceiling = next.vouched
	} else {
		next.vouched = max(next.vouched, s.stamp)
		next.ceiling = next.vouched + ceilingAhead.Milliseconds()
	}
	if c.mu.started {
		c.mu.limits = append(c.mu.limits, next)
	}
	c.mu.Unlock()
	if err := c.put(record{
		number: c.file.newest.number + 1, vouched: next.vouched, ceiling: next.ceiling,
		boot: boot, since: s.at, elapsed: s.elapsed, wall: s.wall, jump: s.jump, pace: s.pace,
		accepted: s.accepted, past: s.past,
	}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.limits = append(c.mu.limits[:0:0], next)
	return nil
}

// put makes a record durable, in the slot without the newest one.
func (c *Clock) put(r record) error {
	c.file.failed = &r
	if _, err := c.file.WriteAt(r.encode(), int64(r.number%slots)*slotEvery); err != nil {
		return fmt.Errorf("write the clock's file: %w", err)
	}
	if err := c.file.Sync(); err != nil {
		return fmt.Errorf("sync the clock's file: %w", err)
	}
	c.file.newest, c.file.failed = r, nil
	return nil
}

// Close stops the clock at its last reading, and records that, so that a restart goes on exactly
// there.
func (c *Clock) Close() error {
	c.mu.Lock()
	started, closed := c.mu.started, c.mu.closed
	c.mu.closed = true
	c.mu.Unlock()
	if c.file == nil || closed {
		return nil
	}
	close(c.stop)
	c.done.Wait()
	var err error
	if started { // otherwise it has not been read
		err = c.record(true)
	}
	return errors.Join(err, c.file.Close())
}
