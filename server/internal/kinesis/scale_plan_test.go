package kinesis

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// uneven draws ranges that tile the key space, and may be as narrow as one key.
func uneven(t *rapid.T) []keyspace.Range {
	ranges := []keyspace.Range{keyspace.All()}
	if rapid.Bool().Draw(t, "from equal ones") {
		ranges = keyspace.Uniform(rapid.IntRange(1, 40).Draw(t, "equal"))
	}
	for range rapid.IntRange(0, 30).Draw(t, "cuts") {
		i := rapid.IntRange(0, len(ranges)-1).Draw(t, "cut")
		r := ranges[i]
		at := keyspace.Key{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
		switch rapid.IntRange(0, 2).Draw(t, "where") {
		case 0: // at the edge
			at = r.Start.Add(keyspace.Key{Lo: rapid.Uint64Range(1, 2*nearEnough).Draw(t, "off")})
		case 1:
			at = r.Middle()
		}
		if r.Start.Less(at) && !r.End.Less(at) {
			low, high := r.SplitAt(at)
			ranges = append(ranges[:i], append([]keyspace.Range{low, high}, ranges[i+1:]...)...)
		}
	}
	return ranges
}

// take takes the steps; each must be a legal split or merge of existing pieces. It returns the
// resulting ranges, by hash key, with each one's depth below the first.
func take(t rapidOrTesting, open []keyspace.Range, steps []catalogue.Step) ([]keyspace.Range, []int) {
	t.Helper()
	pieces := append([]keyspace.Range{}, open...)
	depth := append([]int{}, make([]int, len(pieces))...)
	gone := append([]bool{}, make([]bool, len(pieces))...)
	for i, s := range steps {
		deepest := 0
		for _, piece := range s.From {
			if piece < 0 || piece >= len(pieces) || gone[piece] {
				t.Fatalf("step %d: piece %d is not there", i, piece)
			}
			gone[piece] = true
			deepest = max(deepest, depth[piece])
		}
		switch {
		case len(s.From) == 1 && len(s.To) == 2:
			parent, at := pieces[s.From[0]], s.To[1].Start
			low, high := parent.SplitAt(at)
			if s.To[0] != low || s.To[1] != high {
				t.Fatalf("step %d: %v is no split of %v", i, s.To, parent)
			}
			if !parent.Start.Add(keyspace.Key{Lo: 1}).Less(at) || !at.Less(parent.End) {
				t.Fatalf("step %d: SplitShard would refuse to split %v at %v", i, parent, at)
			}
		case len(s.From) == 2 && len(s.To) == 1:
			a, b := pieces[s.From[0]], pieces[s.From[1]]
			if !a.Adjacent(b) || a.Join(b) != s.To[0] {
				t.Fatalf("step %d: %v is no merge of %v and %v", i, s.To, a, b)
			}
		default:
			t.Fatalf("step %d is neither a split nor a merge: %v", i, s)
		}
		for _, r := range s.To {
			pieces, depth, gone = append(pieces, r), append(depth, deepest+1), append(gone, false)
		}
	}
	var left []keyspace.Range
	var levels []int
	for start := (keyspace.Key{}); ; {
		at := -1
		for i, r := range pieces {
			if !gone[i] && r.Start == start {
				at = i
			}
		}
		if at < 0 {
			t.Fatalf("nothing starts at %v", start)
		}
		left, levels = append(left, pieces[at]), append(levels, depth[at])
		if pieces[at].End == keyspace.Max() {
			return left, levels
		}
		start = pieces[at].End.Add(keyspace.Key{Lo: 1})
	}
}

type rapidOrTesting interface {
	Helper()
	Fatalf(format string, args ...any)
}

// equal reports whether the ranges are the n equal ones, within nearEnough.
func equal(ranges []keyspace.Range, n int) bool {
	want := keyspace.Uniform(n)
	if len(ranges) != n || keyspace.Tiles(ranges) != nil {
		return false
	}
	for i, r := range ranges {
		if (keyspace.Key{Lo: nearEnough}).Less(distance(r.Start, want[i].Start)) {
			return false
		}
	}
	return true
}

// nearEnough is the distance from an equal bound, in hash keys, within which a bound may stay.
const nearEnough = 1 << 20

func distance(a, b keyspace.Key) keyspace.Key {
	if a.Less(b) {
		return b.Sub(a)
	}
	return a.Sub(b)
}

func stepsTo(t rapidOrTesting, open []keyspace.Range, n int) []catalogue.Step {
	t.Helper()
	steps, err := planScale(open, n)
	if err != nil {
		t.Fatalf("%v to %d: %v", open, n, err)
	}
	return steps
}

func TestPlanScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		open := uneven(t)
		n := rapid.IntRange(1, 100).Draw(t, "n")
		steps := stepsTo(t, open, n)
		left, levels := take(t, open, steps)
		if !equal(left, n) {
			t.Fatalf("%v became %v, want %d equal ranges", open, left, n)
		}
		// Every step moves one bound: there cannot be fewer.
		kept := 0
		for _, r := range left[1:] {
			for _, old := range open[1:] {
				if old.Start == r.Start {
					kept++
				}
			}
		}
		if want := n - 1 - kept + len(open) - 1 - kept; len(steps) != want {
			t.Fatalf("%v to %d in %d steps, want %d", open, n, len(steps), want)
		}
		// The tree is balanced: as deep as a split into all and a merge of all.
		most := bits.Len(uint(n)) + bits.Len(uint(len(open)+n))
		for i, level := range levels {
			if level > most {
				t.Fatalf("%v is %d steps below the first, %d are enough", left[i], level, most)
			}
		}
		if again := stepsTo(t, left, n); len(again) != 0 {
			t.Fatalf("equal ranges take %v to become equal", again)
		}
	})
}

