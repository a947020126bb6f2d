package producer

import "github.com/runnel-stream/runnel"

// fate is what one call did to one of its records.
type fate uint8

const (
	stored    fate = iota // acknowledged
	throttled             // answered: over a limit, not stored
	failed                // answered: not stored, for a reason that may pass
	refused               // answered: not stored, for a reason that will not pass
	unknown               // no answer: stored, or not, or later
	notSent               // for certain nothing left
	suspect               // answered: one of the call's records is at fault, none was stored
)

// verdict is what one call said of one of its records.
type verdict struct {
	fate     fate
	shard    runnel.ShardID
	sequence runnel.SequenceNumber
	err      error // unless stored
}

// outcome is what became of a call: the records one by one, or all of them alike.
type outcome struct {
	each []verdict // in the order of the call's records; nil: see all
	all  verdict   // never stored
}

func (o outcome) of(i int) verdict {
	if o.each != nil {
		return o.each[i]
	}
	return o.all
}

// answered reports whether anybody was there.
func (o outcome) answered() bool {
	return o.each != nil || (o.all.fate != unknown && o.all.fate != notSent)
}

// report counts the outcome of a call of n records.
func (o outcome) report(n int) CallReport {
	r := CallReport{Records: n}
	if o.each == nil {
		r.Err = o.all.err
	}
	for i := range n {
		switch o.of(i).fate {
		case stored:
			r.Stored++
		case throttled:
			r.Throttled++
		case failed:
			r.Failed++
		case refused, suspect:
			r.Refused++
		case unknown:
			r.Unknown++
		case notSent:
			r.NotSent++
		}
	}
	return r
}
