package kinesis

import (
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// numberOf returns the sequence number of a record of the shard.
func numberOf(sh *catalogue.Shard, n shardlog.Number) sequenceNumber {
	return sequenceNumber{
		version: numberVersion,
		created: sh.Created,
		shard:   sh.Index,
		index:   n.Serial,
		arrival: n.Arrival / 1000,
	}
}

// startOf and endOf are the SequenceNumberRange; end is for closed shards only.
func startOf(sh *catalogue.Shard) string {
	return numberOf(sh, shardlog.Number{Arrival: sh.Created * 1000}).String()
}

func endOf(sh *catalogue.Shard) string {
	return numberOf(sh, shardlog.Number{Serial: endIndex, Arrival: sh.Closed}).String()
}

// maxArrival is the arrival in a continuation number; no record has it: it is the year 4147.
const maxArrival = 1<<36 - 1

// continuation returns a sequence number above that of the record with the serial, and of every one
// before, and below those of later records. So AT_SEQUENCE_NUMBER and AFTER_SEQUENCE_NUMBER mean
// the same with it.
func continuation(sh *catalogue.Shard, serial uint64) sequenceNumber {
	return sequenceNumber{
		version: numberVersion,
		created: sh.Created,
		shard:   sh.Index,
		index:   serial,
		arrival: maxArrival,
	}
}

// SequenceNumber returns the sequence number of a record of the shard, as answers have it.
func SequenceNumber(sh *catalogue.Shard, n shardlog.Number) string {
	return numberOf(sh, n).String()
}
