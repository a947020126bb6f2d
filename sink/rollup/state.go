package rollup

import (
	"sync"

	"github.com/runnel-stream/runnel"
)

// shardStates has what the handler of a shard keeps between batches. Each state is used by the
// shard's goroutine alone.
type shardStates struct {
	definition Definition

	mu     *sync.Mutex
	shards map[runnel.ShardID]*shardState
}

type shardState struct {
	folder *Folder
	// careful is the end of a batch that would overflow a row of the database.
	careful runnel.Position
	commit  Commit // of the batch that was handled last
}

func newShardStates(d Definition) shardStates {
	return shardStates{
		definition: d, mu: new(sync.Mutex), shards: map[runnel.ShardID]*shardState{},
	}
}

func (s *shardStates) of(id runnel.ShardID) *shardState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.shards[id]
	if state == nil {
		folder, _ := NewFolder(s.definition) // it is valid
		state = &shardState{folder: folder}
		s.shards[id] = state
	}
	return state
}
