package shardlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Repairer replaces a Store for a repair: it takes the same snapshot and frames, also behind lost
// ones, and collects all whole records. Plan then reads the segments, and Write makes the files
// that the snapshot of Freeze names. Use it from one goroutine.
type Repairer struct {
	store   *Store // knows the shards; it is not started
	skipped uint64
	shards  map[ID]*repair
	deleted map[ID]bool
	adopted []ID
	planned []*repair // by Plan, in the order of their ids
}

// repair is a shard under repair.
type repair struct {
	known    *Shard
	image    shardImage // of the snapshot; next, oldest, arrival and skips also after the frames
	before   uint64     // the image's next in the snapshot: later records come from the log
	log      []piece    // the records of the log's frames that the segments do not hold
	kept     []piece    // after Plan: all records, in order
	segments []output
	foreign  map[uint64]bool // the segments whose files are of another shard's life: see foreign
	ahead    bool            // a segment had records beyond the log's end
}

// piece is a chain of whole records: those of [first, end). Its bytes are in memory, or in a file.
type piece struct {
	first, end   uint64
	firstArrival int64
	lastArrival  int64
	size         int64
	frames       []byte   // nil: in the file
	from         *segment // the file
	offset       int64
}

// output is a segment of the repaired shard.
type output struct {
	segmentImage
	pieces []piece // of a new file; nil if the file is there
}

var _ wal.Salvager = (*Repairer)(nil)

// NewRepairer returns the repairer of a data directory, registered with a log that was opened for
// salvage. Without Write it changes nothing.
func NewRepairer(log *wal.Log, fsys vfs.FS, dir string) *Repairer {
	r := &Repairer{
		store:  idleStore(Config{Log: log, FS: fsys, Dir: dir}.withDefaults()),
		shards: map[ID]*repair{}, deleted: map[ID]bool{},
	}
	log.Register(wal.KindRecords, r)
	return r
}

// Create is the catalogue's call for a new shard.
func (r *Repairer) Create(id ID) *Shard { return r.store.Create(id) }

// Seal is the catalogue's call for a closed shard.
func (r *Repairer) Seal(id ID) (published func()) { return r.store.Seal(id) }

// Delete is the catalogue's call for a shard that is gone.
func (r *Repairer) Delete(id ID) (published func()) {
	r.deleted[id] = true
	return r.store.Delete(id)
}

// Restore implements wal.Machine.
func (r *Repairer) Restore(snapshot []byte) error {
	images, skipped, err := decodeSnapshot(snapshot)
	if err != nil {
		return err
	}
	r.skip(skipped)
	for _, image := range images {
		known := r.store.Create(image.id)
		known.seq.sealed = image.sealed
		r.shards[image.id] = &repair{known: known, image: image, before: image.next}
	}
	return nil
}

func (r *Repairer) skip(by uint64) {
	r.skipped = max(r.skipped, by)
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.store.mu.skipped = r.skipped
}

// at returns a shard. It need not be known to the catalogue, whose frame may be lost.
func (r *Repairer) at(id ID) *repair {
	sh := r.shards[id]
	if sh == nil {
		known := r.store.Shard(id)
		if known == nil {
			known = newShard(r.store, id)
		}
		sh = &repair{known: known, before: 1}
		sh.image = shardImage{id: id, oldest: 1, next: 1, skips: known.skipping()}
		r.shards[id] = sh
	}
	return sh
}

// Replay implements wal.Machine.
func (r *Repairer) Replay(_ wal.LSN, payload []byte) error {
	switch {
	case len(payload) > 0 && payload[0] == opTrim:
		id, oldest, err := decodeTrim(payload)
		if err == nil {
			sh := r.at(id)
			sh.image.oldest = max(sh.image.oldest, oldest)
			sh.image.next = max(sh.image.next, oldest)
		}
		return err
	case len(payload) > 0 && payload[0] == opSkip:
		f, err := decodeSkip(payload)
		if err != nil {
			return err
		}
		r.skip(f.by)
		for i, id := range f.shards {
			sh := r.at(id)
			sh.image.next = max(sh.image.next, f.first[i])
			sh.image.skips = sh.image.skips.with(skip{f.first[i], f.by})
		}
		return nil
	}
	id, b, err := decodeBatch(bytes.Clone(payload))
	if err != nil {
		return err
	}
	sh := r.at(id)
	if b.end() > sh.image.next {
		b = b.after(sh.image.next)
		sh.add(piece{
			first: b.first, end: b.end(), firstArrival: b.arrival, lastArrival: b.arrival,
			size: int64(len(b.frames)), frames: b.frames,
		})
	}
	return nil
}

// add adds records of the log, which are in order.
func (sh *repair) add(p piece) {
	sh.log = append(sh.log, p)
	sh.image.next, sh.image.arrival = p.end, max(p.lastArrival, sh.image.arrival)
}

