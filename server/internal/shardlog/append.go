package shardlog

import (
	"fmt"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// BatchSize returns the number of bytes that Append adds to the log for the entries: the size to
// pass to [wal.Log.Sequence].
func BatchSize(entries []Entry) int {
	size := batchHeader
	for _, e := range entries {
		size += frameSize(e)
	}
	return size
}

// Append numbers the entries and appends them to the log as one frame. All get one arrival: the
// current time, or that of the shard's last record if the clock is behind it. Call it inside
// wal.Log.Sequence with the catalogue's lock held, so that the shard cannot be sealed meanwhile.
// No reader sees the records before their frame is durable, and the caller must not publish their
// numbers before wal.Log.Wait(lsn). Append copies the data.
//
// Errors, after which the shard is unchanged: ErrSealed and ErrDeleted; ErrBatch for no entries,
// a record above 32 MiB or a batch above 64 MiB; and Store.Err's.
func (sh *Shard) Append(tx *wal.Tx, entries []Entry) ([]Number, wal.LSN, error) {
	if err := sh.appendable(entries); err != nil {
		return nil, 0, fmt.Errorf("append to shard %d: %w", sh.id, err)
	}
	sh.seq.Lock()
	defer sh.seq.Unlock()
	switch {
	case sh.seq.deleted:
		return nil, 0, fmt.Errorf("append to shard %d: %w", sh.id, ErrDeleted)
	case sh.seq.sealed:
		return nil, 0, fmt.Errorf("append to shard %d: %w", sh.id, ErrSealed)
	}
	arrival := max(sh.store.cfg.Now().UnixMilli(), sh.seq.arrival)
	numbers := make([]Number, len(entries))
	skipping := sh.skipping()
	b := &batch{first: sh.seq.next, count: len(entries), arrival: arrival}
	payload := make([]byte, 0, BatchSize(entries))
	payload = appendBatchHeader(payload, sh.id, b)
	for i, e := range entries {
		index := b.first + uint64(i)
		numbers[i] = Number{Index: index, Serial: skipping.serial(index), Arrival: arrival}
		payload = appendFrame(payload, sh.seed, numbers[i], e)
	}
	b.frames = payload[batchHeader:]
	b.held = len(payload)
	lsn := tx.Append(wal.KindRecords, payload, func() { sh.publish(b) })
	tx.Hold(b.held)
	sh.seq.next, sh.seq.arrival = b.end(), arrival
	sh.sequenced.Store(b.end()) // inside wal.Log.Sequence
	return numbers, lsn, nil
}

// appendable makes the checks that need no lock.
func (sh *Shard) appendable(entries []Entry) error {
	if err := sh.store.Err(); err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%w: it has no records", ErrBatch)
	}
	for i, e := range entries {
		if size := frameSize(e); size > maxFrame {
			return fmt.Errorf("%w: record %d of it has %d bytes, more than %d",
				ErrBatch, i, size-frameHeader, maxFrame-frameHeader)
		}
	}
	if size := BatchSize(entries); size > maxBatch {
		return fmt.Errorf("%w: it has %d bytes, more than %d", ErrBatch, size, maxBatch)
	}
	return nil
}
