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

// reader reads the frames of one log file, one after the other.
type reader struct {
	file vfs.File
	segment
	off    int64  // of the next frame
	win    []byte // bytes of the file from winAt on
	winAt  int64
	buf    []byte // what win lies in
	sealer sealer
}

// frame is one that verified. The payload is valid until the next one is read.
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

// next reads a frame; false where there is none that verifies. An error is one of reading,
// which says nothing about what is there.
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

// peek returns the next n bytes; nil if the file ends before.
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

// provesMore looks, from an offset on, for a header of this generation that was written when
// the log was durable beyond bad, a place before it where no frame verifies. There is one if
// the place was acknowledged and has rotted; there is none behind a torn tail, since a batch
// is written after the one before it was synced. It returns the header's offset, 0 for none.
//
// (One case looks the same as a torn tail: rot in the very last batch, within the moment until
// a mark is written behind it. Nothing after it says then that it was durable.)
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

// zeros is compared with, to step over what was never written.
var zeros [4096]byte

// findMark moves over the bytes p, which begin at the reader's place, to such a header, or to
// where what is left is too short for one.
func (r *reader) findMark(p []byte, bad LSN) bool {
	begin, lsn, at := r.off, r.lsn(), 0
	for ; at+frameHeader <= len(p); at += frameAlign {
		// Most of a file that was not filled is zeros. A header is not all zeros: the next one
		// can begin less than a header's length before their end.
		for binary.LittleEndian.Uint64(p[at:]) == 0 && at+len(zeros) <= len(p) &&
			bytes.Equal(p[at:at+len(zeros)], zeros[:]) {
			at += len(zeros) - frameHeader
		}
		// Nearly everything else fails this test, so that it costs little.
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
