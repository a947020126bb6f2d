package itemstore

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// chain is the durable form of the items: data files in their order, of which a later one
// overrides the earlier ones, and the tail. A snapshot names the files and holds the tail.
//
// A checkpoint adds the entries that changed since the one before to the tail. A tail that has
// become too long goes into a new file. So a checkpoint writes what changed, and not all items.
//
// Overridden records stay in the older files. When the files are much longer than the items, a
// sweep begins: it walks through all tables, and each checkpoint writes the next slice of the
// present items into a file. Every item is in a slice then, or in a file or the tail after the
// sweep began; the files from before are dropped. The slice is larger than the checkpoint's
// changes, so the sweep gains on them, and no checkpoint writes more than some multiple of the
// log that it covers.
//
// A store that fits into the tail has no files. As long as it never had any, its snapshots have the
// form that holds all items. Later ones keep the next file's number, so that a start knows which
// files the snapshot before it may name.
//
// Freeze and the function that it returns use the chain, one at a time.
type chain struct {
	files  files
	limits limits
	logger *slog.Logger

	frozen []frozenChanges // not in the tail yet, oldest first
	tail   map[spot]*entry
	list   []dataFile
	sweep  sweep
	left   []spot // which the last slice left out
	forced bool   // a file is damaged: the next sweep begins now

	next   uint64          // the least number that no file had
	named  map[uint64]bool // the files of the snapshot that was made last
	before map[uint64]bool // those of the last one that is durable
	found  map[uint64]bool // the files in the folder; nil: not listed yet
}

// spot is the place of an item in a table.
type spot struct {
	table uint64
	place string
}

// frozenChanges holds the changes of a table up to a Freeze.
type frozenChanges struct {
	table uint64
	dirty map[string]*entry
}

// sweep is the state of a sweep.
type sweep struct {
	phase sweepPhase
	from  int // the files before this one in the list are dropped at the end
	// The walk goes on at these.
	table uint64
	place string
}

type sweepPhase byte

const (
	sweepNone sweepPhase = iota
	sweepRuns
	sweepDone // all slices are written: the next checkpoint drops the files
	sweepPhases
)

// limits are lengths in bytes. They follow the length of a log file, which is the log of a
// checkpoint.
type limits struct {
	tail   int64 // of the tail
	block  int64 // of a block
	sector int   // of what a disk loses as a whole: 4 KiB with log files of 64 MiB
	file   int64 // about the most of a file
	slice  int64 // of a sweep, and twice the checkpoint's changes
	slack  int64 // of files, beyond twice the items
}

// maxFiles bounds the number of files: a sweep begins above it.
const maxFiles = 512

func limitsFor(logFile int64) limits {
	return limits{
		tail: logFile / 64, block: logFile / 64, file: logFile, slice: logFile / 4,
		slack: logFile / 4, sector: int(min(max(1, logFile/64/256), 4<<10)),
	}
}

// snapshot writes the changes into the chain, and returns the snapshot that names it.
func (c *chain) snapshot(ctx context.Context, f *freeze) ([]byte, error) {
	c.merge(f)
	if f.whole {
		c.list, c.sweep = nil, sweep{}
	}
	if len(c.list) == 0 {
		for at, e := range c.tail { // there is nothing that a removal could override
			if e.body == "" {
				delete(c.tail, at)
			}
		}
	}
	records := c.sorted()
	size := lengthOf(records)
	if c.files.fs != nil && size > c.limits.tail {
		if err := c.store(ctx, records); err != nil {
			return nil, err
		}
		records = nil
	} else {
		size = 0
	}
	c.left = nil
	if len(c.list) > 0 {
		if c.sweep.phase == sweepDone {
			c.list, c.sweep = slices.Clone(c.list[c.sweep.from:]), sweep{}
		}
		if err := c.step(ctx, f, size); err != nil {
			// The snapshot needs no sweep. On a full disk it may even free the space for one.
			c.logger.Warn("could not rewrite items; the next snapshot goes on", "error", err)
		}
	}
	c.named = map[uint64]bool{}
	for _, file := range c.list {
		c.named[file.id] = true
	}
	if len(c.list) == 0 && c.next <= 1 {
		return f.encodeAll(records)
	}
	return f.encode(c, records)
}

