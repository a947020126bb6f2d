package consumer

import (
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
)

// quietEvery is the time between two log lines about a shard that fails again and again.
const quietEvery = 10 * time.Second

// quiet keeps a failure that is tried again and again from filling the log. For each shard it lets
// the first failure through, and then one every quietEvery. It is safe for concurrent use.
type quiet struct {
	mu     sync.Mutex
	shards map[runnel.ShardID]quietShard
}

type quietShard struct {
	logged time.Time
	since  int // failures that were not logged since then
}

// may reports whether a failure of the shard is to be logged now, and how many were not logged
// since the last one.
func (q *quiet) may(shard runnel.ShardID, now time.Time) (since int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shards == nil {
		q.shards = map[runnel.ShardID]quietShard{}
	}
	s, known := q.shards[shard]
	if known && now.Sub(s.logged) < quietEvery {
		s.since++
		q.shards[shard] = s
		return 0, false
	}
	q.shards[shard] = quietShard{logged: now}
	return s.since, true
}
