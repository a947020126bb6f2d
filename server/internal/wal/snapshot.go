package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// A snapshot file is, in little-endian numbers:
//
//	[0, 8)   "runnelSS"
//	[8, 12)  version of the format, 1
//	[12, 16) number of parts
//	[16, 24) LSN of the snapshot, which is the file's name too
//	then for each part 16 bytes: kind, three bytes 0, CRC-32C of the data, length
//	then CRC-32C of everything so far, and the parts' data one after the other, to the end
const (
	snapshotMagic   = "runnelSS"
	snapshotVersion = 1
	snapshotPrefix  = "snapshot-"
	snapshotHeader  = 24
	snapshotEntry   = 16
	maxParts        = 255
	tempSuffix      = ".tmp"
)

// part is one machine's snapshot.
type part struct {
	kind Kind
	data []byte
}

// entry describes a part: its place, length and checksum.
type entry struct {
	kind   Kind
	sum    uint32
	off    int64
	length int64
}

func snapshotName(dir string, at LSN) string {
	return path.Join(dir, fmt.Sprintf("%s%020d", snapshotPrefix, uint64(at)))
}

func snapshotLSN(name string) (LSN, bool) {
	digits, ok := strings.CutPrefix(name, snapshotPrefix)
	if !ok {
		return 0, false
	}
	at, err := strconv.ParseUint(digits, 10, 64)
	return LSN(at), err == nil && name == path.Base(snapshotName("", LSN(at)))
}

// IsSnapshot reports whether a file in the log's folder is a snapshot by its name.
func IsSnapshot(name string) bool {
	_, ok := snapshotLSN(name)
	return ok
}

// writeSnapshot makes a snapshot durable next to the one before it.
func (d *folder) writeSnapshot(at LSN, parts []part) error {
	pieces := [][]byte{encodeIndex(at, parts)}
	for _, p := range parts {
		pieces = append(pieces, p.data)
	}
	return d.replace(snapshotName(d.dir, at), pieces)
}

// replace writes a file in the log's folder atomically: after a crash it is complete or absent.
func (d *folder) replace(name string, pieces [][]byte) error {
	temp := name + tempSuffix
	f, err := d.fs.Create(temp)
	if err != nil {
		return err
	}
	if err = errors.Join(writeAll(f, pieces), f.Close()); err == nil {
		err = d.fs.Rename(temp, name)
	}
	if err != nil { // the unfinished file would only occupy space
		return errors.Join(err, d.fs.Remove(temp))
	}
	return durably(d.fs.SyncDir(path.Dir(name)))
}

// writeAll writes and syncs the file. It allocates the room first: a write that fails half-way on a
// full disk would meanwhile take the space that segments wait for.
func writeAll(f vfs.File, pieces [][]byte) error {
	size := int64(0)
	for _, p := range pieces {
		size += int64(len(p))
	}
	if err := f.Allocate(size); err != nil {
		return err
	}
	off := int64(0)
	for _, p := range pieces {
		if _, err := f.WriteAt(p, off); err != nil {
			return err
		}
		off += int64(len(p))
	}
	return f.Sync()
}

