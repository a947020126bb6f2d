package shardlog

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// snapshotVersion is the first byte of a snapshot. It versions the snapshot, the log frames and
// the segments together: a change to any of them takes the next number.
const (
	snapshotVersion = 3
	snapshotSkips   = 2 // without lost records
	snapshotPlain   = 1 // without skips either; the lowest version that fits is written
)

// shardImage is a shard's part of a snapshot. Its segments hold the records up to next, durably;
// those in [oldest, next) are not trimmed. Records between two segments, or between the last one
// and next, were lost: a repair found their frames damaged.
type shardImage struct {
	id       ID
	oldest   uint64
	next     uint64
	arrival  int64 // of the record before next
	sealed   bool
	segments []segmentImage
	skips    skips
}

type segmentImage struct {
	first        uint64
	end          uint64
	size         int64
	firstArrival int64
	lastArrival  int64
}

// The encoding, all numbers as uvarints: version and count of shards. Then for each shard: id,
// oldest, next, arrival, sealed, count of segments. Then for each segment: the records between
// the end of the segment before and its first record (0 except for the first segment), its count
// of records, its size, its first arrival, and its last arrival minus the first. Version 2 adds
// the latest skip's amount after the version, and for each shard, after the segments, the count
// of its skips with first and amount of each. Version 3 has the same fields, allows records to be
// missing between segments, and need not have skips.

func encodeSnapshot(shards []shardImage, skipped uint64) []byte {
	version := byte(snapshotPlain)
	switch lossy := func(sh shardImage) bool { return sh.lost() > 0 }; {
	case slices.ContainsFunc(shards, lossy):
		version = snapshotVersion
	case skipped > 0:
		version = snapshotSkips
	}
	return encodeVersion(version, shards, skipped)
}

func encodeVersion(version byte, shards []shardImage, skipped uint64) []byte {
	put := binary.AppendUvarint
	dst := []byte{version}
	if version != snapshotPlain {
		dst = put(dst, skipped)
	}
	dst = put(dst, uint64(len(shards)))
	for _, sh := range shards {
		sealed := uint64(0)
		if sh.sealed {
			sealed = 1
		}
		dst = put(dst, uint64(sh.id))
		dst = put(dst, sh.oldest)
		dst = put(dst, sh.next)
		dst = put(dst, uint64(sh.arrival))
		dst = put(dst, sealed)
		dst = put(dst, uint64(len(sh.segments)))
		end := uint64(0)
		for _, seg := range sh.segments {
			dst = put(dst, seg.first-end)
			dst = put(dst, seg.end-seg.first)
			dst = put(dst, uint64(seg.size))
			dst = put(dst, uint64(seg.firstArrival))
			dst = put(dst, uint64(seg.lastArrival-seg.firstArrival))
			end = seg.end
		}
		if version != snapshotPlain {
			dst = put(dst, uint64(len(sh.skips)))
			for _, each := range sh.skips {
				dst = put(put(dst, each.first), each.by)
			}
		}
	}
	return dst
}

// decodeSnapshot decodes and checks a snapshot. Errors wrap ErrFormat.
func decodeSnapshot(data []byte) (shards []shardImage, skipped uint64, err error) {
	if len(data) == 0 || data[0] < snapshotPlain || data[0] > snapshotVersion {
		return nil, 0, fmt.Errorf("%w: the snapshot's version is not up to %d", ErrFormat,
			snapshotVersion)
	}
	in := uvarints{rest: data[1:]}
	if data[0] != snapshotPlain {
		skipped = in.next()
		in.bad = in.bad || skipped == 0 && data[0] == snapshotSkips
	}
	mayLack := data[0] == snapshotVersion
	count := in.count()
	for range count {
		sh := shardImage{
			id: ID(in.next()), oldest: in.next(), next: in.next(), arrival: in.int64(),
			sealed: in.next() == 1,
		}
		end := uint64(0)
		for range in.count() {
			seg := segmentImage{first: end + in.next()}
			seg.end = seg.first + in.next()
			seg.size = in.int64()
			seg.firstArrival = in.int64()
			seg.lastArrival = seg.firstArrival + in.int64()
			in.bad = in.bad || seg.broken()
			sh.segments = append(sh.segments, seg)
			end = seg.end
		}
		if data[0] != snapshotPlain {
			for range in.count() {
				sh.skips = append(sh.skips, skip{in.next(), in.next()})
			}
		}
		if in.bad || sh.broken() || !mayLack && sh.lost() > 0 {
			return nil, 0, fmt.Errorf("%w: the snapshot is broken at shard %d", ErrFormat, sh.id)
		}
		shards = append(shards, sh)
	}
	if in.bad || len(in.rest) > 0 {
		return nil, 0, fmt.Errorf("%w: the snapshot is broken after %d shards",
			ErrFormat, len(shards))
	}
	return shards, skipped, nil
}

// broken reports whether the segments lie outside [oldest, next) or overlap.
func (sh shardImage) broken() bool {
	if sh.oldest == 0 || sh.oldest > sh.next || sh.skips.broken(sh.next) {
		return true
	}
	end := uint64(0)
	for _, seg := range sh.segments {
		if seg.first < end {
			return true
		}
		end = seg.end
	}
	return end > sh.next
}

// lost returns the number of records in [oldest, next) that no segment holds.
func (sh shardImage) lost() (lost uint64) {
	end := sh.oldest
	for _, seg := range sh.segments {
		if seg.first > end {
			lost += seg.first - end
		}
		end = max(end, seg.end)
	}
	return lost + sh.next - min(end, sh.next)
}

func (seg segmentImage) broken() bool {
	return seg.first == 0 || seg.end <= seg.first || seg.lastArrival < seg.firstArrival ||
		uint64(seg.size) < (seg.end-seg.first)*frameHeader ||
		seg.end-seg.first > math.MaxInt64/frameHeader
}

// uvarints reads numbers one after another; bad is set once one is missing.
type uvarints struct {
	rest []byte
	bad  bool
}

func (u *uvarints) next() uint64 {
	v, n := binary.Uvarint(u.rest)
	if n <= 0 {
		u.bad, u.rest = true, nil
		return 0
	}
	u.rest = u.rest[n:]
	return v
}

func (u *uvarints) int64() int64 {
	v := u.next()
	if v > math.MaxInt64 {
		u.bad = true
		return 0
	}
	return int64(v)
}

// count reads the number of the following items, each of at least one byte.
func (u *uvarints) count() int {
	v := u.next()
	if v > uint64(len(u.rest)) {
		u.bad = true
		return 0
	}
	return int(v)
}
