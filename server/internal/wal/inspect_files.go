package wal

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
)

// files reads the log files that a start would read, and counts the others.
func (in *inspector) files(ctx context.Context, files logFiles) error {
	at := in.found.Snapshot.LSN
	in.found.End, in.found.Synced = at, at
	begun := files.begun()
	first := firstNeeded(begun, at)
	if first < 0 && (at > 0 || len(begun) > 0 || in.folder.format >= formatNotes) {
		if err := in.damaged(in.folder.gone(at)); err != nil {
			return err
		}
		in.endLost(path.Join(in.folder.dir, walDir), at)
		first = max(0, slices.IndexFunc(begun, func(s segment) bool { return s.start > at }))
	}
	last := uint64(0)
	for _, f := range files {
		log := LogFile{Name: fileName(in.folder.dir, f.generation), Size: f.size, Spare: true}
		if f.begun && f.generation >= begun[first].generation {
			i := slices.Index(begun, f.segment)
			if err := in.file(ctx, files, i, &log); err != nil {
				return err
			}
			last = f.generation
		}
		if damage := in.adopted[f.generation]; damage != nil && log.Frames > 0 {
			in.found.Damage = append(in.found.Damage, damage)
		} else if damage != nil { // a start needs no frame of this file
			in.found.Spare = append(in.found.Spare, damage)
		}
		in.found.Files = append(in.found.Files, log)
	}
	return in.damaged(in.folder.checkUnbegun(files, last, in.found.End, note{}))
}

