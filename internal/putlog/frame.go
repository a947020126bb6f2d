package putlog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// A frame is
//
//	mark     4 bytes, frameMark
//	length   4 bytes, little endian: of the body
//	CRC-32C  4 bytes, little endian: of length and body
//	body     a kind, then its fields: numbers as uvarints, bytes with their length before them
const headerSize = 12

var (
	frameMark  = []byte("\xf1put")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// maxBody is far above the largest record of the API (10 MiB) with its marks.
const maxBody = 256 << 20

// version is that of the format.
const version = 1

type kind byte

const (
	kindHeader    kind = iota + 1 // the load; the file's first frame
	kindFrozen                    // a unit, before it is sent
	kindSettled                   // a unit's fate
	kindRead                      // the records read from the input, and their hash
	kindCovered                   // the marks that are in a unit
	kindDone                      // the load is complete, except for refused records
	kindRefused                   // records that will not be put, and the reason
	kindForgotten                 // refused records that were written elsewhere
)

// begin appends a frame without its body; seal fills it in.
func begin(dst []byte, k kind) (frame []byte, start int) {
	start = len(dst)
	dst = append(dst, frameMark...)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	return append(dst, byte(k)), start
}

func seal(frame []byte, start int) []byte {
	head, body := frame[start:start+headerSize], frame[start+headerSize:]
	binary.LittleEndian.PutUint32(head[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[8:], checksum(head, body))
	return frame
}

func checksum(head, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[4:8], castagnoli), castagnoli, body)
}

// next returns the body of the frame that b begins with, and its whole length; ok is false if
// there is none.
func next(b []byte) (body []byte, length int, ok bool) {
	if len(b) < headerSize+1 || !bytes.HasPrefix(b, frameMark) {
		return nil, 0, false
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size == 0 || size > maxBody || uint64(size) > uint64(len(b)-headerSize) {
		return nil, 0, false
	}
	length = headerSize + int(size)
	body = b[headerSize:length]
	return body, length, checksum(b, body) == binary.LittleEndian.Uint32(b[8:])
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// appendMarks appends the marks by their distances.
func appendMarks(dst []byte, marks []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(marks)))
	last := uint64(0)
	for _, mark := range marks {
		dst = binary.AppendUvarint(dst, mark-last) // may wrap around; reading wraps it back
		last = mark
	}
	return dst
}

// fields reads a body. Once bad is set, its results are invalid.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) number() uint64 {
	n, size := binary.Uvarint(f.rest)
	if size <= 0 {
		f.rest, f.bad = nil, true
		return 0
	}
	f.rest = f.rest[size:]
	return n
}

func (f *fields) signed() int64 {
	n, size := binary.Varint(f.rest)
	if size <= 0 {
		f.rest, f.bad = nil, true
		return 0
	}
	f.rest = f.rest[size:]
	return n
}

