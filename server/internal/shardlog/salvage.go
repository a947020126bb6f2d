package shardlog

import (
	"encoding/binary"
	"math"
)

// salvage finds the whole frames of one shard in damaged bytes. A frame verifies only with its
// shard and index, so salvage cannot invent a record from other bytes of the server.
//
// A damaged frame whose length is intact is skipped by that length. If the length itself is
// damaged, salvage searches for the next frame that verifies. A client may have put something that
// looks like a frame into the data of a record. Such an inner frame lies before the next real one,
// and has to claim a later record than the damaged one, so its chain does not lead to the real
// frames: see resync.
type salvage struct {
	buf  []byte
	seed uint32
	end  uint64 // the index after the last record that buf can hold
}

// run is a chain of whole frames: those of the records [first, end), at [offset, offset+size).
type run struct {
	first, end   uint64
	offset, size int
	firstArrival int64
	lastArrival  int64
}

// runs returns all whole frames in order. The frame of the record at index belongs to the beginning
// of the bytes.
func (s salvage) runs(index uint64) []run {
	var found []run
	for off, ok := 0, true; ok; {
		if r := s.chain(off, index); r.size > 0 {
			found = append(found, r)
			off, index = off+r.size, r.end
		}
		if off == len(s.buf) || index >= s.end {
			break
		}
		off, index, ok = s.resync(off, index)
	}
	return found
}

// chain returns the run that begins with a record at an offset; it may be empty.
func (s salvage) chain(off int, index uint64) run {
	r := run{first: index, end: index, offset: off}
	for r.end < s.end {
		f, err := parseFrame(s.buf[off+r.size:], s.seed, r.end)
		if err != nil {
			break
		}
		if r.size == 0 {
			r.firstArrival = f.arrival
		}
		r.lastArrival = f.arrival
		r.size += f.size
		r.end++
	}
	return r
}

// resync returns the first whole frame behind a damaged one at off, that of the record bad.
//
// A candidate's chain ends at the next damage or with the last record. If the next frame behind the
// chain's end claims a record that the chain already has, the chain was inside a record's data, and
// that frame is the next candidate.
func (s salvage) resync(off int, bad uint64) (int, uint64, bool) {
	if length, err := frameLength(s.buf[off:]); err == nil && length < len(s.buf)-off {
		if s.chain(off+length, bad+1).size > 0 {
			return off + length, bad + 1, true
		}
	}
	at, index, ok := s.search(off+frameHeader, off, bad)
	for ok {
		r := s.chain(at, index)
		if r.end >= s.end || at+r.size == len(s.buf) {
			break
		}
		next, claimed, more := s.search(at+r.size, off, bad)
		if !more || claimed > r.end {
			break
		}
		at, index = next, claimed
	}
	return at, index, ok
}

// search returns the first frame from an offset on that verifies as a record after bad, which
// belongs at off. Each lost record took at least a frame's header. The search gives up after
// maxSearch bytes of checksums: data may hold very many headers that look right.
func (s salvage) search(from, off int, bad uint64) (int, uint64, bool) {
	le, summed := binary.LittleEndian, 0
	for at := from; at+frameHeader <= len(s.buf); at++ {
		p := s.buf[at:]
		index := le.Uint64(p[8:])
		if index <= bad || index >= s.end || index-bad > uint64(at-off)/frameHeader {
			continue
		}
		length, err := frameLength(p)
		if err != nil || length > len(p) {
			continue
		}
		if summed += length; summed > maxSearch {
			break
		}
		if _, err := parseFrame(p, s.seed, index); err == nil {
			return at, index, true
		}
	}
	return 0, 0, false
}

// maxSearch is about a tenth of a second of checksums, and many times a segment.
const maxSearch = 1 << 30

// anyIndex is the end of a salvage that does not know how many records there are.
const anyIndex = math.MaxUint64
