package server_test

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"pgregory.net/rapid"
)

// The model-based test's resharding, and the listing of shards.

// anyShard draws a shard, mostly an open one, by its index; there may be no shard with that index.
func (m *machine) anyShard(st *modelStream) int {
	if rapid.IntRange(0, 9).Draw(m.T, "any") == 0 {
		return rapid.IntRange(0, len(st.shards)).Draw(m.T, "shard")
	}
	return rapid.SampledFrom(st.open()).Draw(m.T, "open shard")
}

// shardFault returns why a shard cannot be split or merged.
func (st *modelStream) shardFault(index int) []string {
	switch {
	case !st.visible(index):
		return []string{notFound}
	case !st.shards[index].closed.IsZero():
		return []string{invalid}
	default:
		return nil
	}
}

// refused adds the stream's state to a request's faults, if it is not ACTIVE; no fault means
// success.
func (m *machine) refused(st *modelStream, faults []string) []string {
	if st.status(m.now) != "ACTIVE" {
		faults = append(faults, inUse)
	}
	if len(faults) == 0 {
		return []string{""}
	}
	return faults
}

// split: the new starting hash key must be inside of the shard, and above its start by more than
// one (AWS, "SplitShard", and AWS's error).
func (m *machine) split() {
	st, there := m.some()
	if !there {
		return
	}
	index := m.anyShard(st)
	faults := st.shardFault(index)
	at := m.anyHash()
	var sh *modelShard
	if len(faults) == 0 {
		sh = st.shards[index]
		at = m.inside(sh)
		if at.Cmp(new(big.Int).Add(sh.lo, big.NewInt(1))) <= 0 || at.Cmp(sh.hi) >= 0 {
			faults = append(faults, invalid)
		}
	}
	_, err := m.client.SplitShard(m.ctx, &kinesis.SplitShardInput{
		StreamName: aws.String(st.name), ShardToSplit: aws.String(shardID(index)),
		NewStartingHashKey: aws.String(at.String()),
	})
	if m.expect(fmt.Sprintf("split %s %d", st.name, index), err, m.refused(st, faults)...) {
		below := new(big.Int).Sub(at, big.NewInt(1))
		m.later(st, func() {
			st.replace(m.now, []int{index},
				[]*modelShard{{lo: sh.lo, hi: below}, {lo: at, hi: sh.hi}})
		})
	}
}

// inside draws a hash key in or around a shard.
func (m *machine) inside(sh *modelShard) *big.Int {
	width := new(big.Int).Sub(sh.hi, sh.lo)
	at := new(big.Int)
	switch rapid.IntRange(0, 7).Draw(m.T, "place") {
	case 0:
		at.Add(sh.lo, big.NewInt(int64(rapid.IntRange(0, 2).Draw(m.T, "off"))))
	case 1:
		at.Sub(sh.hi, big.NewInt(int64(rapid.IntRange(0, 2).Draw(m.T, "off"))))
	default:
		part := big.NewInt(int64(rapid.IntRange(1, 99).Draw(m.T, "part")))
		at.Add(sh.lo, at.Div(at.Mul(width, part), big.NewInt(100)))
	}
	if at.Sign() < 0 {
		return new(big.Int)
	}
	return at
}

// merge: two shards with ranges that form a contiguous set (AWS, "MergeShards"), the lower one
// first (kinesalite, test/mergeShards.js).
func (m *machine) merge() {
	st, there := m.some()
	if !there {
		return
	}
	first, second := m.anyShard(st), m.anyShard(st)
	if open := st.open(); len(open) > 1 && rapid.IntRange(0, 9).Draw(m.T, "apart") > 0 {
		i := rapid.IntRange(0, len(open)-2).Draw(m.T, "pair")
		first, second = open[i], open[i+1]
		if rapid.Bool().Draw(m.T, "turned") {
			first, second = second, first
		}
	}
	faults := append(st.shardFault(first), st.shardFault(second)...)
	var joined *modelShard
	if len(faults) == 0 {
		low, high := st.shards[first], st.shards[second]
		joined = &modelShard{lo: low.lo, hi: high.hi}
		if first == second || new(big.Int).Add(low.hi, big.NewInt(1)).Cmp(high.lo) != 0 {
			faults = append(faults, invalid)
		}
	}
	_, err := m.client.MergeShards(m.ctx, &kinesis.MergeShardsInput{
		StreamName: aws.String(st.name), ShardToMerge: aws.String(shardID(first)),
		AdjacentShardToMerge: aws.String(shardID(second)),
	})
	what := fmt.Sprintf("merge %s %d and %d", st.name, first, second)
	if m.expect(what, err, m.refused(st, faults)...) {
		m.later(st, func() { st.replace(m.now, []int{first, second}, []*modelShard{joined}) })
	}
}