// Doubling is n splits and halving n merges, whatever n; and a number that is no power of two does
// not drift.
func TestPlanScaleDoubles(t *testing.T) {
	for n := 1; n <= 130; n++ {
		ranges := keyspace.Uniform(n)
		for _, to := range []int{2 * n, n, 2 * n, 4 * n, 8 * n, 4 * n, 2 * n, n} {
			splits, merges := max(0, to-len(ranges)), max(0, len(ranges)-to)
			steps := stepsTo(t, ranges, to)
			if len(steps) != splits+merges {
				t.Fatalf("%d to %d in %d steps", len(ranges), to, len(steps))
			}
			if ranges, _ = take(t, ranges, steps); !equal(ranges, to) {
				t.Fatalf("%d became %v", n, ranges)
			}
		}
	}
	// With powers of two the bounds are CreateStream's to the key.
	left, _ := take(t, keyspace.Uniform(4), stepsTo(t, keyspace.Uniform(4), 8))
	if fmt.Sprint(left) != fmt.Sprint(keyspace.Uniform(8)) {
		t.Errorf("4 to 8 is %v", left)
	}
}

func TestPlanScaleLarge(t *testing.T) {
	ranges := keyspace.Uniform(6000)
	steps := stepsTo(t, ranges, catalogue.MaxShards)
	pieces := len(ranges)
	for _, s := range steps {
		pieces += len(s.To) - len(s.From)
	}
	if pieces != catalogue.MaxShards {
		t.Errorf("6000 became %d", pieces)
	}
}

// The steps are a format of the log, and their order decides the children's sequence numbers: both
// are those of the versions before.
func TestPlanScaleStaysTheSame(t *testing.T) {
	text, err := json.Marshal(stepsTo(t, keyspace.Uniform(2), 3))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"from":[0],"to":[` +
		`{"Start":{"Hi":0,"Lo":0},"End":{"Hi":6148914691236517205,"Lo":6148914691236517204}},` +
		`{"Start":{"Hi":6148914691236517205,"Lo":6148914691236517205},` +
		`"End":{"Hi":9223372036854775807,"Lo":18446744073709551615}}]},`
	if !strings.HasPrefix(string(text), want) || !strings.HasSuffix(string(text), `]}]`) {
		t.Errorf("2 to 3: %s", text)
	}
	sum := sha256.New()
	for open := 1; open <= 24; open++ {
		ranges := keyspace.Uniform(open)
		for i := range open { // and with narrow shards beside wide ones
			low, high := ranges[i].SplitAt(ranges[i].Start.Add(keyspace.Key{Lo: uint64(i) << 18}.
				Add(keyspace.Key{Lo: 2})))
			ranges[i] = high
			ranges = append(ranges, low)
		}
		for _, layout := range [][]keyspace.Range{keyspace.Uniform(open), keyspace.Sorted(ranges)} {
			for n := 1; n <= 48; n++ {
				for _, step := range stepsTo(t, layout, n) {
					fmt.Fprintln(sum, open, n, step)
				}
			}
		}
	}
	const wantSum = "74c081e8481ee992b29b88db09a75003d5f66e67b1eb184f4665845f3489fe38"
	if got := hex.EncodeToString(sum.Sum(nil)); got != wantSum {
		t.Errorf("the steps have changed: their sum is %s", got)
	}
}

func TestPlanScaleRefuses(t *testing.T) {
	if steps, err := planScale(keyspace.Uniform(2), 0); err == nil {
		t.Errorf("to no shards: %v", steps)
	}
}
