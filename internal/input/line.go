package input

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/keyspace"
)

// maxKey is the longest partition key, in characters (AWS, "PutRecord").
const maxKey = 256

// Line holds a line's values. It is valid only during the call that gets it.
type Line struct {
	Key     string
	HashKey string        // the explicit hash key, in decimal; "" without such a field
	Weight  uint64        // 1 without such a field
	Data    []byte        // the whole line without its line break
	Header  []byte        // the header of the line's file, with csv
	Where   func() string // the file's name and the line's number
	// Kept returns the text to keep if the stream refuses the record. Default: Data.
	Kept func() []byte

	hash keyspace.Key // the number of HashKey
}

// Hash returns the hash key by which Kinesis chooses the record's shard.
func (l *Line) Hash() keyspace.Key {
	if l.HashKey == "" {
		return keyspace.Of(l.Key)
	}
	return l.hash
}

// parse reads the fields of a line.
func (f *Format) parse(line []byte) (l Line, err error) {
	l = Line{Data: line, Header: f.header, Weight: 1}
	if l.Key, err = f.key.of(line); err == nil {
		err = CheckKey(l.Key)
	}
	if err != nil {
		return l, f.key.fault(err)
	}
	if f.hashKey != nil {
		if l.HashKey, err = f.hashKey.of(line); err == nil {
			l.hash, err = keyspace.Parse(l.HashKey)
		}
		if err != nil {
			return l, f.hashKey.fault(err)
		}
	}
	if f.weight != nil {
		if l.Weight, err = f.weight.number(line); err != nil {
			return l, f.weight.fault(err)
		}
	}
	return l, nil
}

// number returns the field as a number.
func (f *field) number(line []byte) (uint64, error) {
	text, err := f.of(line)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number from 0 to %d", text, uint64(math.MaxUint64))
	}
	return n, nil
}

// fault adds the field's name to an error.
func (f *field) fault(err error) error {
	return fmt.Errorf("%s: %w", strings.TrimSpace(f.flag+" "+f.name), err)
}

// CheckKey returns an error for a partition key that Kinesis does not accept.
func CheckKey(key string) error {
	switch n := utf8.RuneCountInString(key); {
	case n == 0:
		return errors.New("the key is empty")
	case n > maxKey:
		return fmt.Errorf("the key has %d characters, a partition key has at most %d", n, maxKey)
	case !utf8.ValidString(key):
		return errors.New("the key is not valid UTF-8")
	default:
		return nil
	}
}