// merge adds the frozen changes to the tail, and forgets tables that are gone.
func (c *chain) merge(f *freeze) {
	if c.tail == nil {
		c.tail = map[spot]*entry{}
	}
	for _, changes := range c.frozen {
		for place, e := range changes.dirty {
			c.tail[spot{changes.table, place}] = e
		}
	}
	c.frozen = nil
	there := map[uint64]bool{}
	for _, t := range f.tables {
		there[t.id] = true
	}
	for at := range c.tail {
		if !there[at.table] {
			delete(c.tail, at)
		}
	}
}

// sorted returns the tail by table and place.
func (c *chain) sorted() []record {
	records := make([]record, 0, len(c.tail))
	for at, e := range c.tail {
		records = append(records, record{at.table, e})
	}
	slices.SortFunc(records, func(a, b record) int {
		if a.table != b.table {
			return cmp.Compare(a.table, b.table)
		}
		return strings.Compare(a.place, b.place)
	})
	return records
}

func lengthOf(records []record) (size int64) {
	for _, r := range records {
		size += r.length()
	}
	return size
}

// store moves records of the tail into files. After an error the rest is still in the tail.
func (c *chain) store(ctx context.Context, records []record) error {
	for len(records) > 0 {
		n, size := 0, int64(0)
		for n < len(records) && (n == 0 || size < c.limits.file) {
			size += records[n].length()
			n++
		}
		if err := c.add(ctx, records[:n]); err != nil {
			return err
		}
		for _, r := range records[:n] {
			delete(c.tail, spot{r.table, r.place})
		}
		records = records[n:]
	}
	return nil
}

// add writes the next file.
func (c *chain) add(ctx context.Context, records []record) error {
	if err := c.look(); err != nil {
		return err
	}
	file, err := c.files.write(ctx, c.next, records, c.limits)
	c.next++ // also after an error: a name that may be durable is not used again
	if err != nil {
		return err
	}
	c.found[file.id] = true
	c.list = append(c.list, file)
	return nil
}

// look lists the folder once.
func (c *chain) look() error {
	if c.found != nil || c.files.fs == nil {
		return nil
	}
	ids, _, err := c.files.list()
	if err != nil {
		return err
	}
	c.found = map[uint64]bool{}
	for _, id := range ids {
		c.found[id] = true
		c.next = max(c.next, id+1)
	}
	c.next = max(c.next, 1)
	return nil
}

// step writes the next slice of a sweep, if one runs or has to begin. changed is the number of
// bytes that the checkpoint has written besides.
func (c *chain) step(ctx context.Context, f *freeze, changed int64) error {
	if c.sweep.phase == sweepNone {
		held := int64(0)
		for _, file := range c.list {
			held += file.size
		}
		items := f.stored + f.stored/stripes // with the parity
		if held <= 2*items+c.limits.slack && len(c.list) <= maxFiles && !c.forced {
			return nil
		}
		c.sweep = sweep{phase: sweepRuns, from: len(c.list)}
		c.forced = false
	}
	records, left, next := f.slice(c.sweep, c.limits.slice+2*changed)
	if len(records) > 0 {
		if err := c.add(ctx, records); err != nil {
			return err
		}
	}
	c.sweep, c.left = next, left
	return nil
}

// Keep implements wal.FileKeeper: it removes the files that no kept snapshot names.
func (s *Store) Keep(older bool) error {
	c := &s.chain
	if c.files.fs == nil {
		return nil
	}
	if err := c.look(); err != nil {
		return err
	}
	var errs []error
	for id := range c.found {
		if c.named[id] || older && c.before[id] {
			continue
		}
		if err := c.files.fs.Remove(c.files.name(id)); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(c.found, id)
	}
	c.before = c.named
	return errors.Join(errs...)
}

// Began implements wal.FileKeeper. It removes the files of checkpoints that did not end. The
// snapshot from which the start began was made before them, and so was the one before it.
func (s *Store) Began() error {
	c := &s.chain
	if c.files.fs == nil {
		return nil
	}
	ids, unfinished, err := c.files.list()
	errs := []error{err}
	for _, name := range unfinished {
		errs = append(errs, c.files.fs.Remove(name))
	}
	known := c.next
	for _, id := range ids {
		if id >= known {
			errs = append(errs, c.files.fs.Remove(c.files.name(id)))
		}
		c.next = max(c.next, id+1) // a backup may have copied a file of this number
	}
	s.memory.found = s.memory.used.Load()
	c.found = nil
	return errors.Join(append(errs, c.look())...)
}

var _ wal.FileKeeper = (*Store)(nil)
