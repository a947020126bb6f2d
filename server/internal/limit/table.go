package limit

import (
	"strings"
	"time"
)

// ID identifies a limit: its index in the table.
type ID uint8

// The limits that the server applies by name. Those of single operations follow them: see
// OfOperation.
const (
	WriteBytes ID = iota
	WriteRecords
	ReadBytes
	ReadCalls
	IteratorCalls
	FanOutBytes
	SubscribeCalls
	CreatingStreams
	OnDemandStreams
	Shards
	firstOperation
)

// Unit is the unit of a limit's value.
type Unit uint8

// The units.
const (
	Calls Unit = iota
	Bytes
	Records
	Things // existing streams or shards
)

// Scope is the kind of object that a limit applies to.
type Scope uint8

// The scopes. Account is an account in a region. Consumer is one shard as read by one consumer
// that is registered for enhanced fan-out.
const (
	Account Scope = iota
	Stream
	Shard
	Consumer
)

// String returns the scope as docs/limits.md writes it.
func (s Scope) String() string {
	return [...]string{"account", "stream", "shard", "consumer and shard"}[s]
}

// Limit describes a limit. AWS's page for all of them is "Quotas and limits" of the developer
// guide of Kinesis Data Streams.
type Limit struct {
	Name      string
	Operation string // the only operation that counts; "": see docs/limits.md
	Default   int64  // AWS's value
	Unit      Unit
	Per       Scope
	Window    time.Duration // the window of Default; 0: an absolute number
}

const day = 24 * time.Hour

// table holds every limit. The values are those of AWS's page "Quotas and limits" unless a
// comment gives another source.
var table = append([]Limit{
	WriteBytes:    {"write-bytes", "", 1 << 20, Bytes, Shard, time.Second},
	WriteRecords:  {"write-records", "", 1000, Records, Shard, time.Second},
	ReadBytes:     {"read-bytes", "GetRecords", 2 << 20, Bytes, Shard, time.Second},
	ReadCalls:     {"read-calls", "GetRecords", 5, Calls, Shard, time.Second},
	IteratorCalls: {"iterator-calls", "GetShardIterator", 5, Calls, Shard, time.Second},
	// AWS, "RegisterStreamConsumer": up to 2 MiB per second for every shard.
	FanOutBytes:     {"fan-out-bytes", "SubscribeToShard", 2 << 20, Bytes, Consumer, time.Second},
	SubscribeCalls:  {"subscribe-calls", "SubscribeToShard", 1, Calls, Consumer, time.Second},
	CreatingStreams: {"creating-streams", "CreateStream", 5, Things, Account, 0},
	OnDemandStreams: {"on-demand-streams", "", 50, Things, Account, 0},
	// AWS has 20,000 in us-east-1, us-west-2 and eu-west-1, and 1,000 or 6,000 elsewhere.
	Shards: {"shards", "", 20_000, Things, Account, 0},
}, operationLimits()...)

// operationLimits are the limits on the calls of single operations, named after them.
func operationLimits() []Limit {
	var limits []Limit
	add := func(calls int64, per Scope, window time.Duration, operations ...string) {
		for _, operation := range operations {
			limits = append(limits,
				Limit{kebab(operation), operation, calls, Calls, per, window})
		}
	}
	add(5, Account, time.Second, "AddTagsToStream", "CreateStream", "DeleteResourcePolicy",
		"DeleteStream", "DescribeAccountSettings")
	add(1, Account, time.Second, "DescribeLimits")
	add(10, Account, time.Second, "DescribeStream")
	add(20, Account, time.Second, "DescribeStreamSummary")
	add(5, Account, time.Second, "GetResourcePolicy", "ListStreams", "PutResourcePolicy",
		"UpdateAccountSettings", "UpdateStreamWarmThroughput")
	// AWS documents no limit for these: a guess after their older forms.
	add(5, Account, time.Second, "ListTagsForResource", "TagResource", "UntagResource")
	add(5, Stream, time.Second, "DecreaseStreamRetentionPeriod", "DeregisterStreamConsumer")
	add(20, Stream, time.Second, "DescribeStreamConsumer")
	add(5, Stream, time.Second, "DisableEnhancedMonitoring", "EnableEnhancedMonitoring",
		"IncreaseStreamRetentionPeriod")
	add(1000, Stream, time.Second, "ListShards")
	// The API reference says "per account" for ListTagsForStream, MergeShards,
	// RegisterStreamConsumer, RemoveTagsFromStream and SplitShard; the page of quotas, which
	// is newer, per stream.
	add(5, Stream, time.Second, "ListStreamConsumers", "ListTagsForStream", "MergeShards",
		"RegisterStreamConsumer", "RemoveTagsFromStream", "SplitShard")
	add(25, Stream, day, "StartStreamEncryption", "StopStreamEncryption")
	add(5, Stream, time.Second, "UpdateMaxRecordSize") // AWS documents none: a guess
	// AWS, "UpdateShardCount": not more than ten times per rolling 24 hours and stream.
	add(10, Stream, day, "UpdateShardCount")
	add(2, Stream, day, "UpdateStreamMode")
	return limits
}

// kebab writes an operation's name in small letters, with dashes: ListShards is list-shards.
func kebab(operation string) string {
	var name strings.Builder
	for i, r := range operation {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				name.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		name.WriteRune(r)
	}
	return name.String()
}

var (
	byName      = map[string]ID{}
	byOperation = map[string]ID{}
)

func init() { //nolint:gochecknoinits // two indexes of the table above
	for i := range table {
		byName[table[i].Name] = ID(i)
		if ID(i) >= firstOperation {
			byOperation[table[i].Operation] = ID(i)
		}
	}
}

// All returns every limit, by ID. The caller must not change it.
func All() []Limit { return table }

// Of returns the limit's description.
func (id ID) Of() *Limit { return &table[id] }

// OfOperation returns the limit on the calls of an operation that is named after it. It returns
// false for the other operations, which have limits by shard.
func OfOperation(operation string) (ID, bool) {
	id, found := byOperation[operation]
	return id, found
}