// snapshots returns the LSNs of all snapshots, the newest first.
func (d *folder) snapshots() ([]LSN, error) {
	names, err := d.fs.List(d.dir)
	if err != nil {
		return nil, err
	}
	var found []LSN
	for _, name := range names { // sorted by number, since all numbers have the same width
		if at, ok := snapshotLSN(name); ok {
			found = append(found, at)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// removeSnapshots removes all snapshots but some, and unfinished ones.
func (d *folder) removeSnapshots(but ...LSN) error {
	names, err := d.fs.List(d.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		at, ok := snapshotLSN(strings.TrimSuffix(name, tempSuffix))
		if ok && (!slices.Contains(but, at) || strings.HasSuffix(name, tempSuffix)) {
			errs = append(errs, d.fs.Remove(path.Join(d.dir, name)))
		}
	}
	return errors.Join(errs...)
}

func encodeIndex(at LSN, parts []part) []byte {
	p := make([]byte, snapshotHeader, snapshotHeader+len(parts)*snapshotEntry+4)
	copy(p, snapshotMagic)
	binary.LittleEndian.PutUint32(p[8:], snapshotVersion)
	binary.LittleEndian.PutUint32(p[12:], uint32(len(parts)))
	binary.LittleEndian.PutUint64(p[16:], uint64(at))
	for _, part := range parts {
		p = binary.LittleEndian.AppendUint32(p, uint32(part.kind))
		p = binary.LittleEndian.AppendUint32(p, crc32.Checksum(part.data, castagnoli))
		p = binary.LittleEndian.AppendUint64(p, uint64(len(part.data)))
	}
	return binary.LittleEndian.AppendUint32(p, crc32.Checksum(p, castagnoli))
}

var errSnapshot = errors.New("not a snapshot")

// readIndex reads the header and the table of parts, and checks that the parts fill the file.
func readIndex(f vfs.File) (LSN, []entry, error) {
	size, err := f.Size()
	if err != nil {
		return 0, nil, err
	}
	header := make([]byte, snapshotHeader)
	if err := readFull(f, header, 0); err != nil {
		return 0, nil, err
	}
	count := binary.LittleEndian.Uint32(header[12:])
	if string(header[:8]) != snapshotMagic ||
		binary.LittleEndian.Uint32(header[8:]) != snapshotVersion || count > maxParts {
		return 0, nil, fmt.Errorf("%w: its first bytes are wrong", errSnapshot)
	}
	p := make([]byte, snapshotHeader+int(count)*snapshotEntry+4)
	if err := readFull(f, p, 0); err != nil {
		return 0, nil, err
	}
	sum := p[len(p)-4:]
	if binary.LittleEndian.Uint32(sum) != crc32.Checksum(p[:len(p)-4], castagnoli) {
		return 0, nil, fmt.Errorf("%w: its index does not verify", errSnapshot)
	}
	entries := make([]entry, count)
	off := int64(len(p))
	for i := range entries {
		e := p[snapshotHeader+i*snapshotEntry:]
		length := binary.LittleEndian.Uint64(e[8:])
		if length > uint64(size-off) {
			return 0, nil, fmt.Errorf("%w: it is cut off", errSnapshot)
		}
		entries[i] = entry{
			kind: Kind(e[0]), sum: binary.LittleEndian.Uint32(e[4:]),
			off: off, length: int64(length),
		}
		off += int64(length)
	}
	if off != size {
		return 0, nil, fmt.Errorf("%w: it has %d bytes too many", errSnapshot, size-off)
	}
	return LSN(binary.LittleEndian.Uint64(header[16:])), entries, nil
}

// readSnapshot reads all parts of a snapshot before any of them is used: a machine can be restored
// only once. Damage is a *CorruptError.
func (d *folder) readSnapshot(name string, at LSN) ([]part, error) {
	f, err := d.fs.Open(name)
	if err != nil {
		return nil, err
	}
	parts, err := readParts(f, at)
	if errors.Is(err, errSnapshot) {
		err = &CorruptError{File: name, LSN: at, Reason: err.Error()}
	}
	return parts, errors.Join(err, f.Close())
}

func readParts(f vfs.File, at LSN) ([]part, error) {
	lsn, entries, err := readIndex(f)
	if err != nil {
		return nil, err
	}
	if lsn != at {
		return nil, fmt.Errorf("%w: it is of another place, %d", errSnapshot, lsn)
	}
	parts := make([]part, len(entries))
	for i, e := range entries {
		if parts[i].data, err = readPart(f, e); err != nil {
			return nil, err
		}
		parts[i].kind = e.kind
	}
	return parts, nil
}

func readPart(f vfs.File, e entry) ([]byte, error) {
	data := make([]byte, e.length)
	if err := readFull(f, data, e.off); err != nil {
		return nil, err
	}
	if crc32.Checksum(data, castagnoli) != e.sum {
		return nil, fmt.Errorf("%w: part %d does not verify", errSnapshot, e.kind)
	}
	return data, nil
}

// readFull reads all of p; a file that is too short is errSnapshot.
func readFull(f vfs.File, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it is cut off", errSnapshot)
	default:
		return err
	}
}
