package producer

import "github.com/runnel-stream/runnel"

// keyPacking packs the records that wait in a lane into one unit with the lane's keys, in a Kinesis
// record of its own.
type keyPacking struct {
	ownLanes
	separate
	filler filler
}

func (*keyPacking) size(r *runnel.Record) int {
	return unitSize(r, len(r.PartitionKey), longestTags)
}

func (k *keyPacking) examine(e *entry) { examineUnit(k, e) }

func (k *keyPacking) fill(u *unit, most int) {
	k.filler.fill(u, most, len(u.first.record.PartitionKey), 0)
}
