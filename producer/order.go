package producer

import (
	"errors"
	"fmt"
)

// Order is what a producer promises of the order of records, and how it packs them.
type Order uint8

const (
	// OrderKey keeps the order of each lane. What waits in a lane when its turn comes is
	// folded into one unit: an aggregated record with an identity, by which runnel's consumers
	// drop doubles (package aggregate). Readers need a deaggregator, as the KCL has.
	OrderKey Order = iota
	// OrderPlain keeps the order of each lane, and sends each record as it is, in a Kinesis
	// record of its own. Any reader can read it, and doubles stay.
	OrderPlain
	// OrderChained keeps the order of each lane by PutRecord, one record a call, each naming
	// the number of the one before it (SequenceNumberForOrdering). Records are as in
	// OrderPlain. It is the slowest, for who wants AWS's own documented promise.
	OrderChained
	// OrderNone keeps no order, and loses and doubles nothing: what waits for a shard when a
	// call can be made is packed, records of many keys together, into one unordered unit, and
	// any number of them is in flight. Records that are small and of many keys cost the
	// fewest calls and bytes by it. It needs Config.Reader, to list the shards.
	OrderNone
	// OrderShard keeps the order of each lane, and packs the units of many lanes, each with an
	// identity of its own, into one Kinesis record for a shard. Small records of many keys cost
	// few calls and bytes by it, as in OrderNone. It needs Config.Reader, to list the shards.
	OrderShard
)

var orderWords = [...]string{
	OrderKey: "key", OrderPlain: "plain", OrderChained: "chained", OrderNone: "none",
	OrderShard: "shard",
}

// ErrUnknownOrder is returned for a word that names no order.
var ErrUnknownOrder = errors.New("not an order: want key, shard, none, plain or chained")

// String returns the order's word on the command line: "key", "plain",
// "chained", "none" or "shard".
func (o Order) String() string {
	if int(o) < len(orderWords) {
		return orderWords[o]
	}
	return fmt.Sprintf("Order(%d)", uint8(o))
}

// ParseOrder reads what String wrote. Anything else is an error that wraps ErrUnknownOrder.
func ParseOrder(word string) (Order, error) {
	for o, known := range orderWords {
		if word == known {
			return Order(o), nil
		}
	}
	return 0, fmt.Errorf("%w: %q", ErrUnknownOrder, word)
}

// units reports whether records go as units with an identity.
func (o Order) units() bool { return o == OrderKey || o.byShard() }

// byShard reports whether records of many lanes share a Kinesis record.
func (o Order) byShard() bool { return o == OrderNone || o == OrderShard }
