package itemstore

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// A data file holds records in blocks, and an index of the blocks, twice:
//
//	block…  zeros  index  index
//
// A block is its records, one after the other, and a parity. The records' bytes are cut into
// stripes of equal length, the last ones shorter or empty, and the parity is their XOR. The index
// has a checksum for every stripe and parity, so one damaged stripe of each block can be computed
// from the others.
//
// A disk loses whole sectors. So that a lost sector loses nothing, each stripe, each parity and the
// second copy of the index begin at a multiple of the sector's length; zeros fill the gaps. Then no
// sector has bytes of two stripes of a block, or of both copies. The index is, in varints and
// little-endian checksums:
//
//	a version byte: 2; or 1, for files without zeros
//	in version 2: the length of a sector
//	the number of blocks, and for each the length of its records, and stripes+1 CRC-32C
//
// The snapshot that names the file has the index's length and checksum. A record is the table's
// number, the place (length, bytes), the item's Size, and its encoding (length, bytes). The length
// 0 stands for a removal. A file is complete when it gets its name, and never changes after that.
const (
	dataVersion = 2
	stripes     = 16
	mostSector  = 1 << 20
	dataSuffix  = ".items"
	tempSuffix  = ".tmp"
	// FolderName is the folder in the data directory that holds the files.
	FolderName = "items"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one entry of a table in a file or in a snapshot.
type record struct {
	table uint64
	*entry
}

func (r record) length() int64 {
	return uvarintLen(r.table) + uvarintLen(uint64(len(r.place))) + int64(len(r.place)) +
		uvarintLen(uint64(r.size)) + uvarintLen(uint64(len(r.body))) + int64(len(r.body))
}

func uvarintLen(v uint64) int64 {
	n := int64(1)
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func (r record) append(dst []byte) []byte {
	dst = appendBytes(binary.AppendUvarint(dst, r.table), r.place)
	return appendBytes(binary.AppendUvarint(dst, uint64(r.size)), r.body)
}

// record reads a record. Its strings are parts of the decoder's text.
func (d *decoder) record() record {
	r := record{d.uvarint(), &entry{place: d.text()}}
	size := d.uvarint()
	if size > 1<<40 {
		d.fail("an item's size that none has")
	}
	r.size = int(size)
	r.body = d.text()
	return r
}

// dataFile names a complete file.
type dataFile struct {
	id    uint64
	size  int64
	index int64 // the length of one index
	sum   uint32
}

// files is the folder of the data files.
type files struct {
	fs  vfs.FS
	dir string
}

func (f files) name(id uint64) string {
	return path.Join(f.dir, fmt.Sprintf("%012d%s", id, dataSuffix))
}

// fileID returns the number in the base name of a data file.
func fileID(name string) (id uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, dataSuffix)
	if !ok || len(digits) < 12 {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	return id, err == nil && name == fmt.Sprintf("%012d%s", id, dataSuffix)
}

// IsDataFile reports whether a base name is that of a complete data file.
func IsDataFile(name string) bool {
	_, ok := fileID(name)
	return ok
}

// list returns the numbers of the files, ascending, and the names of unfinished ones.
func (f files) list() (ids []uint64, unfinished []string, err error) {
	names, err := f.fs.List(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, name := range names {
		if id, ok := fileID(name); ok {
			ids = append(ids, id)
		} else if whole, ok := strings.CutSuffix(name, tempSuffix); ok && IsDataFile(whole) {
			unfinished = append(unfinished, path.Join(f.dir, name))
		}
	}
	return ids, unfinished, err
}

// write makes a file of the records, durably. After an error there is no file.
func (f files) write(
	ctx context.Context, id uint64, records []record, by limits,
) (dataFile, error) {
	if err := f.fs.MkdirAll(f.dir); err != nil {
		return dataFile{}, err
	}
	name := f.name(id)
	file, err := f.fs.Create(name + tempSuffix)
	if err != nil {
		return dataFile{}, err
	}
	w := fileWriter{file: file, block: by.block, sector: by.sector}
	err = w.write(ctx, records)
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.fs.Rename(name+tempSuffix, name)
	}
	if err != nil { // an unfinished file would only occupy space
		return dataFile{}, errors.Join(err, f.fs.Remove(name+tempSuffix))
	}
	if err := f.fs.SyncDir(f.dir); err != nil {
		return dataFile{}, errors.Join(err, f.fs.Remove(name))
	}
	return dataFile{id, w.off, w.length, w.sum}, nil
}

// fileWriter writes one file.
type fileWriter struct {
	file   vfs.File
	block  int64 // the least length of the records of a block, but for the last
	sector int
	off    int64
	blocks uint64
	index  []byte // of the blocks so far
	length int64  // of the index
	sum    uint32
	text   []byte
}

func (w *fileWriter) write(ctx context.Context, records []record) error {
	size := int64(0)
	for _, r := range records {
		size += r.length()
	}
	// A write that fails half-way on a full disk would meanwhile take the space that others need.
	if err := w.file.Allocate(size + size/stripes); err != nil {
		return err
	}
	for _, r := range records {
		w.text = r.append(w.text)
		if int64(len(w.text)) >= w.block {
			if err := errors.Join(w.flush(), ctx.Err()); err != nil {
				return err
			}
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	index := binary.AppendUvarint([]byte{dataVersion}, uint64(w.sector))
	index = append(binary.AppendUvarint(index, w.blocks), w.index...)
	w.length, w.sum = int64(len(index)), crc32.Checksum(index, castagnoli)
	end := int(w.off) + len(index)
	zeros := make([]byte, roundUp(end, w.sector)-end)
	if err := w.put(slices.Concat(zeros, index, index)); err != nil {
		return err
	}
	return w.file.Sync()
}

func (w *fileWriter) put(p []byte) error {
	_, err := w.file.WriteAt(p, w.off)
	w.off += int64(len(p))
	return err
}

// flush writes a block.
func (w *fileWriter) flush() error {
	b := block{size: len(w.text), sector: w.sector}
	if b.size == 0 {
		return nil
	}
	w.text = slices.Grow(w.text, b.length()-b.size)[:b.length()]
	clear(w.text[b.size:])
	parity := b.stripe(w.text, stripes)
	w.index = binary.AppendUvarint(w.index, uint64(b.size))
	for i := range stripes {
		part := b.stripe(w.text, i)
		subtle.XORBytes(parity, parity, part)
		w.index = binary.LittleEndian.AppendUint32(w.index, crc32.Checksum(part, castagnoli))
	}
	w.index = binary.LittleEndian.AppendUint32(w.index, crc32.Checksum(parity, castagnoli))
	w.blocks++
	err := w.put(w.text)
	w.text = w.text[:0]
	return err
}

// block describes a block of a file.
type block struct {
	off    int64
	size   int // of the records
	sector int
	sums   [stripes + 1]uint32
}

// width returns the length of a stripe, but for the last ones.
func (b *block) width() int { return roundUp((b.size+stripes-1)/stripes, b.sector) }

// length returns the length of the block in the file.
func (b *block) length() int {
	return roundUp(b.size, b.sector) + roundUp(min(b.width(), b.size), b.sector)
}

// stripe returns a stripe of the block's bytes; the last one is the parity.
func (b *block) stripe(p []byte, i int) []byte {
	width := b.width()
	if i == stripes {
		return p[roundUp(b.size, b.sector):][:min(width, b.size)]
	}
	return p[min(i*width, b.size):min((i+1)*width, b.size)]
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// blocks reads the file's index. faults lists a damaged copy of the index; without a whole one the
// error is a *wal.CorruptError.
func (f files) blocks(of dataFile, file vfs.File) (
	found []block, faults []*wal.CorruptError, err error,
) {
	for off := of.size - 2*of.index; off < of.size && of.index > 0; off += of.index {
		p := make([]byte, of.index)
		err := readAll(file, p, off)
		if err == nil && crc32.Checksum(p, castagnoli) != of.sum {
			err = errCut
		}
		switch {
		case errors.Is(err, errCut):
			faults = append(faults, f.corrupt(of, off, "its index does not verify"))
		case err != nil:
			return nil, nil, err
		case found == nil:
			if found, err = parseIndex(p, of); err != nil {
				return nil, nil, f.corrupt(of, off, err.Error())
			}
		}
	}
	if len(faults) == 2 || of.index == 0 {
		return nil, nil, f.corrupt(of, 0, "neither copy of its index verifies")
	}
	return found, faults, nil
}

func parseIndex(p []byte, of dataFile) ([]block, error) {
	d := &decoder{rest: string(p)}
	sector := 1
	switch version := d.byte(); version {
	case 1:
	case dataVersion:
		sector = int(min(d.uvarint(), mostSector+1))
	default:
		return nil, fmt.Errorf("it has version %d, this program knows %d", version, dataVersion)
	}
	if sector < 1 || sector > mostSector {
		d.fail("sectors of a length that none has")
	}
	found := make([]block, 0, min(d.count(), len(p)/(4*stripes)+1))
	off := int64(0)
	for len(d.rest) > 0 && d.err == nil {
		b := block{off: off, size: int(min(d.uvarint(), uint64(of.size))), sector: sector}
		for i := range b.sums {
			if len(d.rest) < 4 {
				d.fail("cut short")
				break
			}
			b.sums[i] = binary.LittleEndian.Uint32([]byte(d.rest[:4]))
			d.rest = d.rest[4:]
		}
		off += int64(b.length())
		found = append(found, b)
	}
	if gap := of.size - 2*of.index - off; d.err == nil && (gap < 0 || gap >= int64(sector)) {
		d.fail("blocks of another length than the file")
	}
	return found, d.err
}

var errCut = errors.New("does not verify")

// readAll reads all of p; a file that is too short is errCut.
func readAll(file vfs.File, p []byte, off int64) error {
	n, err := file.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return errCut
	}
	return err
}

func (f files) corrupt(of dataFile, off int64, reason string) *wal.CorruptError {
	return &wal.CorruptError{File: f.name(of.id), Offset: off, Reason: reason}
}

// read reads the records of a block into p, which it grows as needed. mended is true if a damaged
// stripe was computed from the others. Damage to more than one stripe is errCut.
func (b *block) read(file vfs.File, p []byte) (text []byte, mended bool, err error) {
	p = slices.Grow(p[:0], b.length())[:b.length()]
	if n, err := file.ReadAt(p, b.off); n < len(p) {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		clear(p[n:])
	}
	bad := -1
	for i := range b.sums {
		if crc32.Checksum(b.stripe(p, i), castagnoli) == b.sums[i] {
			continue
		}
		if bad >= 0 {
			return nil, false, errCut
		}
		bad = i
	}
	if bad < 0 {
		return p[:b.size], false, nil
	}
	whole := make([]byte, b.width())
	for i := range b.sums {
		if i != bad {
			subtle.XORBytes(whole, whole, b.stripe(p, i))
		}
	}
	part := b.stripe(p, bad)
	copy(part, whole)
	if crc32.Checksum(part, castagnoli) != b.sums[bad] {
		return nil, false, errCut
	}
	return p[:b.size], true, nil
}