func (f *fields) take(n uint64) []byte {
	if n > uint64(len(f.rest)) {
		f.rest, f.bad = nil, true
		return nil
	}
	b := f.rest[:n:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) bytes() []byte { return f.take(f.number()) }
func (f *fields) text() string  { return string(f.bytes()) }

func (f *fields) marks() []uint64 {
	n := f.number()
	if n > uint64(len(f.rest)) { // each takes a byte at least
		f.bad = true
		return nil
	}
	marks := make([]uint64, n)
	last := uint64(0)
	for i := range marks {
		last += f.number()
		marks[i] = last
	}
	return marks
}

func (f *fields) producer() (id aggregate.ProducerID) {
	copy(id[:], f.take(uint64(len(id))))
	return id
}

// whole reports whether all of the body was read without an error.
func (f *fields) whole() bool { return !f.bad && len(f.rest) == 0 }

func appendHeader(dst []byte, i Identity) []byte {
	dst, start := begin(dst, kindHeader)
	dst = binary.AppendUvarint(dst, version)
	dst = appendBytes(dst, i.Stream)
	dst = binary.AppendUvarint(dst, uint64(i.Created.UnixMilli()))
	for _, text := range []string{i.Key, i.Format, i.Order} {
		dst = appendBytes(dst, text)
	}
	dst = binary.AppendUvarint(dst, uint64(len(i.Files)))
	for _, file := range i.Files {
		dst = appendBytes(dst, file.Name)
		dst = binary.AppendUvarint(dst, uint64(file.Size))
	}
	dst = appendBytes(appendBytes(dst, i.HashKey), i.Keys)
	dst = binary.AppendUvarint(dst, uint64(len(i.Columns)))
	for _, columns := range i.Columns {
		dst = appendBytes(dst, columns)
	}
	return seal(dst, start)
}

func (f *fields) identity() (i Identity) {
	if f.number() != version {
		f.bad = true
		return i
	}
	i.Stream = f.text()
	i.Created = time.UnixMilli(int64(f.number()))
	i.Key, i.Format, i.Order = f.text(), f.text(), f.text()
	for n := f.number(); n > 0 && !f.bad; n-- {
		i.Files = append(i.Files, File{Name: f.text(), Size: int64(f.number())})
	}
	if len(f.rest) > 0 {
		i.HashKey = f.text()
	}
	if i.early = len(f.rest) == 0; i.early {
		return i
	}
	i.Keys = f.text()
	for n := f.number(); n > 0 && !f.bad; n-- {
		i.Columns = append(i.Columns, f.text())
	}
	return i
}

func appendFrozen(dst []byte, u FrozenUnit) []byte {
	dst, start := begin(dst, kindFrozen)
	dst = append(dst, u.Unit.Producer[:]...)
	dst = binary.AppendUvarint(dst, u.Unit.Number)
	dst = binary.AppendUvarint(dst, u.Unit.Low)
	unordered := uint64(0)
	if u.Unit.Unordered {
		unordered = 1
	}
	dst = binary.AppendUvarint(dst, unordered)
	dst = binary.AppendUvarint(dst, uint64(u.FrozenAt.UnixMilli()))
	dst = appendBytes(dst, u.PartitionKey)
	dst = appendBytes(dst, u.ExplicitHashKey)
	dst = appendMarks(dst, u.Marks)
	dst = appendBytes(dst, u.Data)
	if server := u.ServerTime; !server.IsZero() || u.BootID != "" {
		dst = binary.AppendVarint(dst, unixMilli(server))
		dst = appendBytes(dst, u.BootID)
		dst = binary.AppendVarint(dst, int64(u.BootTime))
	}
	return seal(dst, start)
}

// unixMilli is the time in milliseconds since 1970, and 0 for none.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func (f *fields) frozen() (u FrozenUnit) {
	u.Unit.Producer = f.producer()
	u.Unit.Number, u.Unit.Low = f.number(), f.number()
	u.Unit.Unordered = f.number() == 1
	u.FrozenAt = time.UnixMilli(int64(f.number()))
	u.PartitionKey, u.ExplicitHashKey = f.text(), f.text()
	u.Marks, u.Data = f.marks(), f.bytes()
	if len(f.rest) > 0 {
		if server := f.signed(); server != 0 {
			u.ServerTime = time.UnixMilli(server)
		}
		u.BootID, u.BootTime = f.text(), time.Duration(f.signed())
	}
	return u
}

func appendSettled(dst []byte, u SettledUnit) []byte {
	dst, start := begin(dst, kindSettled)
	dst = append(dst, u.Producer[:]...)
	dst = binary.AppendUvarint(dst, u.Number)
	return seal(append(dst, byte(u.Fate)), start)
}

func (f *fields) settled() SettledUnit {
	u := SettledUnit{Producer: f.producer(), Number: f.number()}
	if fate := f.take(1); !f.bad {
		u.Fate = Fate(fate[0])
		f.bad = u.Fate < Stored || u.Fate > Again
	}
	return u
}

// appendRead writes the number of records read, their hash, and the synced bytes of the file before
// this frame.
func appendRead(dst []byte, records uint64, sum digest, synced int64) []byte {
	dst, start := begin(dst, kindRead)
	dst = binary.AppendUvarint(dst, records)
	dst = append(dst, sum[:]...)
	return seal(binary.AppendUvarint(dst, uint64(synced)), start)
}

func (f *fields) read() (records uint64, sum digest, synced int64) {
	records = f.number()
	copy(sum[:], f.take(uint64(len(sum))))
	return records, sum, int64(f.number())
}

func appendCovered(dst []byte, m marks) []byte {
	dst, start := begin(dst, kindCovered)
	dst = binary.AppendUvarint(dst, m.low)
	dst = appendMarks(dst, sorted(m.above))
	return seal(appendMarks(dst, sorted(m.again)), start)
}

func (f *fields) covered() marks {
	return marks{low: f.number(), above: set(f.marks()), again: set(f.marks())}
}
