package kinesis

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/shardid"
)

// The four numbers are printed in AWS's documentation of a split.
func TestNumberExamples(t *testing.T) {
	for text, want := range map[string]sequenceNumber{
		"49591109616310805454912940618220665305004298836394377218": {
			version: 2, created: 1544938027, arrival: 1544938027,
		},
		"49591109616321955827512205929790224238321098822804045826": {
			version: 2, created: 1544938027, arrival: 1544939343, index: endIndex,
		},
		"49591110086254409023548762079802856464523311355470544914": {
			version: 2, created: 1544939344, arrival: 1544939344, shard: 1,
		},
		"49591110086276709768747292702944392182795959716976525346": {
			version: 2, created: 1544939344, arrival: 1544939344, shard: 2,
		},
	} {
		got, err := parseNumber(text)
		if err != nil || got != want {
			t.Errorf("parseNumber(%s) = %+v, %v; want %+v", text, got, err, want)
		}
		if want.String() != text {
			t.Errorf("%+v is written as %s, want %s", want, want, text)
		}
	}
}

func TestNumberRefuses(t *testing.T) {
	two185 := new(big.Int).Lsh(big.NewInt(1), 185)
	good := sequenceNumber{created: 1544938027, shard: 3, index: 9, arrival: 1544938027}.String()
	bad, _ := new(big.Int).SetString(good, 10)
	nibble := new(big.Int).Add(bad, new(big.Int).Lsh(big.NewInt(1), 144))
	zeros := new(big.Int).Add(bad, new(big.Int).Lsh(big.NewInt(1), 72))
	version := new(big.Int).Add(bad, big.NewInt(1))
	for _, text := range []string{
		"", "-1", "01", "x", "1x", " 1", two185.String(), "1" + two185.String(),
		new(big.Int).Lsh(two185, 1).String(), nibble.String(), zeros.String(), version.String(),
		sequenceNumber{created: createdLimit}.String(),
		sequenceNumber{shard: 1 << 31}.String(),
		sequenceNumber{index: 1 << 63}.String(),
	} {
		if n, err := parseNumber(text); err == nil {
			t.Errorf("parseNumber(%s) = %+v, want an error", text, n)
		}
	}
}

func TestOldNumbers(t *testing.T) {
	for text, want := range map[string]sequenceNumber{
		"0": {}, "5": {shard: 5},
	} {
		if got, err := parseNumber(text); err != nil || got != want {
			t.Errorf("parseNumber(%s) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func numbers() *rapid.Generator[sequenceNumber] {
	return rapid.Custom(func(t *rapid.T) sequenceNumber {
		return sequenceNumber{
			version: 2,
			created: rapid.Int64Range(0, createdLimit-1).Draw(t, "created"),
			shard:   rapid.Uint32Range(0, shardid.Max).Draw(t, "shard"),
			index:   rapid.Uint64Range(0, endIndex).Draw(t, "index"),
			arrival: rapid.Int64Range(0, 1<<36-1).Draw(t, "arrival"),
		}
	})
}

// A number parses into its original parts, and equals the layout written with math/big.
func TestNumberRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := numbers().Draw(t, "n")
		text := n.String()
		want := new(big.Int)
		for _, part := range []struct {
			value uint64
			width uint
		}{
			{2, 4},
			{uint64(n.created), 36},
			{uint64(n.shard & 15), 4},
			{n.index, 64},
			{0, 8},
			{uint64(n.arrival), 36},
			{uint64(n.shard), 32},
			{2, 4},
		} {
			want.Lsh(want, part.width).Or(want, new(big.Int).SetUint64(part.value))
		}
		if text != want.String() || len(text) != 56 {
			t.Fatalf("%+v is written as %s, want %s", n, text, want)
		}
		if back, err := parseNumber(text); err != nil || back != n {
			t.Fatalf("parseNumber(%s) = %+v, %v; want %+v", text, back, err, n)
		}
	})
}

// Within a shard a number grows with the index whatever the arrival, the end is above all,
// and a shard created later is above one created earlier.
func TestNumberOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := numbers().Draw(t, "a")
		a.index = min(a.index, endIndex-1)
		b := a
		b.index = rapid.Uint64Range(a.index+1, endIndex).Draw(t, "index")
		b.arrival = rapid.Int64Range(0, 1<<36-1).Draw(t, "arrival")
		if a.String() >= b.String() {
			t.Fatalf("%s (%+v) is not below %s (%+v)", a, a, b, b)
		}
		child := numbers().Draw(t, "child")
		a.created = min(a.created, createdLimit-2)
		a.index = endIndex
		child.created = a.created + 1
		if a.String() >= child.String() {
			t.Fatalf("the parent's end %s is not below the child's %s", a, child)
		}
	})
}

func FuzzParseNumber(f *testing.F) {
	f.Add("0")
	f.Add("49591109616310805454912940618220665305004298836394377218")
	f.Add("49591109616321955827512205929790224238321098822804045826")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseNumber(text)
		if err == nil && n.version == numberVersion && n.String() != text {
			t.Fatalf("parseNumber(%q) = %+v, which is written as %s", text, n, n)
		}
	})
}

func BenchmarkNumberAppend(b *testing.B) {
	n := sequenceNumber{created: 1544938027, shard: 3, index: 123456789, arrival: 1544939344}
	buf := make([]byte, 0, 64)
	for b.Loop() {
		buf = n.appendText(buf[:0])
	}
}
