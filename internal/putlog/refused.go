package putlog

import (
	"cmp"
	"maps"
	"slices"
)

// Refused is a record of the input that will not be put: the stream refused it, or the producer
// gave it up. The journal keeps it until Forget, so that every later run reports it.
type Refused struct {
	Mark   uint64
	Reason string // "" in journals of earlier versions, which did not keep it
}

// Refused returns the records that will not be put, in the order of the input.
func (j *Journal) Refused() []Refused {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]Refused, 0, len(j.mu.refused))
	for mark, reason := range j.mu.refused {
		all = append(all, Refused{mark, reason})
	}
	slices.SortFunc(all, func(a, b Refused) int { return cmp.Compare(a.Mark, b.Mark) })
	return all
}

// Refuse marks records as refused, by the marks that Read has returned. It is durable with the next
// Frozen, or with Close. If a crash comes before, the next run refuses the records again.
func (j *Journal) Refuse(marks []uint64, reason string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.err != nil {
		return
	}
	j.mu.marks.add(marks)
	j.mu.refuse(marks, reason)
	j.mu.pending = appendRefused(j.mu.pending, marks, reason)
	if j.mu.records > j.mu.read {
		j.noteRead()
	}
}

// Forget drops refused records that the caller has written elsewhere. It returns once that is
// durable.
func (j *Journal) Forget(list []Refused) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.err != nil {
		return j.mu.err
	}
	marks := make([]uint64, len(list))
	for i, r := range list {
		marks[i] = r.Mark
	}
	j.mu.forget(marks)
	frame, start := begin(j.mu.pending, kindForgotten)
	j.mu.pending = seal(appendMarks(frame, marks), start)
	if err := j.flush(true); err != nil {
		return j.broken(err)
	}
	return nil
}

func (s *state) refuse(marks []uint64, reason string) {
	if s.refused == nil {
		s.refused = map[uint64]string{}
	}
	for _, mark := range marks {
		s.refused[mark] = reason
	}
}

func (s *state) forget(marks []uint64) {
	for _, mark := range marks {
		delete(s.refused, mark)
	}
}

// appendRefused writes a frame of refused records. Their marks count as seen, so that Read skips
// them.
func appendRefused(dst []byte, marks []uint64, reason string) []byte {
	dst, start := begin(dst, kindRefused)
	return seal(appendBytes(appendMarks(dst, marks), reason), start)
}

// appendAllRefused writes all refused records, one frame for each reason, for rewrite.
func (s *state) appendAllRefused(dst []byte) []byte {
	byReason := map[string][]uint64{}
	for _, mark := range slices.Sorted(maps.Keys(s.refused)) {
		byReason[s.refused[mark]] = append(byReason[s.refused[mark]], mark)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		dst = appendRefused(dst, byReason[reason], reason)
	}
	return dst
}
