package itemstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// LostBlock is a part of a data file that a repair could not read. The items whose newest record
// was there are missing, or have an older value.
type LostBlock struct {
	*wal.CorruptError
	Bytes int64 // of records, about
}

// loading reads the data files of a snapshot. It reads and checks the blocks on all processors;
// that is most of a start's work. Then it sorts the records of each table and fills the tree in
// order: an insertion at a random place costs many times as much, since it compares its way
// through memory that no cache holds.
type loading struct {
	store  *Store
	opened []vfs.File
	blocks []loadBlock // in the chain's order
	next   atomic.Int64
	newest atomic.Uint64 // the greatest number of a damaged file; 0: there is none
}

type loadBlock struct {
	block
	of      dataFile
	file    vfs.File
	records []sortable
	err     error
}

// sortable is a record with the first bytes of its place, which decide nearly every comparison.
type sortable struct {
	hash  uint64
	order int // of the block in the chain
	record
}

func (a sortable) compare(b sortable) int {
	if a.hash != b.hash {
		return cmp.Compare(a.hash, b.hash)
	}
	return cmp.Or(strings.Compare(a.place, b.place), cmp.Compare(a.order, b.order))
}

// load fills the tables from files. The error is a *wal.CorruptError if a part of them is lost,
// unless the store is for a repair.
func (s *Store) load(list []dataFile) (err error) {
	if len(list) == 0 {
		return nil
	}
	if s.chain.files.fs == nil {
		return fmt.Errorf("%w: a snapshot with files, and there is no folder", ErrCorrupt)
	}
	l := &loading{store: s}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.open(list); err != nil {
		return err
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(l.blocks)) {
		group.Go(l.read)
	}
	group.Wait()
	for i := range l.blocks {
		b := &l.blocks[i]
		if b.err == nil {
			continue
		}
		if err := l.lose(b.of, b.err, int64(b.size)); err != nil {
			return err
		}
	}
	l.fill()
	return l.settle()
}

