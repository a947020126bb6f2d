package shardlog

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// segment describes a file of record frames.
type segment struct {
	shard *Shard
	first uint64 // index of its first record; also its name

	// Guarded by shard.pub. They grow while the segment is the shard's active one.
	end          uint64 // index after its last record
	size         int64
	firstArrival int64
	lastArrival  int64
}

// extent is a copy of a segment's state at one instant.
type extent struct {
	*segment
	end          uint64
	size         int64
	firstArrival int64
	lastArrival  int64
}

// takes reports whether a shard's active segment, nil if there is none, takes the record at index.
// One without records has its first record's index as its name.
func (seg *segment) takes(index uint64, limit int64) bool {
	return seg != nil && seg.size < limit && (seg.size > 0 || seg.first == index)
}

func (seg *segment) extentLocked() extent {
	return extent{seg, seg.end, seg.size, seg.firstArrival, seg.lastArrival}
}

const segmentSuffix = ".seg"

func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, segmentSuffix) }

// parseSegmentName parses a name made by segmentName.
func parseSegmentName(name string) (first uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, err == nil
}

func (seg *segment) path() string { return path.Join(seg.shard.folder, segmentName(seg.first)) }

// scanner returns a scanner of the extent's frames from a place in it on.
func (e extent) scanner(file vfs.File, from place, want int64) *scanner {
	s := &scanner{
		file: file, name: e.path(), seed: e.shard.seed,
		off: from.offset, next: from.index, limit: e.size, end: e.end, want: want,
	}
	if e.end != anyIndex {
		s.times = segmentTimes{e.first, e.end, e.firstArrival, e.lastArrival}
	}
	if e.shard.store.cfg.SkipDamaged {
		s.behind = func(at place, corrupt *CorruptError) (place, error) {
			return e.shard.store.behind(e, file, at, corrupt)
		}
	}
	return s
}
