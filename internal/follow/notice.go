package follow

import (
	"fmt"

	"github.com/runnel-stream/runnel"
)

// Kind is what a Notice tells.
type Kind int

const (
	// Void is an aggregate that was packed for a shard that is no more: its producer sends the
	// user records again, so it is skipped as a whole.
	Void Kind = iota + 1
	// Gap is records that were trimmed before they were read: those behind After.
	Gap
	// Gone is a shard that was removed before it was read to its end.
	Gone
	// Trouble is a call that failed and is made again.
	Trouble
	// Began is the beginning of a shard's reading.
	Began
	// Ended is its end, after the shard's last record or the last one that is wanted.
	Ended
)

// Notice is something that the reader of a stream should know.
type Notice struct {
	Kind  Kind
	Shard runnel.ShardID
	// After is the last record that was read, "" if none was. Of a Void: the record itself.
	After runnel.SequenceNumber
	// Err is what failed.
	Err error
}

// String returns the notice as a line for people.
func (n Notice) String() string {
	after := "record " + string(n.After)
	if n.After == "" {
		after = "the beginning"
	}
	switch n.Kind {
	case Void:
		return fmt.Sprintf("%s: skipped %s, an aggregate packed for another shard; its producer "+
			"sends what it holds again", n.Shard, after)
	case Gap:
		return fmt.Sprintf("%s: the records behind %s were trimmed before they were read",
			n.Shard, after)
	case Gone:
		return fmt.Sprintf("%s: the shard was removed before it was read to its end; last read: %s",
			n.Shard, after)
	case Trouble:
		return fmt.Sprintf("%s: %v; trying again", n.Shard, n.Err)
	case Began:
		return fmt.Sprintf("%s: reading from %s on", n.Shard, after)
	case Ended:
		return fmt.Sprintf("%s: read to its end", n.Shard)
	default:
		return fmt.Sprintf("%s: notice %d", n.Shard, n.Kind)
	}
}
