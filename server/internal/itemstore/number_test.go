package itemstore

import (
	"bytes"
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseNumber(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, test := range []struct {
		text, want string
		err        error
	}{
		{text: "0", want: "0"},
		{text: "-0", want: "0"},
		{text: "0e999999999999999999999", want: "0"},
		{text: "+1", want: "1"},
		{text: "007", want: "7"},
		{text: "1.0", want: "1"},
		{text: "1.", want: "1"},
		{text: ".5", want: "0.5"},
		{text: "-12.340", want: "-12.34"},
		{text: "1e3", want: "1000"},
		{text: "1E+3", want: "1000"},
		{text: "1.25e-2", want: "0.0125"},
		{text: "100e-2", want: "1"},
		{text: nines, want: nines},
		{text: nines + "000", want: nines + "000"},
		{text: nines + "1", err: ErrNumberDigits},
		{text: "1E125", want: "1" + strings.Repeat("0", 125)},
		{text: "9.9E+125", want: "99" + strings.Repeat("0", 124)},
		{text: "1E126", err: ErrNumberOverflow},
		{text: "1E-130", want: "0." + strings.Repeat("0", 129) + "1"},
		{text: "-1E-131", err: ErrNumberUnderflow},
		{text: "1e99999999999999999999", err: ErrNumberOverflow},
		{text: "1e-99999999999999999999", err: ErrNumberUnderflow},
		{text: "", err: ErrNumberSyntax},
		{text: "-", err: ErrNumberSyntax},
		{text: ".", err: ErrNumberSyntax},
		{text: "1e", err: ErrNumberSyntax},
		{text: "1e+", err: ErrNumberSyntax},
		{text: "1 ", err: ErrNumberSyntax},
		{text: "0x1", err: ErrNumberSyntax},
		{text: "1_000", err: ErrNumberSyntax},
		{text: "NaN", err: ErrNumberSyntax},
		{text: "Infinity", err: ErrNumberSyntax},
		{text: "--1", err: ErrNumberSyntax},
		{text: "1.2.3", err: ErrNumberSyntax},
	} {
		got, err := ParseNumber(test.text)
		if !errors.Is(err, test.err) {
			t.Errorf("%q: error %v, want %v", test.text, err, test.err)
		}
		if test.err == nil && got.String() != test.want {
			t.Errorf("%q: %s, want %s", test.text, got, test.want)
		}
	}
}

// numbers draws numbers of all magnitudes, small integers and zero among them.
func numbers() *rapid.Generator[Number] {
	return rapid.Custom(func(t *rapid.T) Number {
		if rapid.Bool().Draw(t, "small") {
			return NumberOf(rapid.Int64Range(-1000, 1000).Draw(t, "integer"))
		}
		digits := rapid.StringMatching(`[0-9]{1,38}`).Draw(t, "digits")
		exp := rapid.IntRange(minExp+40, maxExp).Draw(t, "exponent")
		number, err := newNumber(rapid.Bool().Draw(t, "negative"), digits, exp)
		if err != nil {
			t.Fatal(err)
		}
		return number
	})
}

func (n Number) rat(t rapid.TB) *big.Rat {
	value, ok := new(big.Rat).SetString(n.String())
	if !ok {
		t.Fatalf("not a rational: %s", n)
	}
	return value
}

func TestNumberIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers().Draw(t, "a"), numbers().Draw(t, "b")
		if again, err := ParseNumber(a.String()); err != nil || again != a {
			t.Fatalf("%s reads as %s, %v", a, again, err)
		}
		if got, want := a.Compare(b), a.rat(t).Cmp(b.rat(t)); got != want {
			t.Fatalf("compare %s and %s: %d, want %d", a, b, got, want)
		}
		if (a == b) != (a.Compare(b) == 0) {
			t.Fatalf("%s and %s: == is not equality", a, b)
		}
		sum, err := a.Add(b)
		exact := new(big.Rat).Add(a.rat(t), b.rat(t))
		if err == nil && sum.rat(t).Cmp(exact) != 0 {
			t.Fatalf("%s + %s = %s", a, b, sum)
		}
		if err != nil {
			if !errors.Is(err, ErrNumberDigits) && !errors.Is(err, ErrNumberOverflow) {
				t.Fatalf("%s + %s: %v", a, b, err)
			}
			return
		}
		if back, err := sum.Sub(b); err == nil && back != a {
			t.Fatalf("%s + %s - %s = %s", a, b, b, back)
		}
	})
}

func TestNumberBytesHaveTheNumbersOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers().Draw(t, "a"), numbers().Draw(t, "b")
		left, right := appendNumber(nil, a), appendNumber(nil, b)
		if got, want := bytes.Compare(left, right), a.Compare(b); got != want {
			t.Fatalf("%s %x and %s %x: %d, want %d", a, left, b, right, got, want)
		}
	})
}

func TestAddAtTheLimits(t *testing.T) {
	for _, test := range []struct {
		a, b, want string
		err        error
	}{
		{a: "1", b: "-1", want: "0"},
		{a: "0.1", b: "0.2", want: "0.3"},
		{a: "999999999999999999", b: "1", want: "1000000000000000000"},
		{a: "999999999999999999", b: "999999999999999999", want: "1999999999999999998"},
		{a: "-999999999999999999", b: "-999999999999999999", want: "-1999999999999999998"},
		{a: "9.9E125", b: "9.9E125", err: ErrNumberOverflow},
		{a: "1E38", b: "1", err: ErrNumberDigits},
		{a: "1E37", b: "1", want: "1" + strings.Repeat("0", 36) + "1"},
		{a: "1.1E-130", b: "-1E-130", err: ErrNumberUnderflow},
	} {
		a, errA := ParseNumber(test.a)
		b, errB := ParseNumber(test.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		sum, err := a.Add(b)
		if !errors.Is(err, test.err) || (err == nil && sum.String() != test.want) {
			t.Errorf("%s + %s = %s, %v; want %s, %v", test.a, test.b, sum, err, test.want, test.err)
		}
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, seed := range []string{"0", "-1.5e10", "1E-130", ".", "9.99e125", "1e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number, err := ParseNumber(text)
		if err != nil {
			return
		}
		again, err := ParseNumber(number.String())
		if err != nil || again != number {
			t.Fatalf("%q: %s reads as %s, %v", text, number, again, err)
		}
		d := &decoder{rest: string(appendNumber(nil, number))}
		if got := d.number(); d.err != nil || got != number || len(d.rest) != 0 {
			t.Fatalf("%q: %s decodes as %s, %v", text, number, got, d.err)
		}
	})
}
