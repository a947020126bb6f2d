package rollup

import (
	"sync"

	"github.com/runnel-stream/runnel"
)

// shardStates has what the handler of a shard keeps between batches. Each state is used by the
// shard's goroutine alone.
type shardStates struct {
	mu      *sync.Mutex
	shards  map[runnel.ShardID]*shardState
	folders *sync.Pool // a folder keeps the memory of a batch's rows
}

type shardState struct {
	// careful is the end of a batch that would overflow a row of the database.
	careful runnel.Position
	commit  Commit // of the batch that was handled last
}

func newShardStates(d Definition) shardStates {
	return shardStates{
		mu: new(sync.Mutex), shards: map[runnel.ShardID]*shardState{},
		folders: &sync.Pool{New: func() any {
			folder, _ := NewFolder(d) // it is valid
			return folder
		}},
	}
}

func (s *shardStates) of(id runnel.ShardID) *shardState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.shards[id]
	if state == nil {
		state = &shardState{}
		s.shards[id] = state
	}
	return state
}
