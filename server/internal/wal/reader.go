package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/runnel-stream/runnel/internal/vfs"
)

const readWindow = 256 << 10

// reader reads the frames of one log file in order.
type reader struct {
	file vfs.File
	segment
	off    int64  // of the next frame
	win    []byte // the file's bytes from winAt on
	winAt  int64
	buf    []byte // the memory of win
	sealer sealer
}

// frame is a valid frame. The payload is valid until the next read.
type frame struct {
	frameInfo
	end     LSN
	payload []byte
}

func newReader(file vfs.File, s segment, from LSN) *reader {
	return &reader{file: file, segment: s, off: blockSize + int64(from-s.start)}
}

// lsn returns the place of the next frame.
func (r *reader) lsn() LSN { return r.start + LSN(r.off-blockSize) }

// next reads a frame. It returns false at a place without a valid frame. An error means that the
// file could not be read; it does not mean that the place holds no frame.
func (r *reader) next() (frame, bool, error) {
	header, err := r.peek(frameHeader)
	if err != nil || header == nil {
		return frame{}, false, err
	}
	info, ok := r.sealer.open(header, r.generation, r.lsn())
	if !ok {
		return frame{}, false, nil
	}
	p, err := r.peek(frameSize(info.length))
	if err != nil || p == nil {
		return frame{}, false, err
	}
	payload := p[frameHeader : frameHeader+info.length]
	if crc32.Checksum(payload, castagnoli) != info.sum {
		return frame{}, false, nil
	}
	r.off += int64(len(p))
	return frame{frameInfo: info, end: r.lsn(), payload: payload}, true, nil
}

// peek returns the next n bytes, or nil if the file ends before.
func (r *reader) peek(n int) ([]byte, error) {
	if int64(n) > r.size-r.off {
		return nil, nil
	}
	at := r.off - r.winAt
	if at < 0 || at+int64(n) > int64(len(r.win)) {
		if err := r.fill(n); err != nil {
			return nil, err
		}
		if at = 0; len(r.win) < n {
			return nil, nil
		}
	}
	return r.win[at : at+int64(n)], nil
}

// fill reads at least n bytes at off, or up to the file's end.
func (r *reader) fill(n int) error {
	want := int(min(int64(max(n, readWindow)), r.size-r.off))
	if cap(r.buf) < want {
		r.buf = make([]byte, want)
	}
	got, err := r.file.ReadAt(r.buf[:want], r.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	r.win, r.winAt = r.buf[:got], r.off
	return nil
}

// provesMore searches from an offset on for proof that bad, an earlier place without a valid
// frame, was durable. The proof is a header of this generation that records a sync beyond bad. If
// there is one, the place was acknowledged and has rotted. A torn tail has none behind it, since
// the log writes a batch only after it has synced the one before. provesMore returns the header's
// offset, or 0.
//
// (It cannot recognise rot in the very last batch before the mark behind that batch is written:
// no later header records that batch's sync.)
func (r *reader) provesMore(from int64, bad LSN) (int64, error) {
	was := r.off
	defer func() { r.off = was }()
	r.off = from
	for {
		p, err := r.peek(frameHeader)
		if err != nil || p == nil {
			return 0, err
		}
		if r.findMark(r.win[r.off-r.winAt:], bad) {
			return r.off, nil
		}
	}
}

// zeros is the pattern for skipping unwritten space.
var zeros [4096]byte

// findMark moves from the reader's place over the bytes p to such a header, or to the point where
// the rest of p is too short for one.
func (r *reader) findMark(p []byte, bad LSN) bool {
	begin, lsn, at := r.off, r.lsn(), 0
	for ; at+frameHeader <= len(p); at += frameAlign {
		// A file that was not filled is mostly zeros. A header is not all zeros, but the next one
		// may begin less than a header's length before the zeros end.
		for binary.LittleEndian.Uint64(p[at:]) == 0 && at+len(zeros) <= len(p) &&
			bytes.Equal(p[at:at+len(zeros)], zeros[:]) {
			at += len(zeros) - frameHeader
		}
		// Nearly all other bytes fail this test, so the search is cheap.
		synced := LSN(binary.LittleEndian.Uint64(p[at+16:]))
		if synced > bad && synced <= lsn+LSN(at) {
			r.off = begin + int64(at)
			if _, ok := r.sealer.open(p[at:], r.generation, r.lsn()); ok {
				return true
			}
		}
	}
	r.off = begin + int64(at)
	return false
}
