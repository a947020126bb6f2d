package dynamo

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// condition is a boolean expression over an item. A missing item counts as an empty one.
type condition interface {
	holds(item itemstore.Item) bool
}

// The conditions. A comparison with a missing value, or of values of two kinds, is false, except
// for <>, which is true.
type (
	andCondition struct{ left, right condition }
	orCondition  struct{ left, right condition }
	notCondition struct{ inner condition }

	comparison struct {
		operator    string // = <> < <= > >=
		left, right operand
	}
	between struct{ value, low, high operand } // low <= value <= high
	oneOf   struct {
		value operand
		list  []operand
	}

	exists     struct{ path path }
	hasKind    struct{ value, kind operand }
	beginsWith struct{ value, prefix operand }
	contains   struct{ value, element operand }
)

// operand is an operand of a condition.
type operand interface {
	// in returns the operand's value for the item, or nil if there is none.
	in(item itemstore.Item) itemstore.Value
}

type (
	pathOperand  struct{ path path }
	valueOperand struct {
		constant itemstore.Value
		name     string // the placeholder, if there was one
	}
	sizeOperand struct{ of operand }
)

func (o pathOperand) in(item itemstore.Item) itemstore.Value { return o.path.find(item) }
func (o valueOperand) in(itemstore.Item) itemstore.Value     { return o.constant }
func (c andCondition) holds(item itemstore.Item) bool {
	return c.left.holds(item) && c.right.holds(item)
}

func (c orCondition) holds(item itemstore.Item) bool {
	return c.left.holds(item) || c.right.holds(item)
}
func (c notCondition) holds(item itemstore.Item) bool { return !c.inner.holds(item) }
func (c exists) holds(item itemstore.Item) bool       { return c.path.find(item) != nil }

// in returns the length of a string in UTF-16 units, as DynamoDB Local counts (the Developer
// Guide says "the length of the string"), the length of a binary in bytes, or the number of
// elements. Other values have no size.
func (o sizeOperand) in(item itemstore.Item) itemstore.Value {
	size := 0
	switch v := o.of.in(item).(type) {
	case itemstore.String:
		for _, r := range string(v) {
			size += utf16.RuneLen(r)
		}
	case itemstore.Binary:
		size = len(v)
	case itemstore.StringSet:
		size = len(v)
	case itemstore.NumberSet:
		size = len(v)
	case itemstore.BinarySet:
		size = len(v)
	case itemstore.List:
		size = len(v)
	case itemstore.Map:
		size = len(v)
	default:
		return nil
	}
	return itemstore.NumberOf(int64(size))
}

func (c comparison) holds(item itemstore.Item) bool {
	left, right := c.left.in(item), c.right.in(item)
	switch c.operator {
	case "=":
		return itemstore.Equal(left, right)
	case "<>":
		return !itemstore.Equal(left, right)
	}
	order, ok := itemstore.Compare(left, right)
	if !ok {
		return false
	}
	switch c.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

func (c between) holds(item itemstore.Item) bool {
	value := c.value.in(item)
	above, ok := itemstore.Compare(value, c.low.in(item))
	if !ok || above < 0 {
		return false
	}
	below, ok := itemstore.Compare(value, c.high.in(item))
	return ok && below <= 0
}

func (c oneOf) holds(item itemstore.Item) bool {
	value := c.value.in(item)
	for _, o := range c.list {
		if itemstore.Equal(value, o.in(item)) {
			return true
		}
	}
	return false
}

func (c hasKind) holds(item itemstore.Item) bool {
	value, kind := c.value.in(item), c.kind.in(item)
	return value != nil && kind == itemstore.String(value.Kind())
}

func (c beginsWith) holds(item itemstore.Item) bool {
	switch value := c.value.in(item).(type) {
	case itemstore.String:
		prefix, ok := c.prefix.in(item).(itemstore.String)
		return ok && strings.HasPrefix(string(value), string(prefix))
	case itemstore.Binary:
		prefix, ok := c.prefix.in(item).(itemstore.Binary)
		return ok && strings.HasPrefix(string(value), string(prefix))
	}
	return false
}

// holds reports whether the element is a part of a string or binary, or an element of a set
// or list.
func (c contains) holds(item itemstore.Item) bool {
	element := c.element.in(item)
	switch value := c.value.in(item).(type) {
	case itemstore.String:
		part, ok := element.(itemstore.String)
		return ok && strings.Contains(string(value), string(part))
	case itemstore.Binary:
		part, ok := element.(itemstore.Binary)
		return ok && bytes.Contains([]byte(value), []byte(part))
	case itemstore.StringSet:
		one, ok := element.(itemstore.String)
		return ok && slices.Contains(value, string(one))
	case itemstore.BinarySet:
		one, ok := element.(itemstore.Binary)
		return ok && slices.Contains(value, string(one))
	case itemstore.NumberSet:
		one, ok := element.(itemstore.Number)
		return ok && slices.Contains(value, one)
	case itemstore.List:
		for _, one := range value {
			if itemstore.Equal(one, element) {
				return true
			}
		}
	}
	return false
}
