package shardlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// A log that syncs at intervals loses acknowledged records in a power cut. Readers may have seen
// them, and consumers may have their numbers as checkpoints. If new records got the same numbers,
// such a consumer would skip them. So a record has two numbers. Its index is dense and is the key
// of everything in this package. Its serial is the source of the API's sequence number. Both are
// equal until a life begins that follows such a loss; from then on serials exceed indexes by the
// amount of the skip.
//
// The amount is the life's number, which the log never uses twice, times 2^32. A life loses fewer
// records than that, since it syncs whenever a log file is full. So the serials of lost records
// are below those of all later records. A serial between those of two neighbouring records
// belongs to a lost one. That also holds if a power cut takes the skip itself, with every record
// after it: the next life has a larger number.

// skip states that the serials of the records from first on are their indexes plus by.
type skip struct {
	first uint64
	by    uint64
}

// lifeBits sets the distance between the serials of two lives. The API has 63 bits for a serial,
// which leaves room for 2^31 lives or log files.
const lifeBits = 32

// skips is a shard's skips in order; both members grow. It is immutable once published.
type skips []skip

// serial returns the serial of the record at index.
func (s skips) serial(index uint64) uint64 {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].first <= index {
			return index + s[i].by
		}
	}
	return index
}

// index returns the index of the record with the serial, and exact. If that record was lost, it
// returns the index of the first record after it, and exact is false.
func (s skips) index(serial uint64) (index uint64, exact bool) {
	after := sort.Search(len(s), func(i int) bool { return s[i].first+s[i].by > serial })
	index = serial
	if after > 0 {
		index -= s[after-1].by
	}
	if after < len(s) && index >= s[after].first {
		return s[after].first, false
	}
	return index, true
}

// with returns the skips with one more. It drops skips without records. Adding the same skip
// again changes nothing.
func (s skips) with(next skip) skips {
	if len(s) > 0 && s[len(s)-1].by >= next.by {
		return s
	}
	kept := slices.Clone(s)
	for len(kept) > 0 && kept[len(kept)-1].first >= next.first {
		kept = kept[:len(kept)-1]
	}
	return append(kept, next)
}

// broken reports whether a shard whose next record is at next cannot have these skips.
func (s skips) broken(next uint64) bool {
	before := skip{}
	for _, each := range s {
		if each.first <= before.first || each.first > next || each.by <= before.by {
			return true
		}
		before = each
	}
	return false
}

// skipping returns the shard's skips.
func (sh *Shard) skipping() skips {
	if s := sh.skips.Load(); s != nil {
		return *s
	}
	return nil
}

func (sh *Shard) setSkips(s skips) { sh.skips.Store(&s) }

// IndexOf returns the index of the record with a serial. exact is then true, even if the record
// does not exist yet or any more. If the record was lost in a power cut, or no record has the
// serial, IndexOf returns the index of the first record after it.
func (sh *Shard) IndexOf(serial uint64) (index uint64, exact bool) {
	return sh.skipping().index(serial)
}

// Place returns a position that stays valid in later lives: one above the serial of the record
// before index. IndexOf(Place(index)) is index, or the first new record if the one before index
// was lost.
func (sh *Shard) Place(index uint64) uint64 {
	if index == 0 {
		return 0
	}
	return sh.skipping().serial(index-1) + 1
}

// Begin lets the serials of all open shards skip ahead if the earlier run of the server may have
// lost acknowledged records. New shards begin with the same skip. Call it after wal.Log.Start and
// before the first append.
func (s *Store) Begin(ctx context.Context) error {
	life, lossy := s.log.Life()
	s.lost()
	if !lossy {
		return nil
	}
	all := s.all()
	var at wal.LSN
	// A start on a full disk must be able to skip.
	err := s.log.SequenceFreeing(ctx, skipHeader+len(all)*skipEntry, func(tx *wal.Tx) {
		f := skipFrame{by: life << lifeBits}
		for _, sh := range all {
			sh.seq.Lock()
			if !sh.seq.sealed && !sh.seq.deleted {
				f.shards = append(f.shards, sh.id)
				f.first = append(f.first, sh.seq.next)
			}
			sh.seq.Unlock()
		}
		at = tx.Append(wal.KindRecords, f.encode(), nil)
		s.skip(f)
	})
	if err == nil {
		err = s.log.Wait(ctx, at)
	}
	if err != nil {
		return fmt.Errorf("skip the sequence numbers of lost records: %w", err)
	}
	return nil
}

// skip applies a frame.
func (s *Store) skip(f skipFrame) {
	s.mu.Lock()
	s.mu.skipped = max(s.mu.skipped, f.by)
	s.mu.Unlock()
	for i, id := range f.shards {
		if sh := s.Shard(id); sh != nil {
			sh.setSkips(sh.skipping().with(skip{f.first[i], f.by}))
		}
	}
}

func (s *Store) replaySkip(payload []byte) error {
	f, err := decodeSkip(payload)
	if err != nil {
		return err
	}
	for i, id := range f.shards {
		sh := s.Shard(id)
		if sh == nil {
			return fmt.Errorf("%w: a skip of shard %d, which is not there", ErrFormat, id)
		}
		if _, next := sh.Bounds(); f.first[i] > next {
			return fmt.Errorf("%w: shard %d skips from record %d on, after its %d", ErrFormat, id,
				f.first[i], next)
		}
	}
	s.skip(f)
	return nil
}

// skipFrame is a life's skip in the log: the amount, and for each shard the index of its next
// record.
type skipFrame struct {
	by     uint64
	shards []ID
	first  []uint64
}

const (
	skipHeader = 1 + 8 + 4
	skipEntry  = 8 + 8
)

func (f skipFrame) encode() []byte {
	le := binary.LittleEndian
	dst := make([]byte, 0, skipHeader+len(f.shards)*skipEntry)
	dst = append(dst, opSkip)
	dst = le.AppendUint64(dst, f.by)
	dst = le.AppendUint32(dst, uint32(len(f.shards)))
	for i, id := range f.shards {
		dst = le.AppendUint64(dst, uint64(id))
		dst = le.AppendUint64(dst, f.first[i])
	}
	return dst
}

func decodeSkip(payload []byte) (f skipFrame, err error) {
	le := binary.LittleEndian
	if len(payload) < skipHeader || payload[0] != opSkip ||
		uint64(len(payload)-skipHeader) != uint64(le.Uint32(payload[9:]))*skipEntry {
		return f, fmt.Errorf("%w: a skip of %d bytes", ErrFormat, len(payload))
	}
	f.by = le.Uint64(payload[1:])
	for rest := payload[skipHeader:]; len(rest) > 0; rest = rest[skipEntry:] {
		f.shards = append(f.shards, ID(le.Uint64(rest)))
		f.first = append(f.first, le.Uint64(rest[8:]))
	}
	if f.by == 0 || slices.Contains(f.first, 0) {
		return f, fmt.Errorf("%w: a skip by %d", ErrFormat, f.by)
	}
	return f, nil
}
