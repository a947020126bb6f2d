// Package aggregate is what stands inside a Kinesis record: many user records in the format of
// the Kinesis Producer Library, and the identity by which a consumer knows doubles. It is pure:
// no I/O, no goroutine, no clock.
//
// # The format
//
// An Encoder folds records into one, a Decoder opens it. Both keep to the KPL's
// aggregation-format.md, so any language's deaggregator reads what Encoder writes; what an
// aggregate is, and what an ordinary record, is as the Java KCL decides (Decoder.Open).
//
// # Units
//
// A producer that has no answer sends again, and then a record may stand in the stream twice,
// the second time behind newer ones. So each Kinesis record is a Unit, with the producer's run,
// a number, and the lowest number not yet settled, in the tags of its first user record, where
// the KCL and other deaggregators do not look. A Filter drops the doubles, exactly, with little
// state: a child shard begins with the Union over its parents, and an exactly-once sink keeps
// the state in its own commits, or its change (Delta).
//
// A producer freezes what waits in a lane into one unit, and keeps the bytes for every retry:
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
