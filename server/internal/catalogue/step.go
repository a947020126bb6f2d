package catalogue

import "github.com/runnel-stream/runnel/keyspace"

// Step is one split or one merge: it closes one or two pieces and opens two or one instead.
// The pieces are numbered from 0: first the stream's open shards by hash key, then the pieces that
// the steps open, in their order. The log holds the steps of a pending reshard, so the JSON names
// are a file format.
type Step struct {
	From []int            `json:"from"` // the parents, in the order of the request
	To   []keyspace.Range `json:"to"`
}

// SplitStep is the step that splits a piece into two.
func SplitStep(piece int, low, high keyspace.Range) Step {
	return Step{From: []int{piece}, To: []keyspace.Range{low, high}}
}

// MaxShards is the most open shards of a stream (AWS, "UpdateShardCount"). It bounds a frame's
// size.
const MaxShards = 10_000
