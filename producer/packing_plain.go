package producer

import "github.com/runnel-stream/runnel"

// plainPacking sends each record as it is, in a Kinesis record of its own.
type plainPacking struct {
	ownLanes
	separate
}

func (*plainPacking) size(r *runnel.Record) int { return len(r.Data) + len(r.PartitionKey) }

func (p *plainPacking) examine(e *entry) { e.asIs, e.wireSize = true, p.size(&e.record) }

func (*plainPacking) fill(*unit, int) {} // its units have no number and one record
