package shardlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

var _ wal.Machine = (*Store)(nil)

// Restore implements wal.Machine. It reads no data: it cuts the shards' last segments back to
// their sizes in the snapshot, and removes the files that the snapshot does not name.
func (s *Store) Restore(snapshot []byte) error {
	images, skipped, err := decodeSnapshot(snapshot)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.mu.skipped = skipped
	s.mu.Unlock()
	for _, image := range images {
		if err := s.Create(image.id).restore(image); err != nil {
			return fmt.Errorf("restore shard %d: %w", image.id, err)
		}
	}
	names, err := s.cfg.FS.List(s.root)
	if err != nil {
		return fmt.Errorf("list the shards: %w", err)
	}
	for _, name := range names {
		id, err := strconv.ParseUint(name, 10, 64)
		if err == nil && s.Shard(ID(id)) == nil {
			s.removeFolder(path.Join(s.root, name))
		}
	}
	return nil
}

func (sh *Shard) restore(image shardImage) error {
	sh.seq.Lock()
	sh.seq.next, sh.seq.arrival, sh.seq.sealed = image.next, image.arrival, image.sealed
	sh.seq.Unlock()
	sh.setSkips(image.skips)
	sh.pub.Lock()
	sh.pub.oldest, sh.pub.drained, sh.pub.next = image.oldest, image.next, image.next
	sh.pub.arrival, sh.pub.drainedArrival = image.arrival, image.arrival
	sh.pub.sealed = image.sealed
	for _, each := range image.segments {
		sh.pub.segments = append(sh.pub.segments, &segment{
			shard: sh, first: each.first, end: each.end, size: each.size,
			firstArrival: each.firstArrival, lastArrival: each.lastArrival,
		})
		sh.store.bytes.Add(each.size)
	}
	segs := sh.pub.segments
	sh.pub.Unlock()
	err := sh.sweep(func(first uint64) error { return sh.weigh(first, image.next) })
	if err != nil {
		return err
	}
	if len(segs) == 0 {
		return nil
	}
	last := segs[len(segs)-1]
	whole, err := sh.store.cut(last)
	if whole && last.end == image.next { // else the records after it were lost
		sh.active = last
	}
	return err
}

// cut removes the bytes that were written to a segment's file after the snapshot. whole is false
// if the file is missing or too short. That is no error yet, since a later frame may have trimmed
// those records; if none has, a read reports it. Such a segment takes no further records.
func (s *Store) cut(seg *segment) (whole bool, err error) {
	info, err := s.cfg.FS.Stat(seg.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at a segment: %w", err)
	case info.Size() <= seg.size:
		return info.Size() == seg.size, nil
	}
	seg.shard.extras = append(seg.shard.extras, extra{seg.end, info.Size() - seg.size})
	file, err := s.cfg.FS.Open(seg.path())
	if err != nil {
		return false, fmt.Errorf("open a segment: %w", err)
	}
	if err := errors.Join(file.Truncate(seg.size), file.Close()); err != nil {
		return false, fmt.Errorf("cut %s back to %d bytes: %w", seg.path(), seg.size, err)
	}
	return true, nil
}

// Replay implements wal.Machine. It skips records that the segments of the snapshot hold. It
// waits while more than MaxReplay bytes are undrained: at a start no Hold takes them from the
// log's budget.
func (s *Store) Replay(at wal.LSN, payload []byte) error {
	var err error
	switch {
	case len(payload) > 0 && payload[0] == opTrim:
		err = s.replayTrim(payload)
	case len(payload) > 0 && payload[0] == opSkip:
		err = s.replaySkip(payload)
	default:
		err = s.replayBatch(payload)
	}
	if err != nil {
		return fmt.Errorf("replay the records at %d of the log: %w", at, err)
	}
	return nil
}

func (s *Store) replayTrim(payload []byte) error {
	id, oldest, err := decodeTrim(payload)
	if err != nil {
		return err
	}
	sh := s.Shard(id)
	if sh == nil {
		return fmt.Errorf("%w: a trim of shard %d, which is not there", ErrFormat, id)
	}
	if _, next := sh.Bounds(); oldest > next {
		return fmt.Errorf("%w: a trim of shard %d up to record %d, after its %d",
			ErrFormat, id, oldest, next)
	}
	sh.publishTrim(oldest)
	return nil
}

