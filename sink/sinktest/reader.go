package sinktest

import (
	"fmt"
	"math/rand/v2"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
)

// reader opens aggregates and drops the doubles of units, as the consumer before a sink does. Its
// state comes from the sink, and goes there.
type reader struct {
	filter  *aggregate.Filter
	decoder aggregate.Decoder
	based   bool // the sink has the state on which the next change builds
}

// newReader returns a reader that goes on from a commit.
func newReader(from sink.Committed) (*reader, error) {
	states := [][]byte{from.State}
	if from.End == runnel.Start() {
		states = from.Parents
	}
	var filters []*aggregate.Filter
	for _, state := range states {
		filter := new(aggregate.Filter)
		if len(state) > 0 {
			if err := filter.UnmarshalBinary(state); err != nil {
				return nil, fmt.Errorf("a state that nobody wrote: %w", err)
			}
		}
		filters = append(filters, filter)
	}
	r := &reader{filter: aggregate.Union(filters...)}
	r.based = from.End != runnel.Start() || r.filter.Empty()
	r.filter.Track()
	return r, nil
}

// delta returns the change of the reader's state since the last call, or since the commit that it
// goes on from; nil before that.
func (r *reader) delta() []byte {
	delta, _ := r.filter.Delta().MarshalBinary() // the error is nil
	if !r.based {
		delta = nil
	}
	r.based = true
	return delta
}

// state returns the reader's state as bytes that do not change afterwards.
func (r *reader) state() []byte {
	state, _ := r.filter.AppendBinary(nil) // the error is nil
	return state
}

// read returns the user records of the Kinesis records [lo, hi) that are to be delivered. It draws
// at random whether to deliver a doubtful record; without rng it delivers all of them.
func (r *reader) read(rng *rand.Rand, s *source, lo, hi int) (records []runnel.Record) {
	for _, from := range s.stored[lo:hi] {
		record := runnel.Record{
			PartitionKey: from.key, Data: from.data, ShardID: s.shard.ID,
			Position: runnel.Position{Sequence: from.last.Sequence}, ArrivalTime: from.arrival,
		}
		if !r.decoder.Open(from.data) {
			r.filter.Advance(from.arrival)
			if from.policy == delivered || from.policy == doubtful &&
				(rng == nil || rng.IntN(2) == 0) {
				records = append(records, record)
			}
			continue
		}
		for sub, user := range r.filter.Pass(&r.decoder, from.arrival) {
			record.PartitionKey, record.Data = user.PartitionKey, user.Data
			record.Position.Sub = int64(sub)
			records = append(records, record)
		}
	}
	return records
}