// Rescue implements wal.Salvager: it takes the whole records of a damaged batch. The records that
// it does not find are then missing between those before and behind.
func (r *Repairer) Rescue(damaged []byte) (known bool) {
	if len(damaged) == trimSize {
		return true // no other frame is so short, and a later trim removes the same records
	}
	if len(damaged) < batchHeader+frameHeader {
		return false
	}
	le := binary.LittleEndian
	id, first := ID(le.Uint64(damaged[1:])), le.Uint64(damaged[9:])
	count, frames := uint64(le.Uint32(damaged[25:])), damaged[batchHeader:]
	sh := r.shards[id]
	if sh == nil && r.store.Shard(id) != nil {
		sh = r.at(id)
	}
	most := uint64(len(frames) / frameHeader)
	header := sh != nil && damaged[0] == opBatch && count > 0 && count <= most &&
		first >= sh.image.next && first-sh.image.next <= most
	if !header {
		// The batch's header is damaged, or this is no batch. The first record tells.
		if sh, first = r.owner(frames); sh == nil {
			return false
		}
		count = most
	}
	next := first
	for _, run := range (salvage{frames, sh.known.seed, first + count}).runs(first) {
		p := pieceOf(run)
		p.frames = bytes.Clone(frames[run.offset : run.offset+run.size])
		p = p.after(sh.image.next)
		if p.end > p.first {
			sh.add(p)
		}
		next = run.end
	}
	if header { // the last records may be among the lost
		sh.image.next = max(sh.image.next, first+count)
	}
	return header || next > first
}

// owner returns the shard of a whole frame at the beginning of some bytes, and its record.
func (r *Repairer) owner(frames []byte) (*repair, uint64) {
	index := binary.LittleEndian.Uint64(frames[8:])
	for _, sh := range r.shards {
		if _, err := parseFrame(frames, sh.known.seed, index); err == nil {
			return sh, index
		}
	}
	for _, known := range r.store.all() {
		if _, err := parseFrame(frames, known.seed, index); err == nil {
			return r.at(known.id), index
		}
	}
	return nil, 0
}

func pieceOf(r run) piece {
	return piece{
		first: r.first, end: r.end, firstArrival: r.firstArrival, lastArrival: r.lastArrival,
		size: int64(r.size),
	}
}

// after returns the part of a piece in memory that begins with the record at index.
func (p piece) after(index uint64) piece {
	if index <= p.first {
		return p
	}
	p.first = min(index, p.end)
	return p.clip(p.first, p.end, p.frames)
}

// clip returns the part of a piece with the records [first, end); frames are its bytes.
func (p piece) clip(first, end uint64, frames []byte) piece {
	if first >= end {
		return piece{first: first, end: first}
	}
	for index, rest := readFrame(frames).index, frames; index < end; index++ {
		f := readFrame(rest)
		if index == first {
			p.firstArrival, frames = f.arrival, rest
		}
		p.lastArrival, rest = f.arrival, rest[f.size:]
		if index+1 == end {
			frames = frames[:len(frames)-len(rest)]
		}
	}
	p.first, p.end, p.frames, p.size = first, end, bytes.Clone(frames), int64(len(frames))
	return p
}

// Freeze implements wal.Machine: the snapshot names the files of Write.
func (r *Repairer) Freeze() func(ctx context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		images := make([]shardImage, 0, len(r.planned))
		for _, sh := range r.planned {
			image := sh.image
			image.segments = nil
			for _, seg := range sh.segments {
				image.segments = append(image.segments, seg.segmentImage)
			}
			images = append(images, image)
		}
		return encodeSnapshot(images, r.skipped), nil
	}
}

// LostRange is the records [From, To) of a shard, which are lost.
type LostRange struct {
	Shard    ID
	From, To uint64
	// After and Before are the numbers of the whole records before and behind; zero if there is
	// none.
	After, Before Number
}

// lost returns the records in [oldest, next) that no piece has, without those that an earlier
// repair has found lost.
func (sh *repair) lost() (lost []LostRange) {
	gap := func(from, to uint64, after, before Number) {
		for _, each := range sh.unknown(from, to) {
			each.After, each.Before = after, before
			lost = append(lost, each)
		}
	}
	number := func(index uint64, arrival int64) Number {
		return Number{Index: index, Serial: sh.image.skips.serial(index), Arrival: arrival}
	}
	end, last := sh.image.oldest, Number{}
	for _, p := range sh.kept {
		gap(end, p.first, last, number(p.first, p.firstArrival))
		end, last = max(end, p.end), number(p.end-1, p.lastArrival)
	}
	gap(end, sh.image.next, last, Number{})
	return lost
}

// unknown returns the parts of [from, to) that were not lost in the snapshot.
func (sh *repair) unknown(from, to uint64) (parts []LostRange) {
	add := func(first, end uint64) {
		if first, end = max(first, from), min(end, to); first < end {
			parts = append(parts, LostRange{Shard: sh.image.id, From: first, To: end})
		}
	}
	for _, seg := range sh.image.segments {
		add(seg.first, seg.end)
	}
	add(sh.before, to)
	return parts
}

// Discard removes the files of other directories that no new segment has replaced. A start would
// remove them, too, but until then they would count as the shard's. Call it once the snapshot is
// durable.
func (r *Repairer) Discard() (err error) {
	for _, sh := range r.planned {
		for first := range sh.foreign {
			if slices.ContainsFunc(sh.segments, func(o output) bool { return o.first == first }) {
				continue
			}
			name := (&segment{shard: sh.known, first: first}).path()
			err = errors.Join(err, r.store.cfg.FS.Remove(name))
		}
	}
	return err
}

// Lost returns the lost records of all shards. Call it after Plan.
func (r *Repairer) Lost() (lost []LostRange) {
	for _, sh := range r.planned {
		lost = append(lost, sh.lost()...)
	}
	return lost
}

// Ahead reports whether segments held records that the log does not: its end is gone. Call it after
// Plan.
func (r *Repairer) Ahead() bool {
	return slices.ContainsFunc(r.planned, func(sh *repair) bool { return sh.ahead })
}
