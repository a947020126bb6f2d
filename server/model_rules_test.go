package server_test

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// The model of TestModel: AWS's documented rules for streams, shards, records and positions, on
// plain slices and big integers. It shares no code with the server and knows nothing of logs and
// files. A stream's times are those of the test's virtual clock, to the millisecond.

// modelStream is a stream. One that was deleted stays in the model until it is gone.
type modelStream struct {
	name      string
	created   time.Time
	retention time.Duration
	tags      map[string]string
	shards    []*modelShard // all that ever were: the index is the number in the id

	// The ends of the states that the API names; zero for one that the stream was never in.
	creating, updating, deleting time.Time
	// pending changes the shards at the end of UPDATING, not sooner (kinesalite's tests, which were
	// run against AWS); nil if no change is pending.
	pending func()

	scalings []time.Time // when UpdateShardCount succeeded: it may ten times in a day
}

// modelShard owns the hash keys in [lo, hi].
type modelShard struct {
	lo, hi         *big.Int
	parents        []int
	opened, closed time.Time // closed is zero while it is open
	gone           bool      // closed, and its last record has expired
	records        []modelRecord

	start, end string // sequence numbers, once an answer had them
	// kept is the first record that has not expired: it and all after it must be readable.
	// Those before it are on their way out: trimmed are seen to have gone, for good.
	kept, trimmed int
}

type modelRecord struct {
	key, data, number string
	arrival           time.Time
}

func shardID(index int) string { return fmt.Sprintf("shardId-%012d", index) }

// keySpace is 2^128.
var keySpace = new(big.Int).Lsh(big.NewInt(1), 128)

// uniform returns the starts of n shards of one size, as CreateStream and UpdateShardCount
// divide the key space.
func uniform(n int) (starts []*big.Int) {
	width := new(big.Int).Div(keySpace, big.NewInt(int64(n)))
	for i := range n {
		starts = append(starts, new(big.Int).Mul(width, big.NewInt(int64(i))))
	}
	return starts
}

// ranges returns the ranges that begin at those starts.
func ranges(starts []*big.Int) (shards []*modelShard) {
	for i, lo := range starts {
		hi := keySpace
		if i+1 < len(starts) {
			hi = starts[i+1]
		}
		shards = append(shards, &modelShard{lo: lo, hi: new(big.Int).Sub(hi, big.NewInt(1))})
	}
	return shards
}

// status is the StreamStatus; "" for a stream that is gone (AWS, "StreamDescription").
func (st *modelStream) status(now time.Time) string {
	switch {
	case !st.deleting.IsZero() && now.Before(st.deleting):
		return "DELETING"
	case !st.deleting.IsZero():
		return ""
	case now.Before(st.creating):
		return "CREATING"
	case now.Before(st.updating):
		return "UPDATING"
	default:
		return "ACTIVE"
	}
}

// pass lets records past their retention period expire. They never come back, not even by a longer
// period (AWS, "IncreaseStreamRetentionPeriod").
func (st *modelStream) pass(now time.Time) {
	horizon := now.Add(-st.retention)
	for _, sh := range st.shards {
		sh.gone = sh.gone || (!sh.closed.IsZero() && sh.closed.Before(horizon))
		for sh.kept < len(sh.records) && sh.records[sh.kept].arrival.Before(horizon) {
			sh.kept++
		}
	}
}

// open are the indices of the open shards in the order of their hash keys.
func (st *modelStream) open() (open []int) {
	for i, sh := range st.shards {
		if sh.closed.IsZero() {
			open = append(open, i)
		}
	}
	slices.SortFunc(open, func(a, b int) int { return st.shards[a].lo.Cmp(st.shards[b].lo) })
	return open
}

// owner is the open shard that a hash key belongs to.
func (st *modelStream) owner(hash *big.Int) int {
	for _, i := range st.open() {
		if st.shards[i].lo.Cmp(hash) <= 0 && hash.Cmp(st.shards[i].hi) <= 0 {
			return i
		}
	}
	panic(fmt.Sprintf("nobody owns %v", hash))
}

// visible reports whether requests can name a shard: closed ones until their records have expired
// (AWS, "Resharding a Stream").
func (st *modelStream) visible(index int) bool {
	return index >= 0 && index < len(st.shards) && !st.shards[index].gone
}

// find returns the index of the shard with that id, -1 if there is none.
func (st *modelStream) find(id string) int {
	for i := range st.shards {
		if shardID(i) == id {
			return i
		}
	}
	return -1
}

// children are the shards that a shard was split or merged into.
func (st *modelStream) children(parent int) (children []string) {
	for i, sh := range st.shards {
		if slices.Contains(sh.parents, parent) && !sh.gone {
			children = append(children, shardID(i))
		}
	}
	return children
}

// replace closes parents and opens shards over ranges in their place.
func (st *modelStream) replace(now time.Time, parents []int, opened []*modelShard) {
	for _, i := range parents {
		st.shards[i].closed = now
	}
	for _, sh := range opened {
		sh.parents, sh.opened = parents, now
		st.shards = append(st.shards, sh)
	}
}

// filter returns the ids of the shards that ListShards returns (AWS, "ShardFilter"). A time before
// the trim horizon means the horizon.
func (st *modelStream) filter(kind string, at time.Time, after string, now time.Time) []string {
	horizon := now.Add(-st.retention)
	if horizon.Before(st.created) {
		horizon = st.created
	}
	if at.Before(horizon) || kind == "AT_TRIM_HORIZON" {
		at = horizon
	}
	ids := []string{}
	for i, sh := range st.shards {
		open := sh.closed.IsZero()
		var in bool
		switch kind {
		case "", "FROM_TRIM_HORIZON":
			in = true
		case "AFTER_SHARD_ID":
			in = shardID(i) > after
		case "AT_LATEST":
			in = open
		case "AT_TRIM_HORIZON", "AT_TIMESTAMP":
			in = !sh.opened.After(at) && (open || !sh.closed.Before(at))
		case "FROM_TIMESTAMP":
			in = open || !sh.closed.Before(at)
		}
		if in && !sh.gone {
			ids = append(ids, shardID(i))
		}
	}
	return ids
}

// firstAt is the index of the first record that arrived at a time or later, the number of all
// if there is none (AWS, "GetShardIterator", AT_TIMESTAMP).
func (sh *modelShard) firstAt(at time.Time) int {
	i := slices.IndexFunc(sh.records, func(r modelRecord) bool { return !r.arrival.Before(at) })
	if i < 0 {
		return len(sh.records)
	}
	return i
}

// last is the largest sequence number of the shard and its ancestors, "" before the first.
func (st *modelStream) last(index int) (last string) {
	sh := st.shards[index]
	for _, parent := range sh.parents {
		if number := st.last(parent); compareNumbers(number, last) > 0 {
			last = number
		}
	}
	if n := len(sh.records); n > 0 && compareNumbers(sh.records[n-1].number, last) > 0 {
		last = sh.records[n-1].number
	}
	return last
}

// compareNumbers orders decimal numbers without leading zeros.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
