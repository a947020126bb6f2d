package fault

import (
	"maps"
	"sync"
	"time"
)

// Injector draws a decision for each call. The zero value and nil inject no faults. It is safe
// for concurrent use.
type Injector struct {
	mu struct {
		sync.Mutex
		plan   *Plan
		seen   []uint64 // calls so far, per rule of the plan
		counts map[string]int

		schedule []*Reshards
		replaced chan struct{} // closed by the next Set; nil without a waiter
	}
}

// Injector returns a new injector for the plan.
func (p *Plan) Injector() *Injector {
	in := &Injector{}
	in.Set(p)
	return in
}

// Set replaces the plan; nil ends all faults. The counts of calls and of turns restart; the
// counts of faults continue.
func (in *Injector) Set(p *Plan) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.plan, in.mu.seen = p, nil
	if p != nil {
		in.mu.seen = make([]uint64, len(p.rules))
	}
	in.mu.schedule = p.schedule(in)
	if in.mu.replaced != nil {
		close(in.mu.replaced)
		in.mu.replaced = nil
	}
}

// Counts returns the number of times that each fault was drawn, by "Operation:fault", such as
// "PutRecords:lose-answer". It includes a fail-record for a record that the call did not have.
func (in *Injector) Counts() map[string]int {
	if in == nil {
		return map[string]int{}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	counts := make(map[string]int, len(in.mu.counts))
	maps.Copy(counts, in.mu.counts)
	return counts
}

// Draw decides on the next call of an operation, such as "PutRecords", of a service, "kinesis" or
// "dynamodb".
func (in *Injector) Draw(service, operation string) Decision {
	if in == nil {
		return Decision{}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	plan := in.mu.plan
	if plan == nil || len(plan.rules) == 0 {
		return Decision{}
	}
	var d Decision
	var drawn []kind
	for i := range plan.rules {
		rule := &plan.rules[i]
		if !rule.about(service, operation) {
			continue
		}
		in.mu.seen[i]++
		draw := mix(plan.seed, uint64(i), in.mu.seen[i])
		if rule.when.meets(in.mu.seen[i], draw) && d.apply(rule, mix(draw)) {
			drawn = append(drawn, rule.kind)
		}
	}
	d.settle()
	in.count(operation, drawn, d.Refuse != None)
	return d
}

// apply adds the fault of a rule that fired. It returns false if an earlier fault excludes it.
func (d *Decision) apply(r *rule, draw uint64) bool {
	switch r.kind {
	case kindDelay:
		d.Delay += r.duration
	case kindError500:
		return d.refuse(InternalError)
	case kindError503:
		return d.refuse(Unavailable)
	case kindThrottle:
		return d.refuse(Throttle)
	case kindRefuse:
		if !d.refuse(Denied) {
			return false
		}
		d.Code = r.code
	case kindLoseRequest:
		return d.refuse(LoseRequest)
	case kindFailRecord, kindThrottleRecord:
		d.Records = append(d.Records, RecordFault{
			Throttled: r.kind == kindThrottleRecord,
			Number:    r.record.number, Num: r.record.num, Den: r.record.den, Draw: draw,
		})
	case kindExpireIterator:
		d.ExpireIterator = true
	case kindLoseAnswer, kindCommitLate, kindHang:
		if d.LoseAnswer || d.CommitLate > 0 {
			return false
		}
		d.LoseAnswer, d.Hang = r.kind == kindLoseAnswer, r.kind == kindHang
		d.CommitLate = r.duration
	case kindCutStream:
		if d.CutStream > 0 {
			return false
		}
		if d.CutStream = r.duration; r.duration == 0 {
			d.CutStream = 1 + time.Duration(draw%uint64(maxCut))
		}
	case kindReshard: // does not concern calls
		return false
	}
	return true
}

// maxCut is the latest moment for a cut-stream without a duration: about as long as a test can
// wait. A whole subscription lasts five minutes.
const maxCut = 5 * time.Second

func (d *Decision) refuse(r Refusal) bool {
	if d.Refuse != None {
		return false
	}
	d.Refuse = r
	return true
}

// settle drops the faults that a refusal excludes.
func (d *Decision) settle() {
	if d.Refuse != None {
		*d = Decision{Delay: d.Delay, Refuse: d.Refuse, Code: d.Code}
	}
}

func (in *Injector) count(operation string, drawn []kind, refused bool) {
	for _, k := range drawn {
		if refused && k > kindLoseRequest {
			continue
		}
		in.countOne(operation, k)
	}
}

func (in *Injector) countOne(operation string, k kind) {
	if in.mu.counts == nil {
		in.mu.counts = map[string]int{}
	}
	in.mu.counts[operation+":"+k.String()]++
}
