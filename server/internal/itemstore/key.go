package itemstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/runnel-stream/runnel/keyspace"
)

// KeyAttribute is one part of a table's primary key: its name, and its kind, which is S, N or
// B.
type KeyAttribute struct {
	Name string
	Kind Kind
}

// Schema is a table's primary key: the partition key (Hash) and, where Range.Name is not
// empty, the sort key.
type Schema struct {
	Hash  KeyAttribute
	Range KeyAttribute
}

// Key is an item's primary key. Range is nil where the schema has none.
type Key struct {
	Hash  Value
	Range Value
}

// ErrKey is returned for a key that does not fit the table's schema.
var ErrKey = errors.New("key does not fit the table's key schema")

// Key returns the item's key. The error wraps ErrKey if the item lacks a key attribute or has it
// in another kind.
func (s Schema) Key(item Item) (Key, error) {
	key := Key{Hash: item[s.Hash.Name]}
	if s.Range.Name != "" {
		key.Range = item[s.Range.Name]
	}
	return key, s.check(key)
}

// Item returns an item that consists of the key.
func (s Schema) Item(key Key) Item {
	item := Item{s.Hash.Name: key.Hash}
	if s.Range.Name != "" {
		item[s.Range.Name] = key.Range
	}
	return item
}

// Has reports whether the attribute is part of the key.
func (s Schema) Has(name string) bool {
	return name == s.Hash.Name || (name == s.Range.Name && name != "")
}

func (s Schema) check(key Key) error {
	if key.Hash == nil || key.Hash.Kind() != s.Hash.Kind {
		return fmt.Errorf("%w: want %s of type %s", ErrKey, s.Hash.Name, s.Hash.Kind)
	}
	if s.Range.Name == "" {
		if key.Range != nil {
			return fmt.Errorf("%w: there is no sort key", ErrKey)
		}
		return nil
	}
	if key.Range == nil || key.Range.Kind() != s.Range.Kind {
		return fmt.Errorf("%w: want %s of type %s", ErrKey, s.Range.Name, s.Range.Kind)
	}
	return nil
}

// equal reports whether two keys of one schema are the same, and so have the same place.
func (k Key) equal(other Key) bool {
	return Equal(k.Hash, other.Hash) && (k.Range == nil || Equal(k.Range, other.Range))
}

// place returns the position of a key in its table: the first 64 bits of the MD5 hash of the
// partition key in big-endian bytes, the length of the partition key's ordered form, that form,
// and the sort key's ordered form. Places compare bytewise: by hash, then by partition key, then
// by sort key.
func (k Key) place() string {
	hash := appendOrdered(make([]byte, 0, 64), k.Hash) // on the stack, as most places are
	place := make([]byte, 0, 128)
	place = binary.BigEndian.AppendUint64(place, keyspace.Of(string(hash)).Hi)
	place = binary.AppendUvarint(place, uint64(len(hash)))
	place = append(place, hash...)
	if k.Range != nil {
		place = appendOrdered(place, k.Range)
	}
	return string(place)
}

// appendOrdered appends a key attribute's bytes, which compare as DynamoDB orders sort keys.
func appendOrdered(dst []byte, value Value) []byte {
	switch v := value.(type) {
	case String:
		return append(dst, v...)
	case Binary:
		return append(dst, v...)
	case Number:
		return appendNumber(dst, v)
	}
	return dst // unreachable: check has accepted the key
}

// Segment is one of Total parts of a table, numbered from 0. The parts divide the table by the
// hash of the partition key without overlap. The zero value is the whole table.
type Segment struct {
	Number, Total int
}

// Holds reports whether the key is in the segment.
func (s Segment) Holds(key Key) bool {
	place := key.place()
	lo, hi := s.bounds()
	return lo <= place && (hi == "" || place < hi)
}

// bounds returns the segment's places as [lo, hi); hi "" means no upper bound. The segment holds
// the hashes from ceil(2^64·Number/Total) on.
func (s Segment) bounds() (lo, hi string) {
	if s.Total <= 1 {
		return "", ""
	}
	lo = s.edge(s.Number)
	if s.Number+1 < s.Total {
		hi = s.edge(s.Number + 1)
	}
	return lo, hi
}

func (s Segment) edge(number int) string {
	edge, rest := bits.Div64(uint64(number), 0, uint64(s.Total)) // number < Total: no overflow
	if rest > 0 {
		edge++
	}
	return string(binary.BigEndian.AppendUint64(nil, edge))
}
