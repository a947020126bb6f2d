package putlog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// CompactAt is the size in bytes above which Frozen rewrites a journal, unless open units take half
// of it or more.
const CompactAt = 64 << 20

// Options are for tests. The zero value is the default.
type Options struct {
	FS        vfs.FS // default: the operating system's
	CompactAt int64  // default: CompactAt
}

// Journal is an open journal. Its methods are safe for concurrent use.
type Journal struct {
	fs        vfs.FS
	name      string
	compactAt int64
	lock      io.Closer
	resume    []FrozenUnit
	verify    uint64 // records that earlier runs have read
	wanted    digest // the hash of these records
	// anew has the records with the fate Again at the end of the last run. Read returns them for
	// another put. Records that get this fate in this run are the producer's own to freeze again.
	anew map[uint64]struct{}

	mu struct {
		sync.Mutex
		state
		file    vfs.File
		size    int64  // bytes written
		pending []byte // frames not yet written
		input   hash.Hash
		records uint64 // read by this run
		err     error  // the first write error; every later call returns it
	}
}

// Open opens the journal of a load, or creates it. The error wraps vfs.ErrLocked if another process
// has it open, ErrOther or ErrInput if the load differs (the text names the difference), and
// ErrNotJournal or ErrDamaged for a file that cannot be read.
func Open(name string, identity Identity, options Options) (*Journal, error) {
	j := &Journal{fs: options.FS, name: name, compactAt: options.CompactAt}
	if j.fs == nil {
		j.fs = vfs.OS{}
	}
	if j.compactAt == 0 {
		j.compactAt = CompactAt
	}
	var err error
	if j.lock, err = j.fs.Lock(name + ".lock"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err = j.open(identity); err != nil {
		if j.mu.file != nil {
			err = errors.Join(err, j.mu.file.Close())
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), j.lock.Close())
	}
	return j, nil
}

// LoadOf returns the identity of the load of a journal in the operating system's files; it wraps
// fs.ErrNotExist if there is no journal.
func LoadOf(name string) (Identity, error) {
	file, err := vfs.OS{}.Open(name)
	if err != nil {
		return Identity{}, err
	}
	defer func() { _ = file.Close() }() // only read
	content, err := contentOf(file, CompactAt)
	if err != nil {
		return Identity{}, fmt.Errorf("%s: %w", name, err)
	}
	s, _, _, err := decode(content)
	if err != nil {
		return Identity{}, fmt.Errorf("%s: %w", name, err)
	}
	return s.identity, nil
}

func contentOf(file vfs.File, compactAt int64) ([]byte, error) {
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	if size > 4*max(compactAt, maxBody) {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrNotJournal, size)
	}
	content := make([]byte, size)
	if _, err := file.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return content, nil
}

func (j *Journal) open(identity Identity) (err error) {
	j.mu.input = sha256.New()
	j.mu.file, err = j.fs.Open(j.name)
	if errors.Is(err, fs.ErrNotExist) {
		j.mu.state = state{identity: identity, marks: newMarks(), open: map[unitID]open{}}
		return j.rewrite()
	}
	if err != nil {
		return err
	}
	content, err := contentOf(j.mu.file, j.compactAt)
	if err != nil {
		return err
	}
	var end int
	if j.mu.state, j.resume, end, err = decode(content); err != nil {
		return err
	}
	if err := j.mu.identity.differs(identity); err != nil {
		return err
	}
	j.mu.size = int64(end)
	j.verify, j.wanted, j.anew = j.mu.read, j.mu.sum, maps.Clone(j.mu.marks.again)
	if j.mu.done && j.mu.identity.grown(identity) {
		j.mu.done = false // the added records are still to be put
	}
	if j.mu.done {
		return nil
	}
	// The rewritten file has the input's current sizes and no torn end.
	j.mu.identity = identity
	return j.rewrite()
}

// Done reports whether the load is complete: the stream has all records except the Refused ones.
func (j *Journal) Done() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.done
}

// Resume returns the units without a fate, which may have been sent, in the order in which they
// were frozen. Send them before any new record.
func (j *Journal) Resume() []FrozenUnit { return j.resume }

// Verify reads the records that earlier runs have read. It returns an error that wraps ErrInput if
// they differ, or the input's own error. Call it before anything is sent.
func (j *Journal) Verify(input iter.Seq2[[]byte, error]) error {
	if j.verify == 0 {
		return nil
	}
	sum, records := sha256.New(), uint64(0)
	for line, err := range input {
		if err != nil {
			return err
		}
		hashLine(sum, line)
		if records++; records == j.verify {
			return j.compare(sum)
		}
	}
	return fmt.Errorf("%w: it has %d records, and %d were read; bring it back, or name a new state",
		ErrInput, records, j.verify)
}

