package rollup

import (
	"context"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// entryName returns the name of a shard's entry: its number, or the id itself where that has none.
func entryName(id runnel.ShardID) string { return shardid.Short(string(id)) }

// lineage knows the ancestors of shards. It is safe for concurrent use.
type lineage struct {
	shards *shardmap.Map

	mu    sync.Mutex
	known map[runnel.ShardID][]string
}

func newLineage(api shardmap.KinesisAPI, stream string) *lineage {
	return &lineage{
		shards: shardmap.New(api, stream), known: map[runnel.ShardID][]string{},
	}
}

// freshness is the age of a list that lacks a shard, before the stream is asked again.
const freshness = 5 * time.Second

// ancestors returns the names of the entries of a shard's ancestors, as far as the stream lists
// them. Ancestors never change, so the answer is kept. A shard that the stream does not list has
// none: entries of its ancestors then keep their positions, which do no harm and take more room.
func (l *lineage) ancestors(ctx context.Context, id runnel.ShardID) ([]string, error) {
	l.mu.Lock()
	names, found := l.known[id]
	l.mu.Unlock()
	if found {
		return names, nil
	}
	shards, err := l.shards.Shards(ctx, freshness)
	if err != nil {
		return nil, err
	}
	parents := make(map[runnel.ShardID][]runnel.ShardID, len(shards))
	for _, shard := range shards {
		parents[shard.ID] = shard.Parents
	}
	if _, listed := parents[id]; !listed {
		return nil, nil
	}
	names = ancestorsOf(id, parents)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[id] = names
	return names, nil
}

func ancestorsOf(id runnel.ShardID, parents map[runnel.ShardID][]runnel.ShardID) []string {
	var names []string
	seen := map[runnel.ShardID]bool{id: true}
	for next := []runnel.ShardID{id}; len(next) > 0; {
		of := next[0]
		next = next[1:]
		for _, parent := range parents[of] {
			if !seen[parent] {
				seen[parent] = true
				names, next = append(names, entryName(parent)), append(next, parent)
			}
		}
	}
	return names
}
