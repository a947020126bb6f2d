// Package aggregate packs many user records into one Kinesis record, in the format of the Kinesis
// Producer Library (KPL), and opens such records again. It also gives a packed record an identity,
// and filters the doubles that retries leave in a stream. It is pure: no I/O, no goroutine, no
// clock.
//
// Package producer writes the format. Package consumer and the sinks read it and store the filter's
// state.
//
// # The format
//
// An Encoder packs records into one, a Decoder opens it. Both keep to the KPL's
// aggregation-format.md, so any language's deaggregator reads an Encoder's output. Decoder.Open
// separates aggregates from ordinary records by the rules of the Java KCL.
//
// # Units
//
// A producer sends a record again if it got no answer. The stream may then hold the record twice,
// the second copy behind newer records. So a producer sends Units. A unit has a
// producer id, a number, and the lowest number of that producer that was not settled: neither
// acknowledged nor given up and reported. (Package producer uses 16 such ids in a run, one for each
// group of lanes.) They are in a tag of the unit's first user record, which the KCL and other
// deaggregators ignore. A Filter drops the doubles, exactly, with little state. A child shard's
// filter begins with the Union of its parents' filters. An exactly-once sink stores the state, or
// its change (Delta), in its commits.
//
// A producer packs the waiting records of one lane into a unit, and resends the same bytes:
//
//	unit := aggregate.Unit{Producer: run, Number: n, Low: lowestUnsettled}
//	first := aggregate.Record{PartitionKey: key, Data: data, Tags: unit.AppendTo(scratch[:0])}
//	encoder.Reset()
//	err := encoder.Add(first)
//	for more() && encoder.SizeWith(next) <= limit {
//		err = encoder.Add(next)
//	}
//	frozen := encoder.Seal(nil)
//
// A consumer opens every Kinesis record of a shard in order:
//
//	if !decoder.Open(data) {
//		filter.Advance(arrival)
//		deliver(0, data) // an ordinary record
//	} else if err := decoder.Check(shardRange); err != nil {
//		void++ // packed for another shard; its producer sends the units again
//	} else {
//		for sub, record := range filter.Pass(&decoder, arrival) {
//			deliver(sub, record)
//		}
//	}
package aggregate
