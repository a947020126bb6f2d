package kinesis

import "github.com/runnel-stream/runnel/internal/wire"

// note sets the call's fields in the log: its stream and its records. out is nil before the call
// is executed, and after a failure.
func note(call *wire.Call, in, out any) {
	facts := call.Facts
	if facts == nil {
		return
	}
	facts.Stream, _ = streamOf(call.World, in)
	switch in := in.(type) {
	case *putRecordInput:
		facts.Counted, facts.Records = true, 1
	case *putRecordsInput:
		facts.Counted, facts.Records = true, len(in.Records)
	case *getRecordsInput:
		facts.Counted, facts.Stream = true, in.stream
	case *subscribeToShardInput:
		facts.Counted = true
		id, _ := parseConsumerARN(*in.ConsumerARN)
		facts.Stream = id.stream
	}
	switch out := out.(type) {
	case *putRecordsOutput:
		for i := range out.results {
			if out.results[i].code != "" {
				facts.Refused++
			}
		}
	case *reading:
		facts.Records = len(out.records)
	case *subscription:
		out.facts = facts
	}
}
