package aggregate

import (
	"strings"
	"unicode/utf8"
)

// text decodes b as Java does: it replaces malformed UTF-8 instead of refusing it, since the KCL
// hashes the replaced text.
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

// malformed returns the number of bytes at the start of b that one U+FFFD replaces: as many as
// could begin a character (Unicode 15, section 3.9, "maximal subpart"), but, as in Java, all three
// bytes of a surrogate.
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
