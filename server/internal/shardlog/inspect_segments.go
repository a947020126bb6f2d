package shardlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
)

// Files reads the segments of all shards to their ends, and lists the other files in their
// folders. Call it after Log.Inspect. Errors: ctx's, and the file system's.
func (in *Inspector) Files(ctx context.Context) (Found, error) {
	names, err := in.store.cfg.FS.List(in.store.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return in.found, fmt.Errorf("list the shards: %w", err)
	}
	for _, name := range names {
		id, err := strconv.ParseUint(name, 10, 64)
		folder := path.Join(in.store.root, name)
		switch {
		case err != nil || name != strconv.FormatUint(id, 10):
			in.found.Foreign = append(in.found.Foreign, folder)
		case in.store.Shard(ID(id)) == nil:
			in.found.Leftover = append(in.found.Leftover, folder)
			if err := in.weigh(folder); err != nil {
				return in.found, err
			}
		}
	}
	for _, sh := range in.Shards() {
		if err := in.shard(ctx, sh); err != nil {
			return in.found, fmt.Errorf("inspect shard %d: %w", sh.ID, err)
		}
	}
	slices.SortStableFunc(in.found.Damage, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.From, b.From))
	})
	return in.found, nil
}

// weigh counts the files of a folder.
func (in *Inspector) weigh(folder string) error {
	names, err := in.store.cfg.FS.List(folder)
	for _, name := range names {
		info, err := in.store.cfg.FS.Stat(path.Join(folder, name))
		if err != nil {
			return err
		}
		in.found.Bytes += info.Size()
	}
	return err
}

// shard reads the segments of a shard, and lists the other files in its folder.
func (in *Inspector) shard(ctx context.Context, sh *Inspected) error {
	known := in.store.Shard(sh.ID)
	names, err := in.store.cfg.FS.List(known.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	named := map[uint64]bool{}
	for _, image := range sh.image.segments {
		named[image.first] = true
		if image.end <= sh.Oldest {
			continue // trimmed meanwhile: a start removes it
		}
		seg := &segment{shard: known, first: image.first}
		e := extent{seg, image.end, image.size, image.firstArrival, image.lastArrival}
		if err := in.segment(ctx, sh, e); err != nil {
			return err
		}
	}
	for _, name := range names {
		file := path.Join(known.folder, name)
		info, err := in.store.cfg.FS.Stat(file)
		if err != nil {
			return err
		}
		in.found.Bytes += info.Size()
		first, ok := parseSegmentName(name)
		switch {
		case !ok:
			in.found.Foreign = append(in.found.Foreign, file)
		case !named[first]:
			in.found.Leftover = append(in.found.Leftover, file)
			seg := &segment{shard: known, first: first}
			if err := in.beyond(ctx, sh, seg, place{index: first}, info.Size()); err != nil {
				return err
			}
		}
	}
	return nil
}

// segment reads a segment up to its size in the snapshot, and then checks the bytes behind that.
func (in *Inspector) segment(ctx context.Context, sh *Inspected, e extent) error {
	lost := func(offset int64, from uint64, reason string) {
		from = max(from, sh.Oldest)
		in.damage(sh, Damage{
			File: e.path(), Offset: offset, From: min(from, e.end), To: e.end, Reason: reason,
		})
	}
	file, err := in.store.cfg.FS.Open(e.path())
	if errors.Is(err, fs.ErrNotExist) {
		lost(0, e.first, "the file is missing")
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	size, err := file.Size()
	if err != nil {
		return err
	}
	scan := e.scanner(file, place{index: e.first}, e.size)
	scan.reuse = true
	arrival := e.firstArrival
	for {
		f, err := scan.scan()
		var corrupt *CorruptError
		switch {
		case errors.Is(err, io.EOF):
			at := place{index: e.end, offset: e.size}
			return in.beyond(ctx, sh, e.segment, at, size)
		case errors.As(err, &corrupt):
			lost(corrupt.Offset, corrupt.Index, corrupt.Reason)
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case f.arrival < arrival:
			lost(scan.off-int64(f.size), f.index, "its time is before that of the record before")
			return nil
		}
		arrival = f.arrival
	}
}

// beyond checks the bytes of a segment behind its size in the snapshot. A crash leaves them
// there, and a start writes them again from the log. Records that the log does not hold prove
// that the log has lost its end: they were acknowledged before they were written here.
func (in *Inspector) beyond(
	ctx context.Context, sh *Inspected, seg *segment, from place, size int64,
) error {
	if size <= from.offset || sh.damaged {
		return nil
	}
	file, err := in.store.cfg.FS.Open(seg.path())
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	e := extent{segment: seg, end: anyIndex, size: size}
	scan := e.scanner(file, from, size-from.offset)
	scan.reuse = true
	for ctx.Err() == nil {
		if _, err := scan.scan(); err != nil {
			break // no error matters here: these bytes are not needed
		}
	}
	if scan.next > sh.Next && scan.next > from.index {
		in.damage(sh, Damage{
			From: sh.Next, To: scan.next,
			Reason: fmt.Sprintf("%s holds records that the log does not: the log's end is "+
				"missing (a power cut does that with --sync interval, and only then)", seg.path()),
		})
	}
	return ctx.Err()
}
