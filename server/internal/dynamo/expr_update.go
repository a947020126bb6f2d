package dynamo

import (
	"errors"
	"maps"
	"slices"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// update is the effect of an UpdateExpression or AttributeUpdates on an item: at most one action
// at each path. All actions see the item as it was, so their order does not matter.
type update struct {
	tree    pathTree[action]
	paths   []path
	creates bool // makes the item if it does not exist
}

// action is the change at one path.
type action struct {
	verb  verb
	expr  expression // for set, add, delete
	older bool       // from AttributeUpdates, which has its own message
}

type verb uint8

const (
	set    verb = iota // to the expression's value
	remove             // the attribute, or the list's element
	add                // to a number or a set
	erase              // from a set: the expression language calls it DELETE
	attach             // to a list's end, or as add: the ADD of AttributeUpdates
)

// apply returns the item after the update. old is nil if there is no item; the update then begins
// with key, whose attributes its values may read (dynalite, test/updateItem.js). apply returns nil
// if there is still no item.
func (u *update) apply(old, key itemstore.Item) (itemstore.Item, error) {
	start := old
	if old == nil {
		start = key
	}
	a := applier{item: start}
	next, err := a.into(&u.tree, start)
	if err != nil || old == nil && !u.creates {
		return nil, err
	}
	return next.(itemstore.Map), nil
}

// applier computes an update; item is the item before it.
type applier struct{ item itemstore.Item }

// into returns a map or list after the tree's actions below it.
func (a applier) into(
	tree *pathTree[action], value itemstore.Value,
) (itemstore.Value, error) {
	switch v := value.(type) {
	case itemstore.Map:
		if !tree.isList() {
			return a.intoMap(tree, v)
		}
	case itemstore.List:
		if tree.isList() {
			return a.intoList(tree, v)
		}
	}
	return nil, errUpdatePath
}

func (a applier) intoMap(
	tree *pathTree[action], old itemstore.Map,
) (itemstore.Value, error) {
	next := maps.Clone(old)
	if next == nil {
		next = itemstore.Map{}
	}
	for i := range tree.children {
		name := tree.children[i].step.name
		value, err := a.at(&tree.children[i], old[name])
		if err != nil {
			return nil, err
		}
		if value == nil {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	return next, nil
}

// intoList applies the actions to a list. Indexes count the elements as they were; elements set
// beyond the end are appended in the order of their indexes.
func (a applier) intoList(
	tree *pathTree[action], old itemstore.List,
) (itemstore.Value, error) {
	next := slices.Clone(old)
	var beyond itemstore.List
	for i := range tree.children {
		index := tree.children[i].step.index
		var current itemstore.Value
		if index < len(old) {
			current = old[index]
		}
		value, err := a.at(&tree.children[i], current)
		if err != nil {
			return nil, err
		}
		switch {
		case index < len(old):
			next[index] = value
		case value != nil:
			beyond = append(beyond, value)
		}
	}
	next = slices.DeleteFunc(next, func(v itemstore.Value) bool { return v == nil })
	return append(next, beyond...), nil
}

// at returns the value at a place after the actions there; nil for none.
func (a applier) at(
	tree *pathTree[action], current itemstore.Value,
) (itemstore.Value, error) {
	if !tree.end {
		return a.into(tree, current)
	}
	act := tree.at
	if act.verb == remove {
		return nil, nil
	}
	operand, err := act.expr.compute(a.item)
	if err != nil {
		return nil, err
	}
	value, err := act.verb.combine(current, operand)
	if act.older && errors.Is(err, errOperandType) {
		err = errUpdateType
	}
	return value, err
}

// combine returns the result of an action on a value (nil for none) with its operand.
func (v verb) combine(current, operand itemstore.Value) (itemstore.Value, error) {
	switch v {
	case add:
		return added(current, operand)
	case erase:
		return erased(current, operand)
	case attach:
		if list, ok := operand.(itemstore.List); ok {
			return attached(current, list)
		}
		return added(current, operand)
	default:
		return operand, nil
	}
}
