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
//	[0, 4)     CRC-32C of [4, 104)
//	[4, 6)     version: 1
//	[6, 8)     length of the boot's name
//	[8, 16)    number of the record: the higher one of two is the newer
//	[16, 24)   vouched stamp, ms since 1970
//	[24, 32)   ceiling, ms since 1970
//	[32, 40)   time from the machine's boot to that stamp, ns
//	[40, 96)   the boot's name
//	[96, 100)  CRC-32C of the rest
//	[100, 104) length of the rest, 0: an older runnel wrote the record
//	[104, 112) elapsed time, ms
//	[112, 120) the system's clock, ms since 1970
//	[120, 136) the jump at the boot: its end and its length, in ms of elapsed time
//	[136, 137) pace
//	[137, 138) 1 if the system's clock is accepted
//	[138, 144) 0
//	[144, …)   the spans of the past: begin, least and greatest offset, 8 bytes each
//
// Older versions read all before [96, 100) and ignore the rest, and write zeros there.
const (
	slots         = 2
	slotEvery     = 4096
	fileSize      = slots * slotEvery
	recordVersion = 1
	recordName    = 40
	recordRest    = 96
	recordHead    = 104
	recordSpans   = 144
	spanSize      = 24
	maxBootName   = recordRest - recordName
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is the content of a slot.
type record struct {
	number           uint64
	vouched, ceiling int64
	boot             string
	since            time.Duration

	elapsed, wall int64
	jump          jump
	pace          pace
	accepted      bool
	past          *past // nil: an older version wrote the record, which lacks all these
}

// seeded returns a record of an older version with what it lacks: until then, stamps were taken for
// elapsed time. If the stamps were ahead of the system's clock, which is at wall at the moment,
// it is not known for how long. So the elapsed time is the earlier of both, and data stay longer.
func (r record) seeded(wall int64) record {
	r.elapsed, r.wall = min(r.vouched, wall), r.vouched
	r.past = &past{[]span{{}}}
	return r
}

func (r *record) encode() []byte {
	le := binary.LittleEndian
	name := r.boot[:min(len(r.boot), maxBootName)]
	p := make([]byte, recordSpans, slotEvery)
	le.PutUint16(p[4:], recordVersion)
	le.PutUint16(p[6:], uint16(len(name)))
	le.PutUint64(p[8:], r.number)
	le.PutUint64(p[16:], uint64(r.vouched))
	le.PutUint64(p[24:], uint64(r.ceiling))
	le.PutUint64(p[32:], uint64(r.since))
	copy(p[recordName:], name)
	le.PutUint64(p[104:], uint64(r.elapsed))
	le.PutUint64(p[112:], uint64(r.wall))
	le.PutUint64(p[120:], uint64(r.jump.end))
	le.PutUint64(p[128:], uint64(r.jump.by))
	p[136] = byte(r.pace)
	if r.accepted {
		p[137] = 1
	}
	if r.past != nil {
		for _, s := range r.past.spans {
			for _, n := range []int64{s.from, s.least, s.most} {
				p = le.AppendUint64(p, uint64(n))
			}
		}
	}
	le.PutUint32(p[recordRest:], crc32.Checksum(p[recordHead:], castagnoli))
	le.PutUint32(p[recordRest+4:], uint32(len(p)-recordHead))
	le.PutUint32(p, crc32.Checksum(p[4:recordHead], castagnoli))
	return p
}

// decode returns the record of a slot; not ok if the slot has no valid one.
func decode(p []byte) (r record, ok bool) {
	le := binary.LittleEndian
	if len(p) < recordHead || le.Uint32(p) != crc32.Checksum(p[4:recordHead], castagnoli) ||
		le.Uint16(p[4:]) != recordVersion {
		return r, false
	}
	name := int(le.Uint16(p[6:]))
	if name > recordHead-recordName {
		return r, false
	}
	r = record{
		number:  le.Uint64(p[8:]),
		vouched: int64(le.Uint64(p[16:])),
		ceiling: int64(le.Uint64(p[24:])),
		since:   time.Duration(le.Uint64(p[32:])),
		boot:    string(p[recordName : recordName+name]),
	}
	ok = r.number > 0 && r.vouched > 0 && r.ceiling >= r.vouched
	rest := le.Uint32(p[recordRest+4:])
	if rest == 0 || name > maxBootName {
		return r, ok
	}
	return r, ok && uint64(rest) <= uint64(len(p)-recordHead) &&
		r.decodeRest(p[:recordHead+int(rest)])
}

// decodeRest reads the part of a record that older versions lack.
func (r *record) decodeRest(p []byte) bool {
	le := binary.LittleEndian
	spans := len(p) - recordSpans
	if le.Uint32(p[recordRest:]) != crc32.Checksum(p[recordHead:], castagnoli) ||
		spans <= 0 || spans%spanSize != 0 || spans/spanSize > maxSpans || p[136] >= byte(paces) {
		return false
	}
	number := func(at int) int64 { return int64(le.Uint64(p[at:])) }
	r.elapsed, r.wall = number(104), number(112)
	r.jump = jump{number(120), number(128)}
	r.pace, r.accepted = pace(p[136]), p[137] == 1
	r.past = &past{}
	for at := recordSpans; at < len(p); at += spanSize {
		r.past.spans = append(r.past.spans, span{number(at), number(at + 8), number(at + 16)})
	}
	return true
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
		p := make([]byte, slotEvery)
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
