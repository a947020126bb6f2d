package allocate_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

var update = flag.Bool("update", false, "write docs/balance.md and docs/balance.svg")

// way is a way to choose keys one after the other; its first keys are those for n = 0, 1, ...
type way struct {
	name string
	key  func(n uint64) keyspace.Key
}

// ways are the methods that docs/balance.md compares.
func ways(t testing.TB) []way {
	return []way{
		{"bit reversal", func(n uint64) keyspace.Key {
			return nth(t, allocate.Space{}, keyspace.Key{Lo: n})
		}},
		{"MD5 of 1, 2, 3, …", func(n uint64) keyspace.Key {
			return keyspace.Of(strconv.FormatUint(n+1, 10))
		}},
		{"left halves first", leftHalvesFirst},
		{"left to right", leftToRight},
	}
}

// level returns how deep the n-th middle is when levels are filled one after the other, from 0
// on, and its number in the level.
func level(n uint64) (depth uint, index uint64) {
	for index = n; index >= 1<<depth; depth++ {
		index -= 1 << depth
	}
	return depth, index
}

// odd returns the middle of that depth with that number, from the left.
func odd(depth uint, number uint64) keyspace.Key {
	return keyspace.Key{Hi: (2*number + 1) << (63 - depth)}
}

// leftToRight fills each level of the tree of halves from the left to the right.
func leftToRight(n uint64) keyspace.Key { return odd(level(n)) }

// leftHalvesFirst fills each level in two passes from the left to the right: the left halves of
// all middles above, then the right halves.
func leftHalvesFirst(n uint64) keyspace.Key {
	depth, index := level(n)
	if half := uint64(1) << depth >> 1; index >= half {
		return odd(depth, 2*(index-half)+min(half, 1))
	}
	return odd(depth, 2*index)
}

// The closed forms, scaled to a space of 128.
func TestClosedForms(t *testing.T) {
	for _, c := range []struct {
		name string
		key  func(uint64) keyspace.Key
		want []uint64
	}{
		{"left to right", leftToRight, []uint64{64, 32, 96, 16, 48, 80, 112, 8, 24, 40}},
		{"left halves first", leftHalvesFirst, []uint64{
			64, 32, 96, 16, 80, 48, 112, 8, 40, 72, 104, 24, 56, 88, 120,
		}},
	} {
		for n, want := range c.want {
			if got := c.key(uint64(n)); got.Hi>>57 != want || got.Hi<<7 != 0 || got.Lo != 0 {
				t.Errorf("%s: key number %d is %d of 128, want %d", c.name, n, got.Hi>>57, want)
			}
		}
	}
}

// perShard returns how many of the first n keys fall on each of the shards.
func perShard(key func(uint64) keyspace.Key, n uint64, shards int) []int {
	counts, ranges := make([]int, shards), keyspace.Uniform(shards)
	for i := range n {
		counts[shardOf(ranges, key(i))]++
	}
	return counts
}

func shardOf(ranges []keyspace.Range, k keyspace.Key) int {
	at, _ := slices.BinarySearchFunc(ranges, k, func(r keyspace.Range, k keyspace.Key) int {
		return r.End.Compare(k)
	})
	return at
}

// Of few keys, MD5 puts many more on one of two shards than on the other.
func TestMD5OfFewKeys(t *testing.T) {
	md5 := ways(t)[1].key
	for n, want := range map[uint64][]int{14: {3, 11}, 24: {9, 15}, 49: {23, 26}, 99: {45, 54}} {
		if got := perShard(md5, n, 2); !slices.Equal(got, want) {
			t.Errorf("the names 1 to %d: %d on two shards, want %d", n, got, want)
		}
	}
}

// 23 keys from the left to the right: 15 on one half. In the order of Nth, 11 and 12.
func TestSkewOf23Keys(t *testing.T) {
	if got := perShard(leftToRight, 23, 2); !slices.Equal(got, []int{15, 8}) {
		t.Errorf("left to right: %d", got)
	}
	if got := perShard(ways(t)[0].key, 23, 2); !slices.Equal(got, []int{11, 12}) {
		t.Errorf("bit reversal: %d", got)
	}
}

const (
	mostKeys   = 4000
	mostShards = 100
)

// worst is the largest imbalance of a way over a number of shards, for 1 to mostKeys keys.
type worst struct {
	apart    int     // keys on the fullest shard less those on the emptiest
	apartAt  int     // keys there were then, the fewest
	peakMean float64 // the fullest shard over the mean, from four keys a shard on
}

func measure(keys []keyspace.Key, shards int) (w worst) {
	counts, ranges := make([]int, shards), keyspace.Uniform(shards)
	for i, k := range keys {
		counts[shardOf(ranges, k)]++
		n, most := i+1, slices.Max(counts)
		if apart := most - slices.Min(counts); apart > w.apart {
			w.apart, w.apartAt = apart, n
		}
		if n >= 4*shards {
			w.peakMean = max(w.peakMean, float64(most*shards)/float64(n))
		}
	}
	return w
}

// measured is a way with its worst for each number of shards from 2 on.
type measured struct {
	way
	of [mostShards + 1]worst
}

func measureAll(t testing.TB) []measured {
	var all []measured
	for _, w := range ways(t) {
		m := measured{way: w}
		keys := make([]keyspace.Key, mostKeys)
		for n := range keys {
			keys[n] = w.key(uint64(n))
		}
		for shards := 2; shards <= mostShards; shards++ {
			m.of[shards] = measure(keys, shards)
		}
		all = append(all, m)
	}
	return all
}

// worstOf is the worst of several worsts.
func worstOf(all []worst) (w worst) {
	for _, one := range all {
		if one.apart > w.apart {
			w.apart, w.apartAt = one.apart, one.apartAt
		}
		w.peakMean = max(w.peakMean, one.peakMean)
	}
	return w
}

// TestBalancePage measures the ways, and checks that docs/balance.md and docs/balance.svg have the
// results.
func TestBalancePage(t *testing.T) {
	all := measureAll(t)
	for shards := 2; shards <= mostShards; shards *= 2 {
		if w := all[0].of[shards]; w.apart != 1 {
			t.Errorf("bit reversal: %d shards are %d keys apart", shards, w.apart)
		}
	}
	for file, text := range map[string]string{
		"../../docs/balance.md":  balancePage(t, all),
		"../../docs/balance.svg": balanceChart(all),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, []byte(text)) {
			t.Errorf("%s is out of date (%v): go test ./keyspace/allocate -run TestBalancePage -update",
				file, err)
		}
	}
}

// table writes a row for each of some numbers of shards, and one for all, with a cell of each way.
func table(all []measured, cell func(worst) string) string {
	text := "| shards |"
	for _, m := range all {
		text += " " + m.name + " |"
	}
	text += "\n|---|" + string(bytes.Repeat([]byte("---|"), len(all))) + "\n"
	row := func(head string, of func(measured) worst) {
		text += "| " + head + " |"
		for _, m := range all {
			text += " " + cell(of(m)) + " |"
		}
		text += "\n"
	}
	for _, shards := range []int{2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 50, 64, 100} {
		row(strconv.Itoa(shards), func(m measured) worst { return m.of[shards] })
	}
	row("any of 2 to 100", func(m measured) worst { return worstOf(m.of[2:]) })
	return text
}

// apart and ratio are the cells of the two tables.
func apart(w worst) string { return strconv.Itoa(w.apart) }
func ratio(w worst) string { return fmt.Sprintf("%.2f", w.peakMean) }
