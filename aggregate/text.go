package aggregate

import (
	"strings"
	"unicode/utf8"
)

// text returns b as Java reads it for a string: what is not UTF-8 is replaced, not refused, as
// the KCL hashes the replaced text.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n <= 1 {
			n = malformed(b)
		}
		out.WriteRune(r)
		b = b[n:]
	}
	return out.String()
}

// malformed returns how many of the bytes that begin b one U+FFFD stands for: as many as could
// have begun a character (Unicode 15, section 3.9, "maximal subpart"), and, which is Java's own
// way, all three of a surrogate's.
func malformed(b []byte) int {
	first := b[0]
	if first < 0xc2 || first > 0xf4 || len(b) < 2 {
		return 1
	}
	second := b[1]
	switch {
	case second&0xc0 != 0x80, first < 0xe0,
		first == 0xe0 && second < 0xa0,
		first == 0xf0 && second < 0x90,
		first == 0xf4 && second > 0x8f:
		return 1
	case len(b) < 3 || b[2]&0xc0 != 0x80:
		return 2
	default:
		return 3 // three of four bytes, or a surrogate
	}
}
