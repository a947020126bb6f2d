package itemstore

import (
	"errors"
	"io/fs"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Verify implements wal.FileKeeper. Unlike a start it decodes every item.
func (s *Store) Verify(snapshot []byte) (spare, lost []*wal.CorruptError, err error) {
	if s.verified == nil {
		s.verified = map[dataFile]verdict{}
	}
	checked := newStore(s.cfg)
	m := checked.readManifest(snapshot)
	for _, file := range m.list {
		v, known := s.verified[file] // the two snapshots share most of their files
		if !known {
			v.spare, err = checked.verify(file)
			if errors.As(err, &v.lost) {
				err = nil
			}
			if err != nil {
				return nil, nil, err
			}
			s.verified[file] = v
		}
		spare = append(spare, v.spare...)
		if v.lost != nil {
			lost = append(lost, v.lost)
		}
	}
	return spare, lost, nil
}

// readManifest reads a snapshot up to the names of its files. There are none in a snapshot that
// cannot be read: Restore says why.
func (s *Store) readManifest(snapshot []byte) manifest {
	d, version, err := openSnapshot(snapshot)
	if err != nil || version != snapshotFiles {
		return manifest{}
	}
	d.uvarint()
	for range d.count() {
		if s.restoreTable(d, version) != nil {
			return manifest{}
		}
	}
	for range d.count() {
		d.token()
	}
	m := d.manifest()
	if d.err != nil {
		return manifest{}
	}
	return m
}

// verdict is the result of reading a file to its end.
type verdict struct {
	spare []*wal.CorruptError
	lost  *wal.CorruptError
}

// Files describes the data files of a directory that was inspected.
type Files struct {
	Count    int
	Bytes    int64
	Leftover []string // which no snapshot names
}

// Files lists the data files. Call it after an inspection of the log.
func (s *Store) Files() (Files, error) {
	var found Files
	ids, unfinished, err := s.chain.files.list()
	if err != nil {
		return found, err
	}
	named := map[uint64]bool{}
	for file := range s.verified {
		named[file.id] = true
	}
	for _, id := range ids {
		name := s.chain.files.name(id)
		if !named[id] {
			found.Leftover = append(found.Leftover, name)
			continue
		}
		info, err := s.chain.files.fs.Stat(name)
		if err != nil {
			return found, err
		}
		found.Count++
		found.Bytes += info.Size()
	}
	found.Leftover = append(found.Leftover, unfinished...)
	return found, nil
}

// verify reads a file to its end. mended lists the damage that it can do without.
func (s *Store) verify(of dataFile) (mended []*wal.CorruptError, err error) {
	err = s.chain.files.with(of, func(r *fileReader) error {
		mended = r.faults
		var text []byte
		for _, b := range r.blocks {
			got, was, err := b.read(r.file, text)
			if errors.Is(err, errCut) {
				return s.chain.files.corrupt(of, b.off, "more than one part of a block is damaged")
			}
			if err != nil {
				return err
			}
			text = got
			if was {
				mended = append(mended, s.chain.files.corrupt(of, b.off, mendedReason))
			}
			if err := s.verifyBlock(string(got)); err != nil {
				return s.chain.files.corrupt(of, b.off, err.Error())
			}
		}
		return nil
	})
	return mended, err
}

func (s *Store) verifyBlock(text string) error {
	d := &decoder{rest: text}
	for len(d.rest) > 0 {
		r := d.record()
		if d.err != nil {
			return d.err
		}
		t := s.mu.byID[r.table] // nil: it was dropped
		if t == nil || r.body == "" {
			continue
		}
		if err := t.check(r); err != nil {
			return err
		}
	}
	return nil
}

const mendedReason = "a part of a block does not verify, and the others replace it"

// fileReader is an open file.
type fileReader struct {
	dataFile
	file   vfs.File
	blocks []block
	faults []*wal.CorruptError // of its index
}

// open opens a file. A missing one is a *wal.CorruptError.
func (f files) open(of dataFile) (vfs.File, error) {
	file, err := f.fs.Open(f.name(of.id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.corrupt(of, 0, "the file is gone")
	}
	return file, err
}

// with opens a file for do.
func (f files) with(of dataFile, do func(r *fileReader) error) error {
	file, err := f.open(of)
	if err != nil {
		return err
	}
	r := &fileReader{dataFile: of, file: file}
	if r.blocks, r.faults, err = f.blocks(of, file); err == nil {
		err = do(r)
	}
	return errors.Join(err, file.Close())
}
