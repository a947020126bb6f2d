package consumer

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/keyspace"
)

// reading is a shard's opener, and the mirror of its filter.
type reading struct {
	opener.Opener
	mirror *mirror // of the filter; nil if no sink wants the state
	tracks bool    // the pages carry the changes of the filter
	single bool    // each record of a page carries its own change
	// build makes the filter at a position, when the first unit comes; nil if there is a filter, or
	// none is wanted. A stream without units needs none, and is never read again.
	build func(context.Context, runnel.Position) (*aggregate.Filter, error)
}

// newReading returns the reading of the records behind after. It drops no double.
func newReading(shard runnel.ShardID, after runnel.Position) reading {
	return reading{Opener: opener.Opener{Shard: shard, Keys: keyspace.All(), After: after}}
}

// open adds a Kinesis record to a page. It does nothing if the record is not behind o.After. If
// only its first user records are not, it adds the others. The error is a *VoidError, or that of
// build, and then the page has not changed.
func (o *reading) open(ctx context.Context, r *types.Record, p *page) error {
	if o.build != nil && o.HasUnit(r) {
		// The units before o.After came before this reading began, if there are any. So the filter
		// there is the one with which the reading would have begun, moved on by the records since.
		filter, err := o.build(ctx, o.After)
		if err != nil {
			return err
		}
		filter.Track()
		o.Filter, o.build, p.base = filter, nil, filter.Clone()
	}
	from := o.After
	opened := o.Open(r, p)
	if opened.Outside != nil {
		void := &VoidError{
			ShardID: o.Shard, Position: opened.Last, Records: opened.Users,
			Delivered: opened.Delivered, Dropped: opened.Dropped, Err: opened.Outside,
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
	if o.single {
		o.step(p, from)
	}
	return nil
}

// step adds the change of a handler's filter since the last step to the page.
func (o *reading) step(p *page, from runnel.Position) {
	change := o.change()
	if p.base != nil || len(change) > 0 {
		p.steps = append(p.steps, step{
			from: from, at: o.After, single: o.single, base: p.base, change: change,
		})
	}
	p.base = nil
}

// Expect makes room for the user records of an aggregate.
func (p *page) Expect(n int) {
	if cap(p.records)-len(p.records) < n {
		p.records = slices.Grow(p.records, max(n, len(p.records)/4))
	}
}

// Take adds a user record.
func (p *page) Take(r runnel.Record) bool {
	p.bytes += int64(len(r.Data))
	p.memory += userOverhead + int64(len(r.Data)+max(0, len(r.PartitionKey)-keyBytes))
	p.records = append(p.records, r)
	return true
}

// change returns the change of the filter's state since the last call; nil if it is not wanted.
func (o *reading) change() []byte {
	if o.Filter == nil || !o.tracks {
		return nil
	}
	delta, _ := o.Filter.Delta().MarshalBinary() // it returns no error
	return delta
}
