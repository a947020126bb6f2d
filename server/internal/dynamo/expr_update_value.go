package dynamo

import (
	"slices"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// expression is a value computed from the item as it was.
type expression interface {
	compute(item itemstore.Item) (itemstore.Value, error)
}

type (
	sum struct {
		left, right expression
		minus       bool
	}
	ifNotExists struct {
		path     path
		fallback expression
	}
	listAppend struct{ left, right expression }
)

var (
	errOperandType = validation("An operand in the update expression has an incorrect data type")
	errUpdateType  = validation("Type mismatch for attribute to update")
	errNoAttribute = validation(
		"The provided expression refers to an attribute that does not exist in the item")
	errUpdatePath = validation(
		"The document path provided in the update expression is invalid for update")
)

func (o pathOperand) compute(item itemstore.Item) (itemstore.Value, error) {
	if value := o.path.find(item); value != nil {
		return value, nil
	}
	return nil, errNoAttribute
}

func (o valueOperand) compute(itemstore.Item) (itemstore.Value, error) {
	return o.constant, nil
}

func attached(current itemstore.Value, more itemstore.List) (itemstore.Value, error) {
	if current == nil {
		return more, nil
	}
	list, ok := current.(itemstore.List)
	if !ok {
		return nil, errOperandType
	}
	return slices.Concat(list, more), nil
}

// added implements ADD: the sum of numbers, or the union of sets. A missing value counts as 0 or
// empty.
func added(current, operand itemstore.Value) (itemstore.Value, error) {
	if current == nil {
		return operand, nil
	}
	switch b := operand.(type) {
	case itemstore.Number:
		if a, ok := current.(itemstore.Number); ok {
			return numberResult(a.Add(b))
		}
	case itemstore.StringSet:
		if a, ok := current.(itemstore.StringSet); ok {
			union, _ := itemstore.NewStringSet(slices.Concat(a, b))
			return union, nil
		}
	case itemstore.BinarySet:
		if a, ok := current.(itemstore.BinarySet); ok {
			union, _ := itemstore.NewBinarySet(slices.Concat(a, b))
			return union, nil
		}
	case itemstore.NumberSet:
		if a, ok := current.(itemstore.NumberSet); ok {
			union, _ := itemstore.NewNumberSet(slices.Concat(a, b))
			return union, nil
		}
	}
	return nil, errOperandType
}

// erased implements DELETE: a set without some elements; nil if none is left.
func erased(current, operand itemstore.Value) (itemstore.Value, error) {
	if current == nil {
		return nil, nil
	}
	switch b := operand.(type) {
	case itemstore.StringSet:
		if a, ok := current.(itemstore.StringSet); ok {
			if left := without(a, b); len(left) > 0 {
				return left, nil
			}
			return nil, nil
		}
	case itemstore.BinarySet:
		if a, ok := current.(itemstore.BinarySet); ok {
			if left := without(a, b); len(left) > 0 {
				return left, nil
			}
			return nil, nil
		}
	case itemstore.NumberSet:
		if a, ok := current.(itemstore.NumberSet); ok {
			if left := without(a, b); len(left) > 0 {
				return left, nil
			}
			return nil, nil
		}
	}
	return nil, errOperandType
}

func without[S ~[]E, E comparable](all, gone S) S {
	return slices.DeleteFunc(slices.Clone(all), func(e E) bool { return slices.Contains(gone, e) })
}

func (e sum) compute(item itemstore.Item) (itemstore.Value, error) {
	left, err := e.left.compute(item)
	if err != nil {
		return nil, err
	}
	right, err := e.right.compute(item)
	if err != nil {
		return nil, err
	}
	a, aOK := left.(itemstore.Number)
	b, bOK := right.(itemstore.Number)
	switch {
	case !aOK || !bOK:
		return nil, errOperandType
	case e.minus:
		return numberResult(a.Sub(b))
	default:
		return numberResult(a.Add(b))
	}
}

func numberResult(n itemstore.Number, err error) (itemstore.Value, error) {
	if err != nil {
		return nil, numberFault(err, "")
	}
	return n, nil
}

func (e ifNotExists) compute(item itemstore.Item) (itemstore.Value, error) {
	if value := e.path.find(item); value != nil {
		return value, nil
	}
	return e.fallback.compute(item)
}

func (e listAppend) compute(item itemstore.Item) (itemstore.Value, error) {
	left, err := e.left.compute(item)
	if err != nil {
		return nil, err
	}
	right, err := e.right.compute(item)
	if err != nil {
		return nil, err
	}
	a, aOK := left.(itemstore.List)
	b, bOK := right.(itemstore.List)
	if !aOK || !bOK {
		return nil, errOperandType
	}
	return slices.Concat(a, b), nil
}
