package allocate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/runnel-stream/runnel/keyspace"
)

// ErrRateSyntax is wrapped by the error of ParseRated for an invalid rate.
var ErrRateSyntax = errors.New("not a key's rate: want KEY=RATE with a whole number below 2^64")

// ParseRated reads decimal keys that are separated by commas or white space: "0, 32,9". A key may
// have a rate, as in "64=1500"; the default rate is 1. A text without keys gives an empty list.
// Duplicate keys are not detected. An error names the word; it wraps keyspace.ErrKeySyntax for the
// key or ErrRateSyntax for the rate.
func ParseRated(text string) ([]Rated, error) {
	var list []Rated
	apart := func(r rune) bool { return r == ',' || unicode.IsSpace(r) }
	for word := range strings.FieldsFuncSeq(text, apart) {
		r, err := parseRated(word)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

func parseRated(word string) (Rated, error) {
	digits, rate, rated := strings.Cut(word, "=")
	key, err := keyspace.Parse(digits)
	if err != nil {
		return Rated{}, err
	}
	r := Rated{Key: key, Rate: 1}
	if !rated {
		return r, nil
	}
	if r.Rate, err = strconv.ParseUint(rate, 10, 64); err != nil {
		return Rated{}, fmt.Errorf("%w: %q; the largest is %d", ErrRateSyntax, word,
			uint64(math.MaxUint64))
	}
	return r, nil
}
