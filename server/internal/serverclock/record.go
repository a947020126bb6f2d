package serverclock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// FileName is the file's name in the data directory.
const FileName = "clock"

// The file has two slots, far enough apart that writing one cannot harm the other, and each record
// goes into the one that does not hold the newest. So one whole record is always there; and it is
// written in place, so that a full disk does not refuse it. A slot is, in little-endian numbers:
//
//	[0, 4)   CRC-32C of the rest of the record
//	[4, 6)   version: 1
//	[6, 8)   length of the boot's name
//	[8, 16)  number of the record: the higher one of two is the newer
//	[16, 24) vouched reading, ms since 1970
//	[24, 32) ceiling, ms since 1970
//	[32, 40) time from the machine's boot to that reading, ns
//	[40, …)  the boot's name, at most 64 bytes
const (
	slots         = 2
	slotEvery     = 4096
	fileSize      = slots * slotEvery
	recordVersion = 1
	recordHead    = 40
	maxBootName   = 64
	recordSize    = recordHead + maxBootName
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is the content of a slot.
type record struct {
	number           uint64
	vouched, ceiling int64
	boot             string
	since            time.Duration
}

func (r *record) encode() []byte {
	name := r.boot[:min(len(r.boot), maxBootName)]
	p := make([]byte, recordSize)
	binary.LittleEndian.PutUint16(p[4:], recordVersion)
	binary.LittleEndian.PutUint16(p[6:], uint16(len(name)))
	binary.LittleEndian.PutUint64(p[8:], r.number)
	binary.LittleEndian.PutUint64(p[16:], uint64(r.vouched))
	binary.LittleEndian.PutUint64(p[24:], uint64(r.ceiling))
	binary.LittleEndian.PutUint64(p[32:], uint64(r.since))
	copy(p[recordHead:], name)
	binary.LittleEndian.PutUint32(p, crc32.Checksum(p[4:], castagnoli))
	return p
}

// decode returns the record of a slot; not ok if the slot has no valid one.
func decode(p []byte) (r record, ok bool) {
	if len(p) < recordSize || binary.LittleEndian.Uint32(p) !=
		crc32.Checksum(p[4:recordSize], castagnoli) ||
		binary.LittleEndian.Uint16(p[4:]) != recordVersion {
		return r, false
	}
	name := int(binary.LittleEndian.Uint16(p[6:]))
	if name > maxBootName {
		return r, false
	}
	r = record{
		number:  binary.LittleEndian.Uint64(p[8:]),
		vouched: int64(binary.LittleEndian.Uint64(p[16:])),
		ceiling: int64(binary.LittleEndian.Uint64(p[24:])),
		since:   time.Duration(binary.LittleEndian.Uint64(p[32:])),
		boot:    string(p[recordHead : recordHead+name]),
	}
	return r, r.number > 0 && r.vouched > 0 && r.ceiling >= r.vouched
}

// floor returns the time at which a clock goes on after the record, at a moment of a boot. A boot
// without a name never equals the record's.
func (r *record) floor(boot string, since time.Duration) int64 {
	if boot == "" || r.boot != boot || since < r.since {
		return r.ceiling
	}
	return min(r.vouched+(since-r.since+slack).Milliseconds(), r.ceiling)
}

// readRecord returns the newest record of a file; not ok if it has none.
func readRecord(f vfs.File) (newest record, ok bool, err error) {
	for slot := range int64(slots) {
		p := make([]byte, recordSize)
		n, err := f.ReadAt(p, slot*slotEvery)
		if err != nil && !errors.Is(err, io.EOF) {
			return newest, false, fmt.Errorf("read the clock's file: %w", err)
		}
		if r, whole := decode(p[:n]); whole && r.number > newest.number {
			newest, ok = r, true
		}
	}
	return newest, ok, nil
}

// Inspect returns the last time in the clock's file of a data directory. It is not ok without a
// file, or without a valid record in it. That is no damage: a start then takes the time of the
// newest record of the streams.
func Inspect(fsys vfs.FS, dir string) (ceiling time.Time, ok bool, err error) {
	f, err := fsys.Open(path.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return ceiling, false, nil
	}
	if err != nil {
		return ceiling, false, err
	}
	r, ok, err := readRecord(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return time.UnixMilli(r.ceiling), ok, err
}
