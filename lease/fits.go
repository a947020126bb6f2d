package lease

import (
	"fmt"

	"github.com/runnel-stream/runnel"
)

// Fits returns a *StreamError if a lease cannot be one of the stream's: its hash keys are not those
// of the stream's shard of that id, or its checkpoint is before the shard's first number or after
// its last one. The shards must have been listed after the leases were read.
//
// It judges only rows without a stamp, which other programs made: a table of Java's does not name
// its stream. A stamped row of this stream that does not fit was edited by hand. It is one bad row,
// and its reader reports it.
//
// It relies on the order of one shard's numbers alone, which the API promises. Numbers of AWS also
// contain the shard and its creation, but AWS does not document that.
func (t *Table) Fits(leases []Lease, shards []runnel.Shard) error {
	byID := make(map[runnel.ShardID]runnel.Shard, len(shards))
	for _, s := range shards {
		byID[s.ID] = s
	}
	for _, l := range leases {
		s, listed := byID[l.Key]
		if !listed || l.Stream != "" {
			continue
		}
		if misfit := l.misfit(s); misfit != "" {
			return &StreamError{
				Table: t.cfg.Table, Want: t.cfg.Stream.String(),
				Misfit: fmt.Sprintf("lease %s: %s", l.Key, misfit),
			}
		}
	}
	return nil
}

// misfit says why the lease cannot be that of the shard; "" if it can.
func (l Lease) misfit(s runnel.Shard) string {
	at := l.Checkpoint.Sequence
	switch {
	case l.Range != nil && *l.Range != s.Range:
		return fmt.Sprintf("its hash keys are %s, and the shard's are %s", *l.Range, s.Range)
	case at.IsNumber() && s.First != "" && at.Compare(s.First) < 0:
		return fmt.Sprintf("its checkpoint %s is before the shard's first number %s", at, s.First)
	case at.IsNumber() && s.Last != "" && at.Compare(s.Last) > 0:
		return fmt.Sprintf("its checkpoint %s is after the shard's last number %s", at, s.Last)
	default:
		return ""
	}
}
