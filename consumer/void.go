package consumer

import (
	"fmt"

	"github.com/runnel-stream/runnel"
)

// VoidPolicy says what to do with a void aggregate: one with a user record whose hash key is
// outside of the shard's range. It was packed for a shard that has been split or merged since.
// Its producer finds out by the answer, and sends its user records again: the KPL those
// outside, and sometimes those inside too; runnel's all of them. Whatever is done, a void
// aggregate tells the filter of doubles nothing, and is reported by an event (Voided).
type VoidPolicy int

const (
	// VoidDrop drops it as a whole, and its position counts as processed: the default, and
	// what the KCL does, silently.
	VoidDrop VoidPolicy = iota
	// VoidDeliver delivers all its user records, in the shard that they stand in. What the
	// producer sends again is delivered too.
	VoidDeliver
	// VoidStop goes no further in the shard: what stands before the aggregate is delivered, and
	// then the worker reports a *VoidError (Failed) again and again, until it is stopped and a
	// worker with another policy takes its place.
	VoidStop
)

// VoidError names a void aggregate.
type VoidError struct {
	ShardID  runnel.ShardID
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