func (s *Store) replayBatch(payload []byte) error {
	id, b, err := decodeBatch(bytes.Clone(payload))
	if err != nil {
		return err
	}
	sh := s.Shard(id)
	if sh == nil {
		return fmt.Errorf("%w: records of shard %d, which is not there", ErrFormat, id)
	}
	sh.seq.Lock()
	next := sh.seq.next
	if b.first <= next && next < b.end() {
		sh.seq.next, sh.seq.arrival = b.end(), max(b.arrival, sh.seq.arrival)
	}
	sh.seq.Unlock()
	switch {
	case b.first > next:
		return fmt.Errorf("%w: shard %d has record %d after %d", ErrFormat, id, b.first, next-1)
	case b.end() <= next:
		return nil
	}
	b = b.after(next)
	sh.found(b)
	sh.publish(b)
	return s.drain.relieved(s.cfg.MaxReplay)
}

// frozen is a shard at the instant of Freeze.
type frozen struct {
	shard  *Shard
	next   uint64
	sealed bool
}

// Freeze implements wal.Machine. The function that it returns waits until the drainer has written
// all records that were sequenced up to the instant, then syncs the segments. The snapshot may
// also name later records; Replay recognises and skips those.
func (s *Store) Freeze() func(ctx context.Context) ([]byte, error) {
	shards := s.all()
	s.mu.RLock()
	skipped := s.mu.skipped
	s.mu.RUnlock()
	list := make([]frozen, 0, len(shards))
	for _, sh := range shards {
		sh.seq.Lock()
		if !sh.seq.deleted {
			list = append(list, frozen{sh, sh.seq.next, sh.seq.sealed})
		}
		sh.seq.Unlock()
	}
	return func(ctx context.Context) ([]byte, error) {
		snapshot, err := s.snapshot(ctx, list, skipped)
		if err != nil {
			return nil, fmt.Errorf("checkpoint the records: %w", err)
		}
		return snapshot, nil
	}
}

func (s *Store) snapshot(ctx context.Context, list []frozen, skipped uint64) ([]byte, error) {
	done := 0
	err := s.drain.drainedBy(ctx, func() bool {
		for done < len(list) && list[done].shard.drainedTo(list[done].next) {
			done++
		}
		return done == len(list)
	})
	if err != nil {
		return nil, err
	}
	images := make([]shardImage, len(list))
	for i, each := range list { // before the sync, which then covers every named byte
		images[i] = each.image()
	}
	if err := s.syncSegments(ctx.Done()); err != nil {
		if errors.Is(err, errStopped) {
			err = ctx.Err()
		}
		return nil, err
	}
	return encodeSnapshot(images, skipped), nil
}

func (sh *Shard) drainedTo(next uint64) bool {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	return sh.pub.drained >= next || sh.pub.deleted
}

// image describes the shard with its current segments and durable log. A shard that was deleted
// since the instant is described as trimmed to its end: the frame that deletes it follows in the
// log.
func (f frozen) image() shardImage {
	f.shard.pub.Lock()
	defer f.shard.pub.Unlock()
	if f.shard.pub.deleted {
		next := max(f.next, f.shard.pub.next)
		return shardImage{
			id: f.shard.id, oldest: next, next: next, arrival: f.shard.pub.arrival,
			sealed: f.sealed, skips: f.shard.skipping(),
		}
	}
	image := shardImage{
		id: f.shard.id, oldest: min(f.shard.pub.oldest, f.shard.pub.drained),
		next: f.shard.pub.drained, arrival: f.shard.pub.drainedArrival, sealed: f.sealed,
		skips: f.shard.skipping(),
	}
	for _, seg := range f.shard.pub.segments {
		image.segments = append(image.segments, segmentImage{
			seg.first, seg.end, seg.size, seg.firstArrival, seg.lastArrival,
		})
	}
	return image
}
