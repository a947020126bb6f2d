package consumer

import (
	"fmt"

	"github.com/runnel-stream/runnel"
)

// VoidPolicy is the handling of a void aggregate. An aggregate is void if the hash key of one of
// its user records is outside the shard's range: it was packed for a shard that has been split or
// merged since. runnel's producer and the KPL learn that from the answer, and send user records
// again. Under every policy the filter of doubles ignores a void aggregate, and an event reports
// it: EventFailed with VoidStop, EventVoided otherwise. The position of a user record that is
// dropped counts as processed.
//
// An aggregate that cannot be decoded is an ordinary record, and never void.
type VoidPolicy int

const (
	// VoidAuto decides by the producer, so that no record is lost. It is the default.
	//
	//   - runnel's own, known by its units: the aggregate is dropped as a whole. The producer sends
	//     all its user records again.
	//   - The KPL's, known by its outer partition key "a", which the first user record has not: the
	//     user records inside the range are delivered, those outside are dropped. The KPL sends
	//     these again, and sometimes those inside too, which then come twice.
	//   - Any other's: all are delivered, since the producer may send nothing again. Those outside
	//     the range have no order with the records of their key in other shards.
	VoidAuto VoidPolicy = iota
	// VoidDrop drops it as a whole, of every producer. The KCL does the same, silently.
	VoidDrop
	// VoidDeliver delivers all its user records, in the shard that holds them. The records that the
	// producer sends again are delivered, too.
	VoidDeliver
	// VoidStop goes no further in the shard. The records before the aggregate are delivered. Then
	// the worker reports a *VoidError (EventFailed) again and again, until it is stopped and a
	// worker with another policy takes its place.
	VoidStop
)

// VoidError names a void aggregate.
type VoidError struct {
	ShardID  runnel.ShardID  // the shard that holds the aggregate
	Position runnel.Position // its last user record's
	Records  int             // user records in it
	// Delivered and Dropped count its user records by what the policy did with them. They leave out
	// user records that were processed before, if reading began inside the aggregate. With VoidStop
	// both are 0.
	Delivered, Dropped int
	Err                error // an *aggregate.OutsideError
}

func (e *VoidError) Error() string {
	text := fmt.Sprintf("the aggregate at %s in %s, with %d user records, is void: %s",
		e.Position.Sequence, e.ShardID, e.Records, e.Err)
	if e.Delivered+e.Dropped == 0 {
		return text
	}
	return fmt.Sprintf("%s; %d of them are delivered, %d dropped", text, e.Delivered, e.Dropped)
}

// Unwrap returns the *aggregate.OutsideError.
func (e *VoidError) Unwrap() error { return e.Err }