func (j *Journal) compare(sum hash.Hash) error {
	if digest(sum.Sum(nil)) != j.wanted {
		return fmt.Errorf("%w: its first %d records are others; bring it back, or name a new state",
			ErrInput, j.verify)
	}
	return nil
}

func hashLine(sum hash.Hash, line []byte) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(line)))
	sum.Write(length[:])
	sum.Write(line)
}

// Read returns the mark of the input's next record; every run reads the input from the start. skip
// is set if the record is in a unit already, or was refused: do not put it. The error wraps
// ErrInput if the records up to this one differ from those of an earlier run.
func (j *Journal) Read(line []byte) (mark uint64, skip bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	hashLine(j.mu.input, line)
	mark = j.mu.records
	j.mu.records++
	if j.mu.records == j.verify {
		if err := j.compare(j.mu.input); err != nil {
			return mark, false, err
		}
	}
	_, anew := j.anew[mark]
	return mark, j.mu.marks.seen(mark) && !anew, nil
}

// Frozen makes units durable. Do not send any of them before it has returned nil. After a write
// error the journal is broken, and every later call returns that error.
func (j *Journal) Frozen(ctx context.Context, units []FrozenUnit) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.err != nil {
		return j.mu.err
	}
	for _, unit := range units {
		offset, length := j.mu.size+int64(len(j.mu.pending)), len(j.mu.pending)
		j.mu.pending = appendFrozen(j.mu.pending, unit)
		unit.Marks = slices.Clone(unit.Marks)
		j.mu.freeze(unit, offset, len(j.mu.pending)-length)
	}
	j.noteRead()
	if err := j.flush(true); err != nil {
		return j.broken(err)
	}
	if j.mu.size > j.compactAt && j.openBytes() < j.mu.size/2 {
		if err := j.rewrite(); err != nil {
			return j.broken(err)
		}
	}
	return nil
}

// noteRead appends the number of records read, which is above any mark in a unit.
func (j *Journal) noteRead() {
	if j.mu.records > j.mu.read {
		j.mu.read, j.mu.sum = j.mu.records, digest(j.mu.input.Sum(nil))
	}
	j.mu.pending = appendRead(j.mu.pending, j.mu.read, j.mu.sum, j.mu.synced)
}

// maxPending is the size in bytes above which Settled writes its frames, without a sync.
const maxPending = 64 << 10

// Settled records fates. They are durable with the next Frozen; a crash before that loses them, and
// the next run sends the units again. The next Frozen returns a write error.
func (j *Journal) Settled(units []SettledUnit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.err != nil {
		return
	}
	for _, unit := range units {
		was := j.mu.open[unit.id()]
		j.mu.pending = appendSettled(j.mu.pending, unit)
		if j.mu.settle(unit); unit.Fate == Undelivered {
			j.mu.pending = appendRefused(j.mu.pending, was.marks, unit.Reason)
		}
	}
	if len(j.mu.pending) > maxPending {
		if err := j.flush(false); err != nil {
			_ = j.broken(err) // Frozen and Finish return it
		}
	}
}

// flush writes the pending frames, and syncs the file if durable.
func (j *Journal) flush(durable bool) error {
	if _, err := j.mu.file.WriteAt(j.mu.pending, j.mu.size); err != nil {
		return err
	}
	j.mu.size += int64(len(j.mu.pending))
	j.mu.pending = j.mu.pending[:0]
	if !durable {
		return nil
	}
	if err := j.mu.file.Sync(); err != nil {
		return err
	}
	j.mu.synced = j.mu.size
	return nil
}

func (j *Journal) broken(err error) error {
	j.mu.err = fmt.Errorf("write %s: %w; it has everything sent so far: run put again once the "+
		"disk works", j.name, err)
	return j.mu.err
}

// Finish marks the load complete. It returns an error if a record of the input is neither in a
// settled unit nor refused, or if the write fails.
func (j *Journal) Finish() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.mu.err != nil:
		return j.mu.err
	case len(j.mu.open) > 0 || len(j.mu.marks.again) > 0 || j.mu.marks.low < j.mu.records:
		return fmt.Errorf("%s: the load is not complete: run put again", j.name)
	}
	j.noteRead()
	if err := j.rewrite(); err != nil { // drops the settled units: the file is small now
		return j.broken(err)
	}
	frame, start := begin(j.mu.pending, kindDone)
	j.mu.pending = seal(frame, start)
	if err := j.flush(true); err != nil {
		return j.broken(err)
	}
	j.mu.done = true
	return nil
}

// Close writes and syncs the pending frames, and releases the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if j.mu.err == nil && len(j.mu.pending) > 0 {
		err = j.flush(true)
	}
	return errors.Join(err, j.mu.file.Close(), j.lock.Close())
}

// dir is the folder of the journal.
func (j *Journal) dir() string { return path.Dir(j.name) }
