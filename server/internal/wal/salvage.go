package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"path"
	"slices"
)

// Salvager is a machine that can read a part of a damaged frame.
type Salvager interface {
	Machine
	// Rescue takes the payload of a damaged frame, possibly with more bytes behind it, at its place
	// in the log's order. It reports whether it knows everything that the frame held, so that the
	// machine itself accounts for the losses. The bytes are valid during the call.
	Rescue(damaged []byte) (known bool)
}

// salvage saves what it can of the damaged bytes from an offset on, and lists the rest as lost.
func (in *inspector) salvage(r *reader, lost LostFrames) error {
	p := make([]byte, max(0, min(int64(lost.To-lost.From), r.size-lost.Offset)))
	n, err := r.file.ReadAt(p, lost.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for p = p[:n]; len(p) >= frameHeader; {
		size := 0
		if f, ok := r.sealer.mend(p, r.generation, lost.From); ok {
			size = frameSize(f.length)
			if err := in.apply(r, f); err != nil {
				return err
			}
		} else if info, ok := r.sealer.open(p, r.generation, lost.From); ok &&
			frameSize(info.length) <= len(p) {
			size = frameSize(info.length)
			one := lost
			one.Kind, one.To = info.kind, lost.From+LSN(size)
			payload := p[frameHeader : frameHeader+info.length]
			if info.kind != KindCatalogue || !mendByte(payload, info.sum) {
				in.lose(one, payload)
			} else if err := in.apply(r, frame{info, one.To, payload}); err != nil {
				return err
			}
		} else {
			break
		}
		p, lost.From, lost.Offset = p[size:], lost.From+LSN(size), lost.Offset+int64(size)
	}
	if lost.From < lost.To {
		in.loseRest(r, lost, p)
	}
	return nil
}

// loseRest lists the rest of a damaged place as lost. A machine may know all about a frame that is
// cut off, but nothing of those behind it.
func (in *inspector) loseRest(r *reader, lost LostFrames, p []byte) {
	if len(p) >= frameHeader {
		info, ok := r.sealer.open(p, r.generation, lost.From)
		if size := frameSize(info.length); ok && lost.From+LSN(size) < lost.To {
			one := lost
			one.Kind, one.To = info.kind, lost.From+LSN(size)
			in.lose(one, p[frameHeader:])
			lost.From, lost.Offset, p = one.To, lost.Offset+int64(size), nil
		}
	}
	in.lose(lost, p[min(frameHeader, len(p)):])
}

// lose lists frames as lost, unless a machine knows all that they held.
func (in *inspector) lose(lost LostFrames, payload []byte) {
	known := lost.Kind == kindMark
	for kind, machine := range in.recovery.machines {
		salvager, ok := machine.(Salvager)
		if ok && (lost.Kind == 0 || lost.Kind == kind) && !in.silent[kind] &&
			lost.To > in.bases[kind] && salvager.Rescue(payload) {
			known = true
		}
	}
	if !known {
		in.found.Lost = append(in.found.Lost, lost)
	}
}

// mend returns the frame at the beginning of p if its payload verifies and its header would with
// one byte changed. Both checksums confirm that the changed byte was the damaged one.
func (s *sealer) mend(p []byte, generation uint64, at LSN) (frame, bool) {
	header := bytes.Clone(p[:frameHeader])
	whole := func() (frame, bool) {
		info, ok := s.open(header, generation, at)
		if !ok || frameSize(info.length) > len(p) {
			return frame{}, false
		}
		payload := p[frameHeader : frameHeader+info.length]
		f := frame{frameInfo: info, end: at + LSN(frameSize(info.length)), payload: payload}
		return f, crc32.Checksum(payload, castagnoli) == info.sum
	}
	for i := range frameHeader { // the first bytes are the checksum itself
		for range 255 {
			header[i]++
			if f, ok := whole(); ok {
				return f, true
			}
		}
		header[i] = p[i]
	}
	return frame{}, false
}

// maxMend is the length of the longest payload to mend. Of damage to several bytes, one in
// 2^32 / (255 * maxMend), or 4,000, looks like damage to one. So mendByte is for the catalogue
// alone: a lost change may cost a whole stream, and a wrong one has to be JSON and fit the state.
const maxMend = 4096

// mendByte changes the one byte of p with which p has a checksum, and returns false if there is
// none.
//
// A CRC is linear: a change of one byte by e changes it by the checksum of e alone, moved by as
// many bytes as follow. mendByte moves the difference of the two checksums back, byte by byte,
// until it is that of a single e.
func mendByte(p []byte, sum uint32) bool {
	if len(p) > maxMend {
		return false
	}
	var byTop [256]byte // the table's top bytes are all different
	for e, v := range castagnoli {
		byTop[v>>24] = byte(e)
	}
	difference := crc32.Checksum(p, castagnoli) ^ sum
	for i := len(p) - 1; i >= 0; i-- {
		e := byTop[difference>>24]
		if difference == castagnoli[e] {
			p[i] ^= e
			return e != 0 && crc32.Checksum(p, castagnoli) == sum
		}
		difference = (difference^castagnoli[e])<<8 | uint32(e)
	}
	return false
}

// adopt takes files into use whose first block does not verify although they were in use. Their
// frames prove where they begin, since each frame's checksum covers its place.
func (in *inspector) adopt(files logFiles) error {
	ends := map[uint64]LSN{} // of the file before, by the announced generation
	for _, f := range files {
		if !f.begun {
			continue
		}
		err := in.folder.withReader(f.segment, f.start, func(r *reader) error {
			n, err := r.note()
			if n.next != 0 {
				ends[n.next] = n.end
				in.highest = max(in.highest, n.next)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for i := range files {
		f := &files[i]
		if f.begun {
			continue
		}
		starts, err := in.folder.claimedStart(f.generation)
		if err != nil {
			return err
		}
		if end, ok := ends[f.generation]; ok {
			starts = append(starts, end)
		}
		for _, start := range starts {
			if err := in.adoptAt(f, start); err != nil || f.begun {
				if err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// claimedStart returns the LSN in a first block that does not verify.
func (d *folder) claimedStart(generation uint64) ([]LSN, error) {
	file, err := d.fs.Open(fileName(d.dir, generation))
	if err != nil {
		return nil, err
	}
	p := make([]byte, blockUsed)
	n, err := file.ReadAt(p, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if n < blockUsed {
		return nil, errors.Join(err, file.Close())
	}
	return []LSN{LSN(binary.LittleEndian.Uint64(p[24:]))}, errors.Join(err, file.Close())
}

func (in *inspector) adoptAt(f *foundFile, start LSN) error {
	s := segment{generation: f.generation, start: start, size: f.size, acks: acksEarly}
	return in.folder.withReader(s, start, func(r *reader) error {
		proof, err := r.provesMore(r.off, start)
		if err != nil || proof == 0 {
			return err
		}
		f.segment, f.begun = s, true
		in.adopted[f.generation] = in.folder.corruptAt(r, 0, fmt.Sprintf(
			"the first block does not verify, and byte %d shows that it did", proof))
		return nil
	})
}

// Rebase makes the state of the machines, as Inspect has left it, the beginning of a new log: a
// snapshot and an empty log file at the log's end. It removes the other snapshots and log files.
// The snapshot's rename is the one change that counts: before it the directory is as it was, and
// after it the directory is repaired. lossy makes the next start skip sequence numbers, since
// acknowledged frames may be lost.
func (l *Log) Rebase(ctx context.Context, lossy bool) error {
	in := l.inspected
	if in == nil || !l.cfg.Salvage {
		return errReadOnly
	}
	if err := l.rebase(ctx, in, lossy || in.found.Lossy); err != nil {
		return fmt.Errorf("write the repaired log in %s: %w", l.cfg.Dir, err)
	}
	return nil
}

func (l *Log) rebase(ctx context.Context, in *inspector, lossy bool) error {
	var parts []part
	for _, kind := range slices.Sorted(maps.Keys(l.machines)) {
		data, err := l.machines[kind].Freeze()(ctx)
		if err != nil {
			return fmt.Errorf("snapshot of machine %d: %w", kind, err)
		}
		parts = append(parts, part{kind: kind, data: data})
	}
	end, err := l.folder.rebaseAt(in.found.End)
	if err != nil {
		return err
	}
	d := l.folder
	generation := in.highest + 1
	if err := d.beginAt(generation, end, lossy); err != nil {
		return err
	}
	if err := d.raiseFormat(); err != nil {
		return err
	}
	if err := d.writeSnapshot(end, parts); err != nil {
		return err
	}
	files, err := d.listFiles()
	if err != nil {
		return err
	}
	errs := []error{d.removeSnapshots(end)}
	for _, f := range files {
		if f.generation != generation {
			errs = append(errs, d.remove(f.generation))
		}
	}
	for _, keeper := range fileKeepers(l.machines) {
		errs = append(errs, keeper.Keep(false))
	}
	return errors.Join(errs...)
}

// rebaseAt returns an LSN at or behind every frame and snapshot.
func (d *folder) rebaseAt(end LSN) (LSN, error) {
	found, err := d.snapshots()
	if err != nil {
		return 0, err
	}
	files, err := d.listFiles()
	for _, f := range files.begun() {
		end = max(end, f.start)
	}
	for _, at := range found {
		end = max(end, at)
	}
	return end, err
}

// beginAt makes a log file without frames, durably.
func (d *folder) beginAt(generation uint64, start LSN, lossy bool) error {
	s := segment{
		generation: generation, start: start, size: minFileSize, made: minFileSize,
		acks: acksSynced,
	}
	if lossy {
		s.acks = acksEarly
	}
	file, err := d.create(fileName(d.dir, generation), minFileSize)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(encodeBlock(s), 0)
	if err == nil && !lossy {
		err = s.writeNote(file, start, 0, true)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, d.remove(generation))
	}
	return d.fs.SyncDir(path.Join(d.dir, walDir))
}
