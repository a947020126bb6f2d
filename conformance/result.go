package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// outcome is the verdict of a check.
type outcome string

const (
	outcomeOK      outcome = "ok"
	outcomeDiffers outcome = "differs"
	outcomeSkipped outcome = "skipped"
	outcomeError   outcome = "error"
	outcomeKnown   outcome = "known" // differs, by decision of runnel
	outcomeStale   outcome = "stale" // is ok, but listed as a known difference
)

// result is a fact's outcome. expected and got are set if the fact differs; reason is set if it is
// skipped, in error, known or stale.
type result struct {
	fact        fact
	outcome     outcome
	expected    string
	got         string
	reason      string
	unreachable bool // the endpoint could not be dialled
}

// MarshalJSON returns one line of --output json.
func (r result) MarshalJSON() ([]byte, error) {
	line, err := json.Marshal(struct {
		ID        string  `json:"id"`
		Operation string  `json:"operation,omitempty"`
		Outcome   outcome `json:"outcome"`
		Behaviour string  `json:"behaviour"`
		Source    string  `json:"source"`
		Where     string  `json:"where,omitempty"`
		Expected  string  `json:"expected,omitempty"`
		Got       string  `json:"got,omitempty"`
		Reason    string  `json:"reason,omitempty"`
	}{
		r.fact.id, r.fact.op, r.outcome, r.fact.says, r.fact.source.kind.String(),
		r.fact.source.where, r.expected, r.got, r.reason,
	})
	if err != nil {
		return nil, fmt.Errorf("result of %s: %w", r.fact.id, err)
	}
	return line, nil
}

// write writes a result as text. A result that is ok has one line, with the id.
func (r result) write(to io.Writer) error {
	text := fmt.Sprintf("%-8s %s\n", r.outcome, r.fact.id)
	switch r.outcome {
	case outcomeDiffers:
		text += fmt.Sprintf("         %s (%s)\n         expected  %s\n         got       %s\n",
			r.fact.says, r.fact.source, r.expected, r.got)
	case outcomeSkipped, outcomeError, outcomeKnown, outcomeStale:
		text += fmt.Sprintf("         %s\n", r.reason)
	case outcomeOK:
	}
	_, err := io.WriteString(to, text)
	return err
}

// summary counts results by outcome.
type summary struct {
	counts  map[outcome]int
	guesses int // results that differ from a guess
	lost    int // results in error because the endpoint could not be dialled
}

func summarize(results []result) summary {
	s := summary{counts: map[outcome]int{}}
	for _, r := range results {
		s.counts[r.outcome]++
		if r.outcome == outcomeDiffers && r.fact.source.is(guessed) {
			s.guesses++
		}
		if r.unreachable {
			s.lost++
		}
	}
	return s
}

func (s summary) String() string {
	text := fmt.Sprintf("%d ok, %d differ", s.counts[outcomeOK]+s.counts[outcomeStale],
		s.counts[outcomeDiffers])
	if s.guesses > 0 {
		text += fmt.Sprintf(" (%d of them from a guess)", s.guesses)
	}
	if n := s.counts[outcomeKnown]; n > 0 {
		text += fmt.Sprintf(", %d known to differ", n)
	}
	text += fmt.Sprintf(", %d skipped, %d in error", s.counts[outcomeSkipped],
		s.counts[outcomeError])
	if n := s.counts[outcomeStale]; n > 0 {
		text += fmt.Sprintf("; %d listed as a known difference and ok", n)
	}
	return text
}

// status returns the exit status: 0 if all is ok, known, stale or skipped; 1 if a fact differs or
// is in error; 2 if every fact was skipped, so nothing was compared; 3 if the endpoint could not be
// dialled.
func (s summary) status() int {
	switch {
	case s.lost > 0:
		return exitUnreachable
	case s.counts[outcomeDiffers] > 0, s.counts[outcomeError] > 0:
		return exitDiffers
	case s.counts[outcomeSkipped] > 0 && s.counts[outcomeSkipped] == s.total():
		return exitUsage
	}
	return exitOK
}

func (s summary) total() (n int) {
	for _, count := range s.counts {
		n += count
	}
	return n
}
