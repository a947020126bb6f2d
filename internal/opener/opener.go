// Package opener extracts user records from a shard's Kinesis records: it opens aggregates, treats
// void ones by a policy, and drops the doubles of units. It works on the pages of package pages.
package opener

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// Opener opens the Kinesis records of one shard, in their order. It is used by one goroutine at a
// time.
type Opener struct {
	Shard runnel.ShardID
	Keys  keyspace.Range // the shard's
	Void  Void
	// Filter drops the doubles of units; nil delivers them.
	Filter *aggregate.Filter
	// After is the last user record that was opened or came before.
	After runnel.Position

	decoder aggregate.Decoder
}

// Receiver takes user records.
type Receiver interface {
	// Expect announces up to n user records, those of one aggregate.
	Expect(n int)
	// Take takes the next one, and returns whether it wants more.
	Take(runnel.Record) bool
}

// Opened is the result of opening one Kinesis record.
type Opened struct {
	// New is false for a record that lies at or before Opener.After. Nothing else is set then.
	New     bool
	Arrival time.Time
	// Last is the position of its last user record, and Users their number.
	Last  runnel.Position
	Users int
	// Doubles is the number of user records that the filter dropped. Malformed and Unfiltered
	// count units; see aggregate.Verdict.
	Doubles, Malformed, Unfiltered int
	// Outside is the *aggregate.OutsideError of a void aggregate, or nil. Opener.Void delivered and
	// dropped so many of its user records behind Opener.After.
	Outside            error
	Delivered, Dropped int
}

// Open passes the user records of a Kinesis record behind o.After to a receiver, as long as it
// wants more, and moves o.After to the record's last one. A record's Data is valid for as long as
// r's.
func (o *Opener) Open(r *types.Record, to Receiver) Opened {
	in := runnel.Record{
		PartitionKey: aws.ToString(r.PartitionKey), Data: r.Data, ShardID: o.Shard,
		Position: runnel.Position{
			Sequence: runnel.SequenceNumber(aws.ToString(r.SequenceNumber)),
		},
		ArrivalTime: aws.ToTime(r.ApproximateArrivalTimestamp),
	}
	out := Opened{Last: in.Position, Users: 1, Arrival: in.ArrivalTime}
	aggregated := o.decoder.Open(r.Data)
	if aggregated {
		out.Users = o.decoder.Len()
		out.Last.Sub = max(0, int64(out.Users)-1)
	}
	if !o.After.Less(out.Last) {
		return Opened{}
	}
	out.New = true
	switch {
	case !aggregated:
		if o.Filter != nil {
			o.Filter.Advance(in.ArrivalTime)
		}
		to.Take(in)
	default:
		if out.Outside = o.decoder.Check(o.Keys); out.Outside != nil && o.Void == VoidStop {
			return out
		}
		o.aggregate(in, &out, to)
	}
	o.After = out.Last
	return out
}

// HasUnit reports whether a Kinesis record holds a unit that a filter would judge. It is false for
// a record that Open would leave out, and for a void aggregate.
func (o *Opener) HasUnit(r *types.Record) bool {
	if !o.decoder.Open(r.Data) {
		return false
	}
	last := runnel.Position{
		Sequence: runnel.SequenceNumber(aws.ToString(r.SequenceNumber)),
		Sub:      max(0, int64(o.decoder.Len())-1),
	}
	if !o.After.Less(last) {
		return false
	}
	return o.holdsUnit() && o.decoder.Check(o.Keys) == nil
}

// aggregate passes on the user records of the aggregate in the decoder.
func (o *Opener) aggregate(in runnel.Record, out *Opened, to Receiver) {
	to.Expect(out.Users)
	after := int64(-1) // the user records up to this one were processed before
	if o.After.Sequence == out.Last.Sequence {
		after = o.After.Sub
	}
	pass := func(sub int, r aggregate.Record) bool {
		if int64(sub) <= after {
			return true
		}
		in.Position.Sub = int64(sub)
		in.PartitionKey, in.ExplicitHashKey, in.Data = r.PartitionKey, r.ExplicitHashKey, r.Data
		return to.Take(in)
	}
	switch {
	case out.Outside != nil:
		wanted := o.wanted(in.PartitionKey)
		for sub, r := range o.decoder.Records() {
			switch {
			case int64(sub) <= after:
				continue
			case !wanted(r):
				out.Dropped++
				continue
			}
			out.Delivered++
			if !pass(sub, r) {
				return
			}
		}
	case o.Filter == nil:
		for sub, r := range o.decoder.Records() {
			if !pass(sub, r) {
				return
			}
		}
	default:
		before, passed := o.Filter.Counts, 0
		for sub, r := range o.Filter.Pass(&o.decoder, in.ArrivalTime) {
			passed++
			if !pass(sub, r) {
				return
			}
		}
		out.Doubles = out.Users - passed
		out.Malformed = int(o.Filter.Counts.Malformed - before.Malformed)
		out.Unfiltered = int(o.Filter.Counts.Unfiltered - before.Unfiltered)
	}
}
