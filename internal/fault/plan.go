package fault

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Plan is a parsed specification. It is immutable; nil is a plan without faults.
type Plan struct {
	seed  uint64
	rules []rule
}

// rule is one fault, the calls that it matches, and the numbers of those on which it fires.
type rule struct {
	calls    string // an operation, "*" or "service.*"; for a reshard a stream or "*"
	kind     kind
	duration time.Duration // the argument, if it is a duration; 0 for a cut-stream without one
	record   record        // of fail-record and throttle-record
	code     string        // of refuse
	when     when
}

// record selects records of a PutRecords call: if number is not 0, that record; otherwise, if den
// is not 0, each with the chance num/den; otherwise a random one.
type record struct {
	number   int
	num, den int
}

// when selects calls by number: [from, to], or with a chance if percent is not 0.
type when struct {
	from, to uint64
	percent  float64
}

const forever = ^uint64(0)

// about reports whether the rule matches an operation of a service.
func (r *rule) about(service, operation string) bool {
	if r.kind == kindReshard {
		return false
	}
	if only := kinds[r.kind].operation; only != "" && !strings.EqualFold(only, operation) {
		return false
	}
	if r.calls == "*" || strings.EqualFold(r.calls, operation) {
		return true
	}
	of, wildcard := strings.CutSuffix(r.calls, ".*")
	return wildcard && strings.EqualFold(of, service)
}

// meets reports whether the rule fires on its nth matching call.
func (w when) meets(n, draw uint64) bool {
	if w.percent > 0 {
		return float64(draw>>11)/(1<<53)*100 < w.percent
	}
	return w.from <= n && n <= w.to
}

// String returns the plan in the language that Parse reads.
func (p *Plan) String() string {
	if p == nil {
		return ""
	}
	words := make([]string, 0, len(p.rules)+1)
	if p.seed != 0 {
		words = append(words, "seed="+strconv.FormatUint(p.seed, 10))
	}
	for i := range p.rules {
		words = append(words, p.rules[i].String())
	}
	return strings.Join(words, " ")
}

func (r *rule) String() string {
	argument := ""
	switch kinds[r.kind].argument {
	case argumentDuration, argumentMoment:
		if r.duration > 0 {
			argument = "=" + r.duration.String()
		}
	case argumentRecord:
		argument = r.record.String()
	case argumentCode:
		argument = "=" + r.code
	case argumentNone:
	}
	return r.calls + ":" + r.kind.String() + argument + r.when.String()
}

func (r record) String() string {
	switch {
	case r.number != 0:
		return fmt.Sprintf("=%d", r.number)
	case r.den != 0:
		return fmt.Sprintf("=%d/%d", r.num, r.den)
	default:
		return ""
	}
}

func (w when) String() string {
	switch {
	case w.percent > 0:
		return "%" + strconv.FormatFloat(w.percent, 'g', -1, 64)
	case w.from == 1 && w.to == forever:
		return ""
	case w.to == forever:
		return fmt.Sprintf("@%d+", w.from)
	case w.from == w.to:
		return fmt.Sprintf("@%d", w.from)
	default:
		return fmt.Sprintf("@%d-%d", w.from, w.to)
	}
}

// mix hashes numbers so that each bit of the result depends on all of their bits. A draw needs no
// state and is therefore independent of the order of the calls.
func mix(numbers ...uint64) uint64 {
	state := uint64(0x9e3779b97f4a7c15)
	for _, number := range numbers {
		high, low := bits.Mul64(state^number^0x2545f4914f6cdd1d, 0xd1342543de82ef95)
		state = (high ^ low) + 0x9e3779b97f4a7c15
		state = (state ^ state>>29) * 0xbf58476d1ce4e5b9
		state ^= state >> 32
	}
	return state
}
