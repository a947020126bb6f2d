package consumer

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/keyspace"
)

// reading is a shard's opener, and the mirror of its filter.
type reading struct {
	opener.Opener
	mirror *mirror // of the filter; nil if no sink wants the state
}

// newReading returns the reading of the records behind after. It drops no double.
func newReading(shard runnel.ShardID, after runnel.Position) reading {
	return reading{Opener: opener.Opener{Shard: shard, Keys: keyspace.All(), After: after}}
}

// open adds a Kinesis record to a page. It does nothing if the record is not behind o.After. If
// only its first user records are not, it adds the others. The error is a *VoidError, and then the
// page has not changed.
func (o *reading) open(r *types.Record, p *page) error {
	opened := o.Open(r, p)
	if opened.Outside != nil {
		void := &VoidError{
			ShardID: o.Shard, Position: opened.Last, Records: opened.Users, Err: opened.Outside,
		}
		if o.Void == opener.VoidStop {
			return void
		}
		p.voided = append(p.voided, void)
	}
	if !opened.New {
		return nil
	}
	p.doubles += opened.Doubles
	p.malformed += opened.Malformed
	p.unfiltered += opened.Unfiltered
	if p.read++; p.oldest.IsZero() {
		p.oldest = opened.Arrival
	}
	p.newest = opened.Arrival
	return nil
}

// Expect makes room for the user records of an aggregate.
func (p *page) Expect(n int) {
	if cap(p.records)-len(p.records) < n {
		p.records = slices.Grow(p.records, max(n, len(p.records)))
	}
}

// Take adds a user record.
func (p *page) Take(r runnel.Record) bool {
	p.bytes += int64(len(r.Data))
	p.records = append(p.records, r)
	return true
}

// known returns the filter's state, whether a sink wants it or not; nil without a filter.
func (o *reading) known() []byte {
	if o.Filter == nil {
		return nil
	}
	state, _ := o.Filter.MarshalBinary() // it returns no error
	return state
}

// change returns the change of the filter's state since the last call; nil if no sink wants it.
func (o *reading) change() []byte {
	if o.Filter == nil || o.mirror == nil {
		return nil
	}
	delta, _ := o.Filter.Delta().MarshalBinary() // it returns no error
	return delta
}
