package consumer

import (
	"fmt"

	"github.com/runnel-stream/runnel"
)

// VoidPolicy is the handling of a void aggregate. An aggregate is void if the hash key of one of
// its user records is outside the shard's range: it was packed for a shard that has been split or
// merged since. Its producer learns that from the answer, and sends its user records again. The KPL
// sends those outside the range, and sometimes those inside, too; runnel sends all of them. Under
// every policy the filter of doubles ignores a void aggregate, and an event reports it: EventFailed
// with VoidStop, EventVoided otherwise.
type VoidPolicy int

const (
	// VoidDrop drops it as a whole, and its position counts as processed. It is the default. The
	// KCL does the same, silently.
	VoidDrop VoidPolicy = iota
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
	Err      error           // an *aggregate.OutsideError
}

func (e *VoidError) Error() string {
	return fmt.Sprintf("the aggregate at %s in %s, with %d user records, is void: %s",
		e.Position.Sequence, e.ShardID, e.Records, e.Err)
}

// Unwrap returns the *aggregate.OutsideError.
func (e *VoidError) Unwrap() error { return e.Err }
