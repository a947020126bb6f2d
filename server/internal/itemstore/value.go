package itemstore

import (
	"slices"
	"strings"
)

// Kind is the type of an attribute value, named as in DynamoDB's API.
type Kind string

// The ten kinds.
const (
	KindString    Kind = "S"
	KindNumber    Kind = "N"
	KindBinary    Kind = "B"
	KindStringSet Kind = "SS"
	KindNumberSet Kind = "NS"
	KindBinarySet Kind = "BS"
	KindMap       Kind = "M"
	KindList      Kind = "L"
	KindBool      Kind = "BOOL"
	KindNull      Kind = "NULL"
)

// Value is an attribute value: one of String, Number, Binary, StringSet, NumberSet, BinarySet,
// Map, List, Bool and Null. Values passed to the store or returned by it are shared and must not
// be changed; make a new value instead.
type Value interface {
	Kind() Kind
	sealed()
}

// Item is a row of a table: attribute values by name. Shared and immutable like Value.
type Item = Map

// The values. Sets are canonical: ascending, without duplicates, not empty; see NewStringSet,
// NewNumberSet and NewBinarySet.
type (
	String    string
	Binary    string // the bytes
	Bool      bool
	Null      struct{}
	List      []Value
	Map       map[string]Value
	StringSet []string
	NumberSet []Number
	BinarySet []string // of bytes
)

// Kind returns KindString.
func (String) Kind() Kind { return KindString }

// Kind returns KindNumber.
func (Number) Kind() Kind { return KindNumber }

// Kind returns KindBinary.
func (Binary) Kind() Kind { return KindBinary }

// Kind returns KindBool.
func (Bool) Kind() Kind { return KindBool }

// Kind returns KindNull.
func (Null) Kind() Kind { return KindNull }

// Kind returns KindList.
func (List) Kind() Kind { return KindList }

// Kind returns KindMap.
func (Map) Kind() Kind { return KindMap }

// Kind returns KindStringSet.
func (StringSet) Kind() Kind { return KindStringSet }

// Kind returns KindNumberSet.
func (NumberSet) Kind() Kind { return KindNumberSet }

// Kind returns KindBinarySet.
func (BinarySet) Kind() Kind { return KindBinarySet }

func (String) sealed()    {}
func (Number) sealed()    {}
func (Binary) sealed()    {}
func (Bool) sealed()      {}
func (Null) sealed()      {}
func (List) sealed()      {}
func (Map) sealed()       {}
func (StringSet) sealed() {}
func (NumberSet) sealed() {}
func (BinarySet) sealed() {}

// NewStringSet returns the canonical set of the elements, and false if two of them are equal. It
// may reorder its argument and keeps it.
func NewStringSet(elements []string) (StringSet, bool) {
	set, distinct := canonical(elements, strings.Compare)
	return set, distinct
}

// NewBinarySet is NewStringSet for bytes.
func NewBinarySet(elements []string) (BinarySet, bool) {
	set, distinct := canonical(elements, strings.Compare)
	return set, distinct
}

// NewNumberSet is NewStringSet for numbers: 1 and 1.0 are equal.
func NewNumberSet(elements []Number) (NumberSet, bool) {
	set, distinct := canonical(elements, Number.Compare)
	return set, distinct
}

func canonical[E comparable](elements []E, order func(E, E) int) ([]E, bool) {
	slices.SortFunc(elements, order)
	set := slices.Compact(elements)
	return set, len(set) == len(elements)
}

// Equal compares two values like DynamoDB's "=": their kinds are the same, numbers are compared
// by value, and sets without order. A nil value equals no value.
func Equal(a, b Value) bool {
	switch a := a.(type) {
	case nil:
		return false
	case String, Number, Binary, Bool, Null:
		return a == b
	case StringSet:
		b, ok := b.(StringSet)
		return ok && slices.Equal(a, b)
	case NumberSet:
		b, ok := b.(NumberSet)
		return ok && slices.Equal(a, b)
	case BinarySet:
		b, ok := b.(BinarySet)
		return ok && slices.Equal(a, b)
	case List:
		b, ok := b.(List)
		return ok && slices.EqualFunc(a, b, Equal)
	case Map:
		b, ok := b.(Map)
		return ok && equalMaps(a, b)
	}
	return false
}

func equalMaps(a, b Map) bool {
	if len(a) != len(b) {
		return false
	}
	for name, value := range a {
		other, ok := b[name]
		if !ok || !Equal(value, other) {
			return false
		}
	}
	return true
}

// Compare orders two values of one ordered kind: strings and binaries by their bytes, numbers by
// value. ok is false for values of different kinds or of an unordered kind.
func Compare(a, b Value) (order int, ok bool) {
	switch a := a.(type) {
	case String:
		if b, same := b.(String); same {
			return strings.Compare(string(a), string(b)), true
		}
	case Binary:
		if b, same := b.(Binary); same {
			return strings.Compare(string(a), string(b)), true
		}
	case Number:
		if b, same := b.(Number); same {
			return a.Compare(b), true
		}
	}
	return 0, false
}
