package producer

import (
	"errors"
	"fmt"
)

// Order is a promise about the order of records, with a way of packing them.
type Order uint8

const (
	// OrderKey keeps the order of each lane. The records that wait in a lane when its turn comes
	// are packed into one unit: an aggregated record with an identity, by which runnel's consumers
	// drop duplicates (package aggregate). Readers must be able to unpack aggregated records, as
	// the KCL is.
	OrderKey Order = iota
	// OrderPlain keeps the order of each lane and sends each record as it is, in a Kinesis record
	// of its own. Any reader can read it, but duplicates cannot be dropped.
	OrderPlain
	// OrderChained keeps the order of each lane by PutRecord: one record in a call, with the
	// sequence number of the lane's previous record (SequenceNumberForOrdering). Records are as in
	// OrderPlain. It is the slowest order, for users that need the promise which AWS documents.
	OrderChained
	// OrderNone keeps no order, but loses no record, and consumers can drop every duplicate. The
	// records that wait for a shard when a call can be made are packed into one unordered unit,
	// many keys together, and any number of units is in flight. For small records of many keys it
	// needs the fewest calls and bytes. It requires Config.Reader, to list the shards.
	OrderNone
	// OrderShard keeps the order of each lane and packs the units of many lanes, each with an
	// identity of its own, into one Kinesis record for a shard. For small records of many keys it
	// needs few calls and bytes, as OrderNone does. It requires Config.Reader, to list the shards.
	OrderShard
)

var orderWords = [...]string{
	OrderKey: "key", OrderPlain: "plain", OrderChained: "chained", OrderNone: "none",
	OrderShard: "shard",
}

// ErrUnknownOrder is returned by ParseOrder for a word that is not an order.
var ErrUnknownOrder = errors.New("not an order: want key, shard, none, plain or chained")

// String returns the order's word on the command line: "key", "plain",
// "chained", "none" or "shard".
func (o Order) String() string {
	if int(o) < len(orderWords) {
		return orderWords[o]
	}
	return fmt.Sprintf("Order(%d)", uint8(o))
}

// ParseOrder is the inverse of String. For any other word the error wraps ErrUnknownOrder.
func ParseOrder(word string) (Order, error) {
	for o, known := range orderWords {
		if word == known {
			return Order(o), nil
		}
	}
	return 0, fmt.Errorf("%w: %q", ErrUnknownOrder, word)
}

// units reports whether records go in units with an identity.
func (o Order) units() bool { return o == OrderKey || o.byShard() }

// byShard reports whether a Kinesis record holds records of many lanes of one shard.
func (o Order) byShard() bool { return o == OrderNone || o == OrderShard }