// scale asks for another number of shards: up to twice the present number, and down to half of it
// (AWS, "UpdateShardCount"). The server chooses the steps in between: the model learns the new
// shards from the list, and checks that they are a family.
func (m *machine) scale() {
	st, there := m.some()
	if !there {
		return
	}
	open := len(st.open())
	target := rapid.IntRange(max(1, (open+1)/2), min(2*open, 6)).Draw(m.T, "target")
	if target == open || m.scaled(st) {
		return
	}
	got, err := m.client.UpdateShardCount(m.ctx, &kinesis.UpdateShardCountInput{
		StreamName: aws.String(st.name), TargetShardCount: aws.Int32(int32(target)),
		ScalingType: types.ScalingTypeUniformScaling,
	})
	what := fmt.Sprintf("scale %s from %d to %d", st.name, open, target)
	if !m.expect(what, err, m.refused(st, nil)...) {
		return
	}
	if *got.CurrentShardCount != int32(open) || *got.TargetShardCount != int32(target) {
		m.Fatalf("%s: from %d to %d", what, *got.CurrentShardCount, *got.TargetShardCount)
	}
	st.scalings = append(st.scalings, m.now)
	m.later(st, func() { m.rescaled(st, what, target) })
}

// later begins UPDATING, with a change of the stream's shards at the end.
func (m *machine) later(st *modelStream, reshard func()) {
	st.updating, st.pending = m.now.Add(delay), reshard
}

// rescaled learns the shards after a scaling from the server.
func (m *machine) rescaled(st *modelStream, what string, target int) {
	for _, sh := range m.list(st, &kinesis.ListShardsInput{StreamName: aws.String(st.name)}) {
		if *sh.ShardId >= shardID(len(st.shards)) {
			m.adopt(st, sh)
		}
	}
	want := uniform(target)
	for i, index := range st.open() {
		off := new(big.Int).Sub(st.shards[index].lo, want[min(i, target-1)])
		if off.CmpAbs(nearly) > 0 {
			m.Fatalf("%s: open shard %d begins at %v", what, i, st.shards[index].lo)
		}
	}
	if len(st.open()) != target {
		m.Fatalf("%s: %d shards are open", what, len(st.open()))
	}
}

// nearly is the permitted error of a bound: AWS promises shards of equal size, but not to the key.
var nearly = big.NewInt(1 << 20)

// scaled reports whether the stream's scalings of a day are used up.
func (m *machine) scaled(st *modelStream) bool {
	st.scalings = slices.DeleteFunc(st.scalings, func(at time.Time) bool {
		return m.now.Sub(at) > 25*time.Hour
	})
	return len(st.scalings) == 9
}

// changedLate learns from the server when it changed a stream's shards, after a crash that may have
// delayed the change: the server's clock begins a little ahead of the test's. The change lies
// between the end of UPDATING and now, and it closes and opens all of its shards at one time.
func (m *machine) changedLate(st *modelStream) {
	end := st.updating
	parent := slices.IndexFunc(st.shards, func(sh *modelShard) bool { return sh.closed.Equal(end) })
	span := int(time.Since(end) / time.Millisecond)
	lag := sort.Search(span+1, func(lag int) bool {
		after := end.Add(time.Duration(lag+1) * time.Millisecond)
		return !slices.Contains(m.listedFrom(st, after), shardID(parent))
	})
	if lag > span {
		m.Fatalf("%s closes after the present, %d ms late", shardID(parent), lag)
	}
	at := end.Add(time.Duration(lag) * time.Millisecond)
	for _, sh := range st.shards {
		if sh.closed.Equal(end) {
			sh.closed = at
		}
		if sh.opened.Equal(end) {
			sh.opened = at
		}
	}
	m.Logf("the shards of %s changed %d ms late", st.name, lag)
}

// listedFrom returns the shards that the server lists for FROM_TIMESTAMP.
func (m *machine) listedFrom(st *modelStream, at time.Time) (ids []string) {
	got, err := m.client.ListShards(m.ctx, &kinesis.ListShardsInput{
		StreamName: aws.String(st.name), ShardFilter: &types.ShardFilter{
			Type: types.ShardFilterTypeFromTimestamp, Timestamp: aws.Time(at),
		},
	})
	m.expect("list the shards of "+st.name, err, "")
	for _, sh := range got.Shards {
		ids = append(ids, *sh.ShardId)
	}
	return ids
}

// adopt adds a shard to the model that the server has opened by itself. It is the next in order,
// and its parents are there; its siblings come with it or after it.
func (m *machine) adopt(st *modelStream, sh types.Shard) {
	if *sh.ShardId != shardID(len(st.shards)) {
		m.Fatalf("%s after %s", *sh.ShardId, shardID(len(st.shards)-1))
	}
	opened := &modelShard{opened: m.now}
	opened.lo, _ = new(big.Int).SetString(*sh.HashKeyRange.StartingHashKey, 10)
	opened.hi, _ = new(big.Int).SetString(*sh.HashKeyRange.EndingHashKey, 10)
	for _, id := range []*string{sh.ParentShardId, sh.AdjacentParentShardId} {
		if id == nil {
			continue
		}
		parent := st.find(*id)
		if parent < 0 {
			m.Fatalf("%s has the parent %s, which is not there", *sh.ShardId, *id)
		}
		siblings := st.children(parent)
		if st.shards[parent].closed.IsZero() {
			st.shards[parent].closed = m.now
		} else if len(siblings) != 1 || sh.AdjacentParentShardId != nil {
			m.Fatalf("%s is the child of %s, which has %q", *sh.ShardId, *id, siblings)
		}
		opened.parents = append(opened.parents, parent)
	}
	if len(opened.parents) == 0 {
		m.Fatalf("%s has no parent", *sh.ShardId)
	}
	st.shards = append(st.shards, opened)
}

