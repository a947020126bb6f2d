package putlog

import (
	"bytes"
	"fmt"
	"slices"
)

// digest is a SHA-256 of the input up to a record.
type digest [32]byte

// open is an unsettled unit: its records and the place of its frame in the file.
type open struct {
	marks  []uint64
	offset int64
	length int
}

// state is the content of a journal's frames.
type state struct {
	identity Identity
	marks    marks
	open     map[unitID]open
	read     uint64 // records of the input that were read
	sum      digest // of them
	synced   int64  // bytes synced, by the last kindRead frame
	done     bool
	refused  map[uint64]string // the reasons of refused records, by mark
}

// decode reads the frames of a file. It returns the open units, in the order in which they were
// frozen, and the length of the valid part of the file.
func decode(file []byte) (s state, units []FrozenUnit, end int, err error) {
	s = state{marks: newMarks(), open: map[unitID]open{}}
	body, length, ok := next(file)
	if !ok || kind(body[0]) != kindHeader {
		return s, nil, 0, ErrNotJournal
	}
	head := fields{rest: body[1:]}
	if s.identity = head.identity(); !head.whole() {
		return s, nil, 0, fmt.Errorf("%w, or of another version", ErrNotJournal)
	}
	frozen := map[unitID]FrozenUnit{}
	for end = length; ; end += length {
		if body, length, ok = next(file[end:]); !ok {
			break
		}
		if !s.apply(body, int64(end), length, frozen) {
			return s, nil, end, fmt.Errorf("%w: the frame at byte %d makes no sense",
				ErrDamaged, end)
		}
	}
	if tornFrom(file[end:]) > int64(end) {
		return s, nil, end, fmt.Errorf("%w: the frame at byte %d was on the disk and is broken",
			ErrDamaged, end)
	}
	for id := range s.open {
		units = append(units, frozen[id])
	}
	slices.SortFunc(units, func(a, b FrozenUnit) int {
		return int(s.open[a.id()].offset - s.open[b.id()].offset)
	})
	return s, units, end, nil
}

// tornFrom searches the bytes from a broken frame on for whole kindRead frames. It returns the
// largest synced length in them, or 0. Above the broken frame's offset it proves damage.
func tornFrom(rest []byte) (synced int64) {
	for {
		at := bytes.Index(rest, frameMark)
		if at < 0 {
			return synced
		}
		rest = rest[at:]
		body, length, ok := next(rest)
		if !ok {
			rest = rest[len(frameMark):]
			continue
		}
		if f := (fields{rest: body[1:]}); kind(body[0]) == kindRead {
			if _, _, told := f.read(); f.whole() {
				synced = max(synced, told)
			}
		}
		rest = rest[length:]
	}
}

// apply adds a frame to the state, and reports whether the frame is valid.
func (s *state) apply(
	body []byte, offset int64, length int, frozen map[unitID]FrozenUnit,
) bool {
	f := fields{rest: body[1:]}
	switch kind(body[0]) {
	case kindFrozen:
		unit := f.frozen()
		if !f.whole() {
			return false
		}
		unit.Data = bytes.Clone(unit.Data)
		frozen[unit.id()] = unit
		s.freeze(unit, offset, length)
	case kindSettled:
		unit := f.settled()
		if !f.whole() {
			return false
		}
		s.settle(unit)
		delete(frozen, unit.id())
	case kindRead:
		read, sum, synced := f.read()
		s.read, s.sum, s.synced = read, sum, synced
	case kindCovered:
		s.marks = f.covered()
	case kindDone:
		s.done = true
	case kindRefused:
		marks := f.marks()
		s.marks.add(marks)
		s.refuse(marks, f.text())
	case kindForgotten:
		s.forget(f.marks())
	default:
		return false
	}
	return f.whole()
}

func (s *state) freeze(unit FrozenUnit, offset int64, length int) {
	s.done = false
	s.marks.add(unit.Marks)
	s.open[unit.id()] = open{marks: unit.Marks, offset: offset, length: length}
}

// settle ignores a unit that is settled already.
func (s *state) settle(unit SettledUnit) {
	was, ok := s.open[unit.id()]
	if !ok {
		return
	}
	delete(s.open, unit.id())
	switch unit.Fate {
	case Stored:
	case Undelivered:
		s.refuse(was.marks, unit.Reason)
	case Again:
		s.marks.remove(was.marks)
	}
}
