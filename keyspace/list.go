package keyspace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// ErrList is returned by ParseList for a rate that is none.
var ErrList = errors.New("not a key's rate: want KEY=RATE with a whole number below 2^64")

// ParseList reads keys in decimal, apart by commas, white space or both: "0, 32,9". A key may
// have a rate, "64=1500"; without, it is 1. It does not look for keys that stand there twice. A
// text without a key gives none. What is no key is an error that names it and wraps ErrSyntax, or
// ErrList for its rate.
func ParseList(text string) ([]Rated, error) {
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
	key, err := Parse(digits)
	if err != nil {
		return Rated{}, err
	}
	r := Rated{Key: key, Rate: 1}
	if !rated {
		return r, nil
	}
	if r.Rate, err = strconv.ParseUint(rate, 10, 64); err != nil {
		return Rated{}, fmt.Errorf("%w: %q; the largest is %d", ErrList, word,
			uint64(math.MaxUint64))
	}
	return r, nil
}
