package follow

import (
	"fmt"

	"github.com/runnel-stream/runnel"
)

// Kind is the kind of a Notice.
type Kind int

const (
	// Void is an aggregate that was packed for a shard that no longer exists. Config.Void decides
	// about its user records.
	Void Kind = iota + 1
	// Gap is a range of records, those behind After, that were trimmed before they were read.
	Gap
	// Gone is a shard that was removed before it was read to its end.
	Gone
	// Trouble is a call that failed and will be made again.
	Trouble
	// Began is the beginning of a shard's reading.
	Began
	// Ended is the end of a shard's reading, after its last record or the last one in demand.
	Ended
)

// Notice is an event that the reader of a stream should know.
type Notice struct {
	Kind  Kind
	Shard runnel.ShardID
	// After is the last record that was read, "" if there is none. For a Void it is the record
	// itself.
	After runnel.SequenceNumber
	// Delivered and Dropped count the user records of a Void.
	Delivered, Dropped int
	// Err is the error, if any.
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
		return fmt.Sprintf("%s: %s is an aggregate packed for another shard: %d of its user "+
			"records were delivered, %d dropped", n.Shard, after, n.Delivered, n.Dropped)
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
