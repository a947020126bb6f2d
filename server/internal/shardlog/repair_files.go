package shardlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
)

// Plan reads all segments and decides on the segments of the repaired shards. Call it after
// wal.Log.Inspect. It changes nothing. Errors: ctx's, and the file system's.
func (r *Repairer) Plan(ctx context.Context) error {
	r.planned = nil
	for _, known := range r.store.all() {
		sh := r.at(known.id)
		sh.image.sealed = known.seq.sealed
		r.planned = append(r.planned, sh)
		if err := r.plan(ctx, sh); err != nil {
			return fmt.Errorf("read shard %d: %w", known.id, err)
		}
	}
	return nil
}

func (r *Repairer) plan(ctx context.Context, sh *repair) error {
	var named []output
	sh.foreign = map[uint64]bool{}
	for _, image := range sh.image.segments {
		if err := ctx.Err(); err != nil {
			return err
		}
		if image.end <= sh.image.oldest {
			continue // trimmed meanwhile: a start removes it
		}
		pieces, err := r.pieces(sh, image.first, 0, image.size, image.end)
		if err != nil {
			return err
		}
		if image.foreign(pieces) {
			sh.foreign[image.first] = true
			continue
		}
		sh.kept = append(sh.kept, pieces...)
		if len(pieces) == 1 && pieces[0].size == image.size {
			named = append(named, output{segmentImage: image})
			continue
		}
		if len(pieces) > 0 && pieces[0].first == image.first && pieces[0].offset == 0 {
			named = append(named, output{segmentImage: pieces[0].image()})
		}
	}
	sh.kept = append(sh.kept, sh.log...)
	if err := r.fill(sh); err != nil {
		return err
	}
	sh.kept = inOrder(sh.kept)
	sh.lay(named, r.store.cfg.SegmentSize)
	return nil
}

// inOrder returns the pieces without those that arrived before the ones in front of them, which are
// not of this shard's life. A snapshot with them would be refused.
func inOrder(pieces []piece) (kept []piece) {
	last := int64(math.MinInt64)
	for _, p := range pieces {
		if p.firstArrival >= last && p.lastArrival >= p.firstArrival {
			kept, last = append(kept, p), p.lastArrival
		}
	}
	return kept
}

// foreign reports whether the whole records of a segment's file are those of another data
// directory: their checksums hold (see segmentTimes). The times of the first and the last record
// show it, at the two places that no record's data can imitate.
func (seg segmentImage) foreign(pieces []piece) bool {
	if len(pieces) == 0 {
		return false
	}
	p, last := pieces[0], pieces[len(pieces)-1]
	return p.offset == 0 && p.firstArrival != seg.firstArrival ||
		last.offset+last.size == seg.size && last.lastArrival != seg.lastArrival
}

