package consumer

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// opener extracts a shard's user records from its Kinesis records, and drops the doubles of units.
type opener struct {
	shard runnel.ShardID
	keys  keyspace.Range // the shard's
	void  VoidPolicy
	after runnel.Position // every record up to here has been opened or came before
	seen
	decoder aggregate.Decoder
}

// newOpener returns an opener for the records behind after. It drops no double.
func newOpener(shard runnel.ShardID, after runnel.Position) opener {
	return opener{shard: shard, keys: keyspace.All(), after: after}
}

// open adds a Kinesis record to a page. It does nothing if the record is not behind o.after. If
// only its first user records are not, it adds the others. The error is a *VoidError, and then the
// page has not changed.
func (o *opener) open(r *types.Record, p *page) error {
	in := runnel.Record{
		PartitionKey: aws.ToString(r.PartitionKey), Data: r.Data, ShardID: o.shard,
		Position:    runnel.Position{Sequence: sequenceOf(r)},
		ArrivalTime: aws.ToTime(r.ApproximateArrivalTimestamp),
	}
	aggregated := o.decoder.Open(r.Data)
	last := in.Position
	if aggregated {
		last.Sub = max(0, int64(o.decoder.Len())-1)
	}
	if !o.after.Less(last) {
		return nil
	}
	if aggregated {
		if err := o.openAggregate(in, last, p); err != nil {
			return err
		}
	} else {
		o.advance(in.ArrivalTime)
		p.add(in)
	}
	o.after = last
	if p.read++; p.oldest.IsZero() {
		p.oldest = in.ArrivalTime
	}
	p.newest = in.ArrivalTime
	return nil
}

func (o *opener) openAggregate(in runnel.Record, last runnel.Position, p *page) error {
	if n := o.decoder.Len(); cap(p.records)-len(p.records) < n {
		p.records = slices.Grow(p.records, max(n, len(p.records)))
	}
	after := int64(-1) // the user records up to this one were processed before
	if o.after.Sequence == last.Sequence {
		after = o.after.Sub
	}
	deliver := func(sub int, r aggregate.Record) {
		if int64(sub) <= after {
			return
		}
		in.Position.Sub = int64(sub)
		in.PartitionKey, in.ExplicitHashKey, in.Data = r.PartitionKey, r.ExplicitHashKey, r.Data
		p.add(in)
	}
	outside := o.decoder.Check(o.keys)
	if outside != nil {
		void := &VoidError{
			ShardID: o.shard, Position: last, Records: o.decoder.Len(), Err: outside,
		}
		if o.void == VoidStop {
			return void
		}
		p.voided = append(p.voided, void)
	}
	switch {
	case outside != nil && o.void != VoidDeliver:
	case outside != nil || o.filter == nil:
		for sub, r := range o.decoder.Records() {
			deliver(sub, r)
		}
	default:
		before, passed := o.filter.Counts, 0
		for sub, r := range o.filter.Pass(&o.decoder, in.ArrivalTime) {
			deliver(sub, r)
			passed++
		}
		p.doubles += o.decoder.Len() - passed
		p.malformed += int(o.filter.Counts.Malformed - before.Malformed)
		p.unfiltered += int(o.filter.Counts.Unfiltered - before.Unfiltered)
	}
	return nil
}

func (p *page) add(r runnel.Record) {
	p.bytes += int64(len(r.Data))
	p.records = append(p.records, r)
}

// seen is a reader's state of the units before a position. The zero value has no filter and drops
// no double.
type seen struct {
	filter *aggregate.Filter
	mirror *mirror // of the filter; nil if no sink wants the state
}

func (s *seen) advance(arrival time.Time) {
	if s.filter != nil {
		s.filter.Advance(arrival)
	}
}

// known returns the filter's state, whether a sink wants it or not; nil without a filter.
func (s *seen) known() []byte {
	if s.filter == nil {
		return nil
	}
	state, _ := s.filter.MarshalBinary() // it returns no error
	return state
}

// change returns the change of the filter's state since the last call; nil if no sink wants it.
func (s *seen) change() []byte {
	if s.filter == nil || s.mirror == nil {
		return nil
	}
	delta, _ := s.filter.Delta().MarshalBinary() // it returns no error
	return delta
}
