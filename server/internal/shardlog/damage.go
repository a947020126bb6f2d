package shardlog

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// damage holds the damaged places that reads have skipped, so that each is searched, logged and
// counted once.
type damage struct {
	mu      sync.Mutex
	skipped map[damagedPlace]place // where to read on
	records uint64
}

type damagedPlace struct {
	segment *segment
	offset  int64
}

// Damaged returns the number of damaged records that reads have skipped since the start, each once.
func (s *Store) Damaged() uint64 {
	s.damage.mu.Lock()
	defer s.damage.mu.Unlock()
	return s.damage.records
}

// behind returns the place of the first whole frame behind a damaged one at a place of the extent,
// or the extent's end. Errors: those of reading.
func (s *Store) behind(e extent, file vfs.File, at place, corrupt *CorruptError) (place, error) {
	key := damagedPlace{e.segment, at.offset}
	s.damage.mu.Lock()
	to, known := s.damage.skipped[key]
	s.damage.mu.Unlock()
	if known {
		return to, nil
	}
	if corrupt.foreign {
		s.pass(key, at.index, place{index: e.end, offset: e.size}, corrupt)
		return place{index: e.end, offset: e.size}, nil
	}
	buf := make([]byte, max(e.size-at.offset, 0))
	n, err := file.ReadAt(buf, at.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return place{}, fmt.Errorf("read %s at offset %d: %w", e.path(), at.offset, err)
	}
	to = place{index: e.end, offset: e.size}
	whole := salvage{buf: buf[:n], seed: e.shard.seed, end: e.end}
	if off, index, ok := whole.resync(0, at.index); ok {
		to = place{index: index, offset: at.offset + int64(off)}
	}
	s.pass(key, at.index, to, corrupt)
	return to, nil
}

// passes reports whether reads go on behind a segment whose file is missing.
func (s *Store) passes(err error, e extent, at place) bool {
	var corrupt *CorruptError
	if !s.cfg.SkipDamaged || !errors.As(err, &corrupt) {
		return false
	}
	s.pass(damagedPlace{e.segment, 0}, max(at.index, e.first),
		place{index: e.end, offset: e.size}, corrupt)
	return true
}

// pass remembers a damaged place. The first caller counts and logs it.
func (s *Store) pass(key damagedPlace, from uint64, to place, corrupt *CorruptError) {
	s.damage.mu.Lock()
	defer s.damage.mu.Unlock()
	if _, known := s.damage.skipped[key]; known {
		return
	}
	if s.damage.skipped == nil {
		s.damage.skipped = map[damagedPlace]place{}
	}
	s.damage.skipped[key] = to
	s.damage.records += to.index - min(from, to.index)
	s.cfg.Logger.Warn("reads skip damaged records; stop the server and run runnel fsck --repair",
		"file", corrupt.File, "offset", corrupt.Offset, "shard", key.segment.shard.id,
		"from", from, "to", to.index, "reason", corrupt.Reason)
}
