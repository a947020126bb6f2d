package shardlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Trim logs that a shard's records with an arrival before ms (since 1970) are trimmed, and
// returns once that is durable. From then on no reader sees them, and segments that hold only
// trimmed records are removed in the background. Do not call it inside wal.Log.Sequence. An
// unknown shard is ignored.
//
// In a damaged segment arrivals cannot be read. All its records are kept until the whole segment
// is older than ms.
//
// Errors: ctx's, ErrClosed, the log's, and the file system's.
func (s *Store) Trim(ctx context.Context, id ID, ms int64) error {
	sh := s.Shard(id)
	if sh == nil {
		return nil
	}
	keep, err := sh.trimPoint(ctx, ms)
	if errors.Is(err, ErrDeleted) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("trim shard %d: %w", id, err)
	}
	if oldest, _ := sh.Bounds(); keep <= oldest {
		return nil
	}
	var lsn wal.LSN
	err = s.log.SequenceFreeing(ctx, trimSize, func(tx *wal.Tx) {
		sh.seq.Lock()
		defer sh.seq.Unlock()
		if !sh.seq.deleted {
			payload := appendTrim(make([]byte, 0, trimSize), id, keep)
			lsn = tx.Append(wal.KindRecords, payload, func() { sh.publishTrim(keep) })
		}
	})
	if err == nil {
		err = s.log.Wait(ctx, lsn)
	}
	if err != nil {
		return fmt.Errorf("trim shard %d: %w", id, err)
	}
	return nil
}

// trimPoint returns the index of the oldest record to keep.
func (sh *Shard) trimPoint(ctx context.Context, ms int64) (uint64, error) {
	keep, err := sh.IndexAt(ctx, ms)
	if !errors.Is(err, ErrCorrupt) {
		return keep, err
	}
	sh.pub.Lock()
	defer sh.pub.Unlock()
	for _, seg := range sh.pub.segments {
		if seg.lastArrival >= ms {
			return seg.first, nil
		}
	}
	return sh.pub.drained, nil
}
