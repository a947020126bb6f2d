package shardmap

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel"
)

// Map is the list of a stream's shards. A caller fetches it if its copy is not fresh enough.
// Concurrent callers share one fetch. It is safe for concurrent use.
type Map struct {
	api    KinesisAPI
	stream string
	turn   chan struct{} // held while fetching: waiting for it listens to the context
	latest snapshot      // guarded by turn
}

type snapshot struct {
	taken  time.Time // before the call
	shards []runnel.Shard
}

// New returns the map of a stream, by its name or ARN. It makes no call yet.
func New(api KinesisAPI, stream string) *Map {
	return &Map{api: api, stream: stream, turn: make(chan struct{}, 1)}
}

// Shards returns all shards that the stream still lists, as of maxAge ago or later. The result is
// shared and must not be changed.
func (m *Map) Shards(ctx context.Context, maxAge time.Duration) ([]runnel.Shard, error) {
	asked := time.Now()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case m.turn <- struct{}{}:
	}
	defer func() { <-m.turn }()
	if m.latest.shards != nil && !m.latest.taken.Before(asked.Add(-maxAge)) {
		return m.latest.shards, nil
	}
	taken := time.Now()
	shards, err := List(ctx, m.api, m.stream, nil)
	if err != nil {
		return nil, err
	}
	m.latest = snapshot{taken: taken, shards: shards}
	return shards, nil
}
