package fault

// kind is the kind of a rule's fault. The order matters: a refusal (up to kindLoseRequest) drops
// the kinds after it.
type kind uint8

const (
	kindDelay kind = iota
	kindError500
	kindError503
	kindThrottle
	kindRefuse
	kindLoseRequest
	kindFailRecord
	kindThrottleRecord
	kindExpireIterator
	kindLoseAnswer
	kindCommitLate
	kindHang
	kindCutStream
	kindReshard // applies to streams, not to calls
)

// argument is the form of the argument after a fault's name.
type argument uint8

const (
	argumentNone     argument = iota
	argumentDuration          // required
	argumentMoment            // optional: a duration
	argumentRecord            // optional: K or a/b
	argumentCode              // required: the code of an error
)

// kinds describes every fault; the order is that of the constants above.
var kinds = [...]struct {
	name      string
	argument  argument
	operation string // the only operation with this fault; "": any
}{
	kindDelay:          {"delay", argumentDuration, ""},
	kindError500:       {"error-500", argumentNone, ""},
	kindError503:       {"error-503", argumentNone, ""},
	kindThrottle:       {"throttle", argumentNone, ""},
	kindRefuse:         {"refuse", argumentCode, ""},
	kindLoseRequest:    {"lose-request", argumentNone, ""},
	kindFailRecord:     {"fail-record", argumentRecord, "PutRecords"},
	kindThrottleRecord: {"throttle-record", argumentRecord, "PutRecords"},
	kindExpireIterator: {"expire-iterator", argumentNone, "GetRecords"},
	kindLoseAnswer:     {"lose-answer", argumentNone, ""},
	kindCommitLate:     {"commit-late", argumentDuration, ""},
	kindHang:           {"hang", argumentDuration, ""},
	kindCutStream:      {"cut-stream", argumentMoment, "SubscribeToShard"},
	kindReshard:        {"reshard", argumentDuration, ""},
}

func (k kind) String() string { return kinds[k].name }

func kindOf(name string) (kind, bool) {
	for k := range kinds {
		if kinds[k].name == name {
			return kind(k), true
		}
	}
	return 0, false
}

func kindNames() []string {
	names := make([]string, len(kinds))
	for k := range kinds {
		names[k] = kinds[k].name
	}
	return names
}
