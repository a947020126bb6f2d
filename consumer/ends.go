package consumer

import (
	"slices"
	"sync"

	"github.com/runnel-stream/runnel"
)

// ends stores the filter states of a handler's readers at the ends of the shards that this worker
// has ended. The readers of the children begin with them and need not read the parents' ends again,
// which takes long when the stream has no reads to spare.
//
// Each end holds the filter's state, which is small, and each child makes a filter of its own from
// it. An end is removed when all its children have begun in this worker. If another worker reads
// one of them, the end remains; so the oldest ends are removed when there are too many. It is safe
// for concurrent use.
type ends struct {
	mu    sync.Mutex
	kept  []end // the oldest first
	bytes int   // of all states
}

// end is the end of one shard.
type end struct {
	shard  runnel.ShardID
	state  []byte           // of the filter behind the last record
	unborn []runnel.ShardID // the children that have not begun
}

// These limit the ends that a worker stores. One state is below 13 MiB, and mostly a few KiB.
const (
	maxEnds     = 256
	maxEndBytes = 64 << 20
)

// leave stores the state at a shard's end for its children, and replaces an earlier one. Call it
// before the lease's row says SHARD_END: until then no child asks for the state.
func (e *ends) leave(shard runnel.ShardID, state []byte, children []runnel.ShardID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remove(func(old *end) bool { return old.shard == shard })
	if len(children) > 0 {
		e.kept = append(e.kept, end{shard: shard, state: state, unborn: children})
		e.bytes += len(state)
	}
	for len(e.kept) > maxEnds || e.bytes > maxEndBytes {
		oldest := e.kept[0].shard
		e.remove(func(old *end) bool { return old.shard == oldest })
	}
}

// begin returns the states at the ends of all parents of a shard; nil if one is missing or if the
// parents are not known. Either way the shard then counts as begun.
func (e *ends) begin(shard runnel.ShardID, parents []runnel.ShardID) [][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	var states [][]byte
	for i := range e.kept {
		old := &e.kept[i]
		if !slices.Contains(parents, old.shard) {
			continue
		}
		states = append(states, old.state)
		old.unborn = slices.DeleteFunc(slices.Clone(old.unborn), func(id runnel.ShardID) bool {
			return id == shard
		})
	}
	e.remove(func(old *end) bool { return len(old.unborn) == 0 })
	if len(states) < len(parents) {
		return nil
	}
	return states
}

func (e *ends) remove(which func(*end) bool) {
	e.kept = slices.DeleteFunc(e.kept, func(old end) bool {
		gone := which(&old)
		if gone {
			e.bytes -= len(old.state)
		}
		return gone
	})
}