// list lists shards, page by page.
func (m *machine) list(st *modelStream, in *kinesis.ListShardsInput) (shards []types.Shard) {
	if rapid.Bool().Draw(m.T, "paged") {
		in.MaxResults = aws.Int32(int32(rapid.IntRange(1, 3).Draw(m.T, "page")))
	}
	for {
		got, err := m.client.ListShards(m.ctx, in)
		m.expect("list the shards of "+st.name, err, "")
		shards = append(shards, got.Shards...)
		if in.MaxResults != nil && len(got.Shards) > int(*in.MaxResults) {
			m.Fatalf("%d shards on a page of %d", len(got.Shards), *in.MaxResults)
		}
		if got.NextToken == nil {
			return shards
		}
		in = &kinesis.ListShardsInput{NextToken: got.NextToken, MaxResults: in.MaxResults}
	}
}

func (m *machine) listShards() {
	st, there := m.some()
	if !there {
		return
	}
	kind := rapid.SampledFrom(append(types.ShardFilterType("").Values(), "")).Draw(m.T, "filter")
	in := &kinesis.ListShardsInput{StreamName: aws.String(st.name)}
	var at time.Time
	var after string
	if kind != "" {
		in.ShardFilter = &types.ShardFilter{Type: kind}
	}
	switch kind {
	case types.ShardFilterTypeAtTimestamp, types.ShardFilterTypeFromTimestamp:
		at = m.someTime(st)
		in.ShardFilter.Timestamp = aws.Time(at)
	case types.ShardFilterTypeAfterShardId:
		after = shardID(rapid.IntRange(0, len(st.shards)).Draw(m.T, "after"))
		in.ShardFilter.ShardId = aws.String(after)
	}
	var ids []string
	for _, sh := range m.list(st, in) {
		ids = append(ids, *sh.ShardId)
		m.compareShard(st, sh)
	}
	if want := st.filter(string(kind), at, after, m.now); !slices.Equal(ids, want) {
		m.Fatalf("the shards of %s, %s %v %s, are %q, want %q", st.name, kind, at, after, ids, want)
	}
}

// someTime draws a time at which something happened to a shard, or near it.
func (m *machine) someTime(st *modelStream) time.Time {
	sh := rapid.SampledFrom(st.shards).Draw(m.T, "shard")
	at := sh.opened
	if rapid.Bool().Draw(m.T, "closed") && !sh.closed.IsZero() {
		at = sh.closed
	}
	at = at.Add(time.Duration(rapid.IntRange(-1, 1).Draw(m.T, "off")) * time.Millisecond)
	if at.After(m.now) {
		return m.now
	}
	return at
}

// compareShard checks a description, and learns the shard's sequence numbers from it.
func (m *machine) compareShard(st *modelStream, got types.Shard) {
	index := st.find(*got.ShardId)
	if index < 0 {
		m.Fatalf("%s of %s is not there", *got.ShardId, st.name)
	}
	sh := st.shards[index]
	parents := ""
	for _, parent := range sh.parents {
		parents += shardID(parent)
	}
	if told := aws.ToString(got.ParentShardId) + aws.ToString(got.AdjacentParentShardId); told !=
		parents || *got.HashKeyRange.StartingHashKey != sh.lo.String() ||
		*got.HashKeyRange.EndingHashKey != sh.hi.String() {
		m.Fatalf("%s has the parents %q and the range %v; want %q, %v to %v", *got.ShardId, told,
			*got.HashKeyRange, parents, sh.lo, sh.hi)
	}
	start := *got.SequenceNumberRange.StartingSequenceNumber
	end := aws.ToString(got.SequenceNumberRange.EndingSequenceNumber)
	if (sh.start != "" && sh.start != start) || (sh.end != "" && sh.end != end) ||
		(end == "") != sh.closed.IsZero() {
		m.Fatalf("%s has the numbers %s to %q, closed at %v; it had %s to %q", *got.ShardId, start,
			end, sh.closed, sh.start, sh.end)
	}
	sh.start, sh.end = start, end
	for _, parent := range sh.parents {
		for _, below := range []string{st.last(parent), st.shards[parent].end} {
			if compareNumbers(start, below) <= 0 {
				m.Fatalf("%s starts at %s, and a parent has %s", *got.ShardId, start, below)
			}
		}
	}
	if n := len(sh.records); n > 0 && (compareNumbers(sh.records[0].number, start) <= 0 ||
		(end != "" && compareNumbers(sh.records[n-1].number, end) > 0)) {
		m.Fatalf("%s has numbers outside of %s to %s", *got.ShardId, start, end)
	}
}