func (l *loading) open(list []dataFile) error {
	for _, of := range list {
		file, err := l.store.chain.files.open(of)
		if err == nil {
			l.opened = append(l.opened, file)
			var blocks []block
			var faults []*wal.CorruptError
			blocks, faults, err = l.store.chain.files.blocks(of, file)
			for _, fault := range faults {
				l.mend(of, fault)
			}
			for _, b := range blocks {
				l.blocks = append(l.blocks, loadBlock{block: b, of: of, file: file})
			}
		}
		if err != nil {
			if err := l.lose(of, err, of.size); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loading) close() error {
	var errs []error
	for _, file := range l.opened {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// lose notes damage in a repair. Otherwise it returns the error.
func (l *loading) lose(of dataFile, err error, size int64) error {
	var corrupt *wal.CorruptError
	if !l.store.cfg.Salvage || !errors.As(err, &corrupt) {
		return err
	}
	l.store.lost = append(l.store.lost, LostBlock{corrupt, size})
	l.damaged(of)
	return nil
}

// damaged notes a file that is to be replaced.
func (l *loading) damaged(of dataFile) {
	for known := l.newest.Load(); of.id > known; known = l.newest.Load() {
		if l.newest.CompareAndSwap(known, of.id) {
			return
		}
	}
}

func (l *loading) mend(of dataFile, fault *wal.CorruptError) {
	l.damaged(of)
	l.store.chain.logger.Warn("a part of the items' files is damaged; nothing is lost, and the "+
		"file will be replaced: look for a failing disk",
		"file", fault.File, "byte", fault.Offset, "reason", fault.Reason)
}

// read reads blocks until there are no more.
func (l *loading) read() {
	var p []byte
	for {
		i := int(l.next.Add(1)) - 1
		if i >= len(l.blocks) {
			return
		}
		b := &l.blocks[i]
		text, mended, err := b.read(b.file, p)
		if errors.Is(err, errCut) {
			err = l.store.chain.files.corrupt(b.of, b.off,
				"more than one part of a block is damaged")
		}
		if mended {
			l.mend(b.of, l.store.chain.files.corrupt(b.of, b.off, mendedReason))
		}
		if err == nil {
			p = text
			err = b.decode(text, i)
			if err != nil {
				err = l.store.chain.files.corrupt(b.of, b.off, err.Error())
			}
		}
		b.err = err
	}
}

// decode cuts the block's text into records. Each gets its own copy, since an item that is
// overwritten later must not be kept in memory by its neighbours. It uses no decoder, which would
// copy the text first: memory for all items once more, and a fifth of a start's processor time.
func (b *loadBlock) decode(text []byte, order int) error {
	for len(text) > 0 {
		r, rest, ok := parseRecord(text)
		if !ok {
			return fmt.Errorf("%w: bad record", ErrCorrupt)
		}
		if b.records == nil {
			b.records = make([]sortable, 0, len(text)/(len(text)-len(rest))+8)
		}
		hash := uint64(0)
		for _, digit := range []byte(r.place[:8]) {
			hash = hash<<8 | uint64(digit)
		}
		b.records = append(b.records, sortable{hash, order, r})
		text = rest
	}
	return nil
}

// parseRecord reads a record as decoder.record does, and returns the bytes behind it.
func parseRecord(p []byte) (r record, rest []byte, ok bool) {
	number := func() uint64 {
		value, n := binary.Uvarint(p)
		ok = ok && n > 0
		p = p[max(n, 0):]
		return value
	}
	part := func() []byte {
		n := number()
		if !ok || n > uint64(len(p)) {
			ok = false
			return nil
		}
		found := p[:n]
		p = p[n:]
		return found
	}
	ok = true
	table, place, size, body := number(), part(), number(), part()
	if !ok || len(place) < 8 || size > 1<<40 { // a place begins with its hash
		return record{}, nil, false
	}
	whole := string(place) + string(body)
	return record{table, &entry{
		place: whole[:len(place)], body: whole[len(place):], size: int(size),
	}}, p, true
}

// fill fills the tables.
func (l *loading) fill() {
	byTable := map[uint64][]sortable{}
	for i := range l.blocks {
		records := l.blocks[i].records
		l.blocks[i].records = nil
		for len(records) > 0 { // runs of one table
			n := 1
			for n < len(records) && records[n].table == records[0].table {
				n++
			}
			id := records[0].table
			if l.store.mu.byID[id] != nil { // else it was dropped
				byTable[id] = append(byTable[id], records[:n]...)
			}
			records = records[n:]
		}
	}
	for id, records := range byTable {
		slices.SortFunc(records, sortable.compare)
		l.store.mu.byID[id].fill(records)
	}
}

// fill fills an empty table from sorted records: the last one of each place counts.
func (t *Table) fill(records []sortable) {
	for i, r := range records {
		if r.body == "" || i+1 < len(records) && records[i+1].hash == r.hash &&
			records[i+1].place == r.place {
			continue
		}
		t.mu.items.ReplaceOrInsert(r.entry)
		t.count(nil, r.entry)
	}
	t.mu.indexes = nil
	t.reindex()
}

// settle prepares the chain to replace damaged files: in a repair at once, else by a sweep. A sweep
// that has begun and will drop them goes on: a new one at each start would never end, and would
// leave one more file.
func (l *loading) settle() error {
	newest := l.newest.Load()
	if newest == 0 {
		return nil
	}
	c := &l.store.chain
	switch {
	case l.store.cfg.Salvage:
	case c.sweep.from > 0 && newest <= c.list[c.sweep.from-1].id:
		return nil
	default:
		c.forced, c.sweep = true, sweep{}
		return nil
	}
	c.list, c.sweep = nil, sweep{}
	for _, t := range l.store.mu.byID {
		t.mu.items.Ascend(func(e *entry) bool {
			t.mark(e)
			return true
		})
	}
	return nil
}

// Lost returns what a repair could not read of the data files, once the store is restored.
func (s *Store) Lost() []LostBlock { return s.lost }
