package rollup

import (
	"bytes"
	"time"
)

// decimal is a JSON number, exactly: 0.DIGITS times ten to the power of point. The digits neither
// begin nor end with a zero; zero has none.
type decimal struct {
	negative bool
	digits   []byte
	point    int
}

// maxExponent bounds exponents, which JSON does not bound. No record has so many digits that a
// number with a larger exponent could be in the range of a type.
const maxExponent = 1 << 30

// parseDecimal reads a valid JSON number. The digits are in buf, or in a larger copy of it.
func parseDecimal(buf, number []byte) decimal {
	d := decimal{negative: number[0] == '-'}
	if d.negative {
		number = number[1:]
	}
	exponent := 0
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		number, exponent = number[:i], parseExponent(number[i+1:])
	}
	whole, fraction, _ := bytes.Cut(number, []byte("."))
	digits := append(append(buf[:0], whole...), fraction...)
	d.digits = bytes.TrimLeft(digits, "0")
	d.point = len(whole) + exponent - (len(digits) - len(d.digits))
	d.digits = bytes.TrimRight(d.digits, "0")
	return d
}

func parseExponent(text []byte) int {
	exponent := 0
	for _, c := range bytes.TrimLeft(text, "+-") {
		exponent = min(10*exponent+int(c-'0'), maxExponent)
	}
	if text[0] == '-' {
		return -exponent
	}
	return exponent
}

// digit returns the digit at a place of 0.DIGITS, from 0 on; zeros surround the digits.
func (d decimal) digit(place int) int64 {
	if place < 0 || place >= len(d.digits) {
		return 0
	}
	return int64(d.digits[place] - '0')
}

// integer returns the number if it is integral and in the range of int64.
func (d decimal) integer() (int64, bool) {
	if len(d.digits) == 0 {
		return 0, true
	}
	if d.point > 19 || d.point < len(d.digits) {
		return 0, false
	}
	n := uint64(0) // holds any number of 19 digits
	for place := range d.point {
		n = 10*n + uint64(d.digit(place))
	}
	switch {
	case d.negative && n <= 1<<63:
		return -int64(n), true
	case n < 1<<63:
		return int64(n), true
	}
	return 0, false
}

// parseInteger returns a valid JSON number if it is integral and in the range of int64.
func parseInteger(buf, number []byte) (int64, bool) {
	digits := bytes.TrimPrefix(number, []byte("-"))
	if len(digits) > 18 {
		return parseDecimal(buf, number).integer()
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return parseDecimal(buf, number).integer()
		}
		n = 10*n + int64(c-'0')
	}
	if len(digits) < len(number) {
		n = -n
	}
	return n, true
}

// time returns the time that the number of seconds, milliseconds, microseconds or nanoseconds since
// the Unix epoch names; Definition.Time gives their ranges. Parts of a nanosecond are cut off. It
// reports false if the year cannot have four digits.
func (d decimal) time() (time.Time, bool) {
	seconds := d.point // the number of digits before the decimal point, in seconds
	switch {
	case d.point <= 11:
	case d.point <= 14:
		seconds -= 3
	case d.point <= 17:
		seconds -= 6
	default:
		seconds -= 9
	}
	if seconds > 12 {
		return time.Time{}, false
	}
	whole, nanos := int64(0), int64(0)
	for place := range max(0, seconds) {
		whole = 10*whole + d.digit(place)
	}
	for place := range 9 {
		nanos = 10*nanos + d.digit(seconds+place)
	}
	if d.negative {
		whole, nanos = -whole, -nanos
	}
	at := time.Unix(whole, nanos).UTC()
	return at, inRange(at)
}

// The first second of year 1, and the first one after year 9999, since the Unix epoch.
const (
	firstSecond = -62_135_596_800
	endSecond   = 253_402_300_800
)

// inRange reports whether a time's year in UTC is 1 to 9999.
func inRange(at time.Time) bool {
	seconds := at.Unix()
	return seconds >= firstSecond && seconds < endSecond
}
