package opener

import (
	"fmt"

	"github.com/runnel-stream/runnel/aggregate"
)

// Void is the policy for void aggregates. An aggregate is void if a user record's hash key is
// outside the shard's range. Under every policy the filter ignores it.
type Void int

const (
	// VoidAuto decides by the aggregate's producer. An aggregate with units is runnel's own: it is
	// dropped, since the producer sends all its units again, under the same numbers. Of the KPL's
	// the records inside the range are delivered, and the others dropped: the KPL sends these
	// again, and sometimes the inside ones too. Of any other producer all are delivered, since it
	// may send nothing again.
	VoidAuto Void = iota
	// VoidDrop drops it as a whole.
	VoidDrop
	// VoidDeliver delivers all its user records.
	VoidDeliver
	// VoidStop leaves it unopened, and the opener before it.
	VoidStop
)

// Voids are the names of the policies.
var Voids = []string{"auto", "drop", "deliver", "stop"}

// String returns the policy's name.
func (v Void) String() string {
	if v < 0 || int(v) >= len(Voids) {
		return fmt.Sprintf("policy %d", int(v))
	}
	return Voids[v]
}

// wanted returns whether a user record of the void aggregate in the decoder is to be delivered.
// outer is the partition key of the Kinesis record.
func (o *Opener) wanted(outer string) func(aggregate.Record) bool {
	deliver := func(aggregate.Record) bool { return true }
	drop := func(aggregate.Record) bool { return false }
	switch {
	case o.Void == VoidDeliver:
		return deliver
	case o.Void != VoidAuto, o.holdsUnit():
		return drop
	case o.ofKPL(outer):
		return func(r aggregate.Record) bool { return o.Keys.Contains(r.Hash()) }
	default:
		return deliver
	}
}

// holdsUnit reports whether the aggregate in the decoder holds a unit, as only those of runnel's
// producer do.
func (o *Opener) holdsUnit() bool {
	for _, r := range o.decoder.Records() {
		if _, ok := r.Unit(); ok {
			return true
		}
	}
	return false
}

// ofKPL reports whether the aggregate in the decoder is the KPL's. The KPL puts every aggregate
// under one partition key. Others put it under the first user record's. If the first user record
// has the KPL's own key, the aggregate counts as another producer's.
func (o *Opener) ofKPL(outer string) bool {
	if outer != aggregate.OuterPartitionKey {
		return false
	}
	for _, r := range o.decoder.Records() {
		return r.PartitionKey != outer
	}
	return false
}