// pieces returns the whole records of a segment's bytes [from, to). The record first belongs to the
// beginning. A missing file has none.
func (r *Repairer) pieces(
	sh *repair, name uint64, from, to int64, end uint64,
) (pieces []piece, err error) {
	seg := &segment{shard: sh.known, first: name}
	buf, err := r.read(seg, from, to)
	if err != nil {
		return nil, err
	}
	first := name
	if from > 0 {
		first = sh.before
	}
	for _, run := range (salvage{buf, sh.known.seed, end}).runs(first) {
		p := pieceOf(run)
		p.from, p.offset = seg, from+int64(run.offset)
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// read reads the bytes [from, to) of a segment, as many as there are.
func (r *Repairer) read(seg *segment, from, to int64) ([]byte, error) {
	file, err := r.store.cfg.FS.Open(seg.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	buf := make([]byte, max(0, min(size, to)-from))
	if err == nil {
		var n int
		if n, err = file.ReadAt(buf, from); errors.Is(err, io.EOF) {
			err = nil
		}
		buf = buf[:n]
	}
	return buf, errors.Join(err, file.Close())
}

// fill looks for lost records in the bytes that the snapshot does not name: the drainer had written
// them, and their frames in the log are damaged since, or the log's end is gone.
func (r *Repairer) fill(sh *repair) error {
	names, err := r.store.cfg.FS.List(sh.known.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		first, ok := parseSegmentName(name)
		if !ok || sh.foreign[first] {
			continue
		}
		from := int64(0)
		for _, image := range sh.image.segments {
			if image.first == first {
				from = image.size
				if image.end != sh.before {
					from = 1<<63 - 1 // it was full: nothing was written behind its size
				}
			}
		}
		found, err := r.pieces(sh, first, from, 1<<63-1, anyIndex)
		if err != nil {
			return err
		}
		for _, p := range found {
			frames, err := r.read(p.from, p.offset, p.offset+p.size)
			if err != nil {
				return err
			}
			sh.insert(p, frames)
		}
	}
	return nil
}

// insert adds the records of a piece that no other piece has.
func (sh *repair) insert(p piece, frames []byte) {
	gaps := append(sh.lost(), LostRange{From: sh.image.next, To: p.end})
	for _, gap := range gaps {
		if first, end := max(gap.From, p.first), min(gap.To, p.end); first < end {
			part := p.clip(first, end, frames)
			sh.kept = append(sh.kept, part)
			sh.ahead = sh.ahead || end > sh.image.next
			sh.image.next = max(sh.image.next, end)
			sh.image.arrival = max(sh.image.arrival, part.lastArrival)
		}
	}
	slices.SortFunc(sh.kept, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
}

func (p piece) image() segmentImage {
	return segmentImage{p.first, p.end, p.size, p.firstArrival, p.lastArrival}
}

// lay distributes the pieces over segments: those that are there, and new ones of about a size.
func (sh *repair) lay(named []output, size int64) {
	sh.segments = nil
	for _, p := range sh.kept {
		i := slices.IndexFunc(named, func(o output) bool {
			return o.first == p.first && p.from != nil && p.frames == nil && p.offset == 0
		})
		if i >= 0 {
			sh.segments = append(sh.segments, named[i])
			continue
		}
		if p.end <= sh.image.oldest {
			continue
		}
		n := len(sh.segments)
		if n == 0 || sh.segments[n-1].pieces == nil || sh.segments[n-1].end != p.first ||
			sh.segments[n-1].size >= size {
			sh.segments = append(sh.segments, output{p.image(), []piece{p}})
			continue
		}
		last := &sh.segments[n-1]
		last.pieces = append(last.pieces, p)
		last.end, last.lastArrival = p.end, p.lastArrival
		last.size += p.size
	}
}

// Write makes the new segments, durably. Until a snapshot names them, a start removes them. It
// needs room for the records behind damaged places, and for those of the log.
func (r *Repairer) Write(ctx context.Context) error {
	for _, sh := range r.planned {
		for _, seg := range sh.segments {
			if err := ctx.Err(); err != nil {
				return err
			}
			if seg.pieces == nil {
				continue
			}
			if err := r.write(sh, seg); err != nil {
				return fmt.Errorf("write a segment of shard %d: %w", sh.image.id, err)
			}
		}
	}
	return nil
}

func (r *Repairer) write(sh *repair, out output) error {
	fsys, folder := r.store.cfg.FS, sh.known.folder
	if err := fsys.MkdirAll(folder); err != nil {
		return err
	}
	frames := make([]byte, 0, out.size)
	for _, p := range out.pieces {
		if p.frames == nil {
			var err error
			if p.frames, err = r.read(p.from, p.offset, p.offset+p.size); err != nil {
				return err
			}
		}
		frames = append(frames, p.frames...)
	}
	if int64(len(frames)) != out.size {
		return fmt.Errorf("segment %d has %d bytes, not %d", out.first, len(frames), out.size)
	}
	name := path.Join(folder, segmentName(out.first))
	file, err := fsys.Create(name + ".tmp")
	if err != nil {
		return err
	}
	if _, err = file.WriteAt(frames, 0); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = fsys.Rename(name+".tmp", name)
	}
	if err != nil {
		return errors.Join(err, fsys.Remove(name+".tmp"))
	}
	return errors.Join(fsys.SyncDir(folder), fsys.SyncDir(r.store.root),
		fsys.SyncDir(r.store.cfg.Dir))
}
