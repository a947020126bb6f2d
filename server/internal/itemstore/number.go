package itemstore

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Number is an exact decimal of up to 38 significant digits: 0, or a magnitude from 1E-130 to
// 9.9…9E+125 ("Supported data types … in Amazon DynamoDB", Number). The zero value is 0.
// Numbers are values: equal ones are ==.
type Number struct {
	// The value is 0.digits × 10^exp. digits has neither leading nor trailing zeros, and is
	// empty for 0, where neg and exp are zero too.
	digits string
	exp    int16 // in [minExp, maxExp]
	neg    bool
}

const (
	maxDigits = 38
	minExp    = -129 // 1E-130 is 0.1 × 10^-129
	maxExp    = 126  // 9.9E+125 is 0.99 × 10^126
)

// The faults of a number's text.
var (
	ErrNumberSyntax    = errors.New("not a number")
	ErrNumberOverflow  = errors.New("number above 9.9E+125 in magnitude")
	ErrNumberUnderflow = errors.New("number below 1E-130 in magnitude")
	ErrNumberDigits    = errors.New("number of more than 38 significant digits")
)

// ParseNumber reads a decimal with an optional sign, fraction and exponent. The error wraps
// one of the ErrNumber values.
func ParseNumber(text string) (Number, error) {
	rest := text
	neg := false
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		neg = rest[0] == '-'
		rest = rest[1:]
	}
	mantissa, exponent, hasExponent := rest, "", false
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent, hasExponent = rest[:i], rest[i+1:], true
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if !allDigits(whole) || !allDigits(fraction) || len(whole)+len(fraction) == 0 {
		return Number{}, syntaxError(text)
	}
	exp := 0
	if hasExponent {
		var ok bool
		if exp, ok = parseExponent(exponent); !ok {
			return Number{}, syntaxError(text)
		}
	}
	return newNumber(neg, whole+fraction, exp+len(whole))
}

func syntaxError(text string) error { return fmt.Errorf("%w: %q", ErrNumberSyntax, text) }

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// parseExponent reads a signed integer. It clamps values beyond a million, since no request is
// long enough to balance such an exponent with digits: the number overflows either way.
func parseExponent(text string) (int, bool) {
	sign := 1
	if text != "" && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	if text == "" || !allDigits(text) {
		return 0, false
	}
	exp := 0
	for i := range len(text) {
		if exp < 1<<40 {
			exp = exp*10 + int(text[i]-'0')
		}
	}
	return sign * exp, true
}

// newNumber makes 0.digits × 10^exp canonical, or returns an ErrNumber value.
func newNumber(neg bool, digits string, exp int) (Number, error) {
	trimmed := strings.TrimLeft(digits, "0")
	exp -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	switch {
	case trimmed == "":
		return Number{}, nil
	case exp > maxExp:
		return Number{}, ErrNumberOverflow
	case exp < minExp:
		return Number{}, ErrNumberUnderflow
	case len(trimmed) > maxDigits:
		return Number{}, ErrNumberDigits
	}
	return Number{digits: trimmed, exp: int16(exp), neg: neg}, nil
}

// NumberOf returns the number of an int.
func NumberOf(n int64) Number {
	number, err := ParseNumber(fmt.Sprint(n))
	if err != nil {
		return Number{} // unreachable: 19 digits always fit
	}
	return number
}

// String returns the number in plain decimal notation without superfluous zeros, as DynamoDB
// returns it: "100", "-0.5", never "1E2".
func (n Number) String() string {
	var room [maxDigits + 2]byte // enough for most numbers
	return string(n.Append(room[:0]))
}

// Append appends the text of String.
func (n Number) Append(dst []byte) []byte {
	if n.digits == "" {
		return append(dst, '0')
	}
	if n.neg {
		dst = append(dst, '-')
	}
	exp := int(n.exp)
	switch {
	case exp <= 0:
		dst = append(append(dst, "0."...), zeros[:-exp]...)
		return append(dst, n.digits...)
	case exp >= len(n.digits):
		dst = append(dst, n.digits...)
		return append(dst, zeros[:exp-len(n.digits)]...)
	default:
		dst = append(append(dst, n.digits[:exp]...), '.')
		return append(dst, n.digits[exp:]...)
	}
}

var zeros = strings.Repeat("0", maxExp-minExp)

// Compare orders numbers by value.
func (n Number) Compare(other Number) int {
	if order := cmp.Compare(n.sign(), other.sign()); order != 0 {
		return order
	}
	// Digits are fractions without leading zeros, so their bytewise order is numeric.
	order := cmp.Or(cmp.Compare(n.exp, other.exp), strings.Compare(n.digits, other.digits))
	if n.neg {
		return -order
	}
	return order
}

func (n Number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.neg:
		return -1
	default:
		return 1
	}
}