// between checks the frames from the older snapshot up to the newest one. A start needs them only
// if the newest is damaged. Without an older snapshot the log need not reach back to its beginning,
// even if the first file is there: on a full disk the files behind it give way.
func (in *inspector) between(ctx context.Context, files logFiles) error {
	begun, to := files.begun(), in.found.Snapshot.LSN
	first := firstNeeded(begun, in.older)
	if !in.second || first < 0 || in.folder.salvage {
		return nil
	}
	for i, s := range begun[first:] {
		end := to
		if rest := begun[first+i+1:]; len(rest) > 0 {
			end = min(to, rest[0].start)
		}
		from := max(s.start, in.older)
		if from >= end {
			continue
		}
		err := in.folder.withReader(s, from, func(r *reader) error {
			for r.lsn() < end {
				_, ok, err := r.next()
				if err = errors.Join(err, ctx.Err()); err != nil {
					return err
				}
				if !ok && r.off >= r.size && r.size >= r.made {
					break // an earlier attempt of a backup copied it while it was the newest
				}
				if !ok {
					in.found.Spare = append(in.found.Spare, in.folder.corruptAt(r, r.off,
						"no frame verifies here, between the two snapshots"))
					return nil
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// file reads the begun file with index i, from the log's end so far.
func (in *inspector) file(ctx context.Context, files logFiles, i int, log *LogFile) error {
	begun := files.begun()
	s := begun[i]
	end, isLast := ^LSN(0), i+1 == len(begun)
	if !isLast {
		end = begun[i+1].start
	}
	log.Spare, log.Start = false, max(s.start, in.found.End)
	err := in.folder.withReader(s, log.Start, func(r *reader) error {
		if isLast {
			if err := in.last(files, r); err != nil {
				return err
			}
		}
		err := in.frames(ctx, r, end, isLast, log)
		in.found.End = r.lsn()
		if err == nil && isLast {
			in.found.Lossy = s.lossy(in.ended, in.found.End)
			in.found.Torn, err = in.torn(r)
		}
		return err
	})
	if !isLast {
		in.found.End = end
		in.found.Synced = max(in.found.Synced, end) // by the rule for a next file
	}
	return err
}

// last checks whether the newest file is whole, and whether the file that it announces exists.
func (in *inspector) last(files logFiles, r *reader) error {
	if r.size < r.made {
		in.endLost(fileName(in.folder.dir, r.generation), r.lsn())
		if err := in.damaged(in.folder.checkEnd(r, note{})); err != nil {
			return err
		}
	}
	n, err := r.note()
	if err != nil {
		return err
	}
	in.ended = n
	err = in.folder.checkAnnounced(files, r.generation, n)
	if err == nil {
		err = in.folder.checkReaches(r, n, r.lsn())
	}
	if err != nil {
		in.endLost(fileName(in.folder.dir, n.next), max(n.end, r.lsn()))
	}
	return in.damaged(err)
}

// endLost lists frames as lost whose number and size is unknown.
func (in *inspector) endLost(file string, at LSN) {
	in.found.Lost = append(in.found.Lost, LostFrames{File: file, From: at, To: at})
}

// frames reads all frames of a file, also those behind damage.
func (in *inspector) frames(ctx context.Context, r *reader, end LSN, last bool, log *LogFile,
) error {
	for r.lsn() < end {
		f, ok, err := r.next()
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case ok:
			log.Frames++
			if err := in.apply(r, f); err != nil {
				return err
			}
			continue
		case last:
			proof, err := r.provesMore(r.off+frameAlign, r.lsn())
			if err != nil || proof == 0 {
				return err
			}
		}
		if more, err := in.skip(r, end); err != nil || !more {
			return err
		}
	}
	if r.lsn() > end && !last {
		return in.damaged(in.folder.corrupt(r, r.off, fmt.Sprintf(
			"the frames before it reach beyond log position %d, where the next file goes on", end)))
	}
	return nil
}

// apply passes a frame to its machine.
func (in *inspector) apply(r *reader, f frame) error {
	in.found.Synced = max(in.found.Synced, f.synced)
	if f.kind == kindMark {
		in.found.Marks++
		in.found.Synced = max(in.found.Synced, f.end) // a mark has no content to lose
	}
	if in.silent[f.kind] || f.end <= in.bases[f.kind] {
		return nil
	}
	err := in.recovery.replayFrame(f)
	if err == nil {
		return nil
	}
	in.silent[f.kind] = true
	if len(in.found.Damage) > 0 {
		return nil // the gap before it explains the refusal
	}
	return in.damaged(in.folder.corrupt(r, r.off-int64(frameSize(f.length)), err.Error()))
}

// skip records damage at the reader's place and moves to the next valid frame. Without one it
// does not move. The file's frames end at end, if that is known.
func (in *inspector) skip(r *reader, end LSN) (more bool, err error) {
	bad := in.folder.corruptAt(r, r.off, "")
	was, from := r.off, r.lsn()
	for !more {
		r.off += frameAlign
		p, err := r.peek(frameHeader)
		if err != nil {
			return false, err
		}
		if p == nil || r.lsn() >= end {
			break
		}
		if _, ok := r.sealer.open(p, r.generation, r.lsn()); !ok {
			continue
		}
		at := r.off
		if _, more, err = r.next(); err != nil {
			return false, err
		}
		r.off = at
	}
	lost := LostFrames{File: bad.File, Offset: was, From: from, To: r.lsn()}
	reason := "no frame verifies here, nor after it in this file"
	if more {
		reason = fmt.Sprintf("no frame verifies in %d bytes, up to byte %d", r.off-was, r.off)
	} else {
		r.off = was
	}
	if in.folder.salvage && (more || end < ^LSN(0)) {
		if !more {
			lost.To = end
		}
		err = in.salvage(r, lost)
	}
	bad.Reason = reason
	return more, errors.Join(err, in.damaged(bad))
}

// torn returns the unfinished frame at the end of the log.
func (in *inspector) torn(r *reader) (*TornFrame, error) {
	p, err := r.peek(frameHeader)
	if err != nil || p == nil {
		return nil, err
	}
	info, ok := r.sealer.open(p, r.generation, r.lsn())
	if !ok {
		return nil, nil
	}
	name := fileName(in.folder.dir, r.generation)
	return &TornFrame{File: name, Offset: r.off, Size: frameSize(info.length)}, nil
}
