package runnel_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
)

func positions() *rapid.Generator[runnel.Position] {
	return rapid.Custom(func(t *rapid.T) runnel.Position {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return runnel.Start()
		case 1:
			return runnel.End()
		default:
			return runnel.Position{
				Sequence: runnel.SequenceNumber(rapid.StringMatching(`[1-9]\d{0,128}`).Draw(t, "number")),
				Sub:      rapid.Int64Range(0, 4294967295).Draw(t, "sub"),
			}
		}
	})
}

// Sequence numbers order as the integers that they are.
func TestSequenceNumberOrder(t *testing.T) {
	number := rapid.StringMatching(`0|([1-9]\d{0,128})`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		got := runnel.SequenceNumber(a).Compare(runnel.SequenceNumber(b))
		if got != x.Cmp(y) {
			t.Fatalf("Compare(%s, %s) = %d, want %d", a, b, got, x.Cmp(y))
		}
	})
}

// Keys order bytewise as positions do, and read back.
func TestPositionSortText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := positions().Draw(t, "a"), positions().Draw(t, "b")
		if got, want := strings.Compare(a.SortText(), b.SortText()), a.Compare(b); got != want {
			t.Fatalf("%s and %s: the texts compare %d, the positions %d", a.SortText(), b.SortText(), got, want)
		}
		if back, err := runnel.ParsePosition(a.SortText()); err != nil || back != a {
			t.Fatalf("ParsePosition(%q) = %v, %v", a.SortText(), back, err)
		}
	})
}

func FuzzParsePosition(f *testing.F) {
	f.Add("001-0-0000000000")
	f.Add("056-49590338271490256608559692538361571095921575989136588898-0000000003")
	f.Add("end")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := runnel.ParsePosition(text); err == nil && p.SortText() != text {
			t.Fatalf("ParsePosition(%q) = %v, whose SortText is %q", text, p, p.SortText())
		}
	})
}
