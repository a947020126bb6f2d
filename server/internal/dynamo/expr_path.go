package dynamo

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// step is one step of a document path: into a map by name, or into a list by index.
type step struct {
	name  string
	index int
	list  bool
}

// path is a document path; its first step is an attribute's name.
type path []step

// String returns the path in the form of DynamoDB's messages: [a, b, [1]].
func (p path) String() string {
	texts := make([]string, len(p))
	for i, s := range p {
		texts[i] = s.name
		if s.list {
			texts[i] = "[" + strconv.Itoa(s.index) + "]"
		}
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (p path) equal(other path) bool { return slices.Equal(p, other) }

// find returns the value at the path, or nil if the item has none.
func (p path) find(item itemstore.Item) itemstore.Value {
	value := item[p[0].name]
	for _, s := range p[1:] {
		switch v := value.(type) {
		case itemstore.Map:
			if s.list {
				return nil
			}
			value = v[s.name]
		case itemstore.List:
			if !s.list || s.index >= len(v) {
				return nil
			}
			value = v[s.index]
		default:
			return nil
		}
	}
	return value
}

// pathTree is a set of paths, none a part of another, as a tree of steps. Each path's end has a
// value of type T. The zero value is the empty set.
type pathTree[T any] struct {
	step     step          // from the parent to here
	children []pathTree[T] // in ascending order of their steps, which are all of one kind
	first    path          // the first added path through this node
	end      bool          // a path ends here: there are no children
	at       T             // the value of a path's end
}

// add adds a path. It returns a message if the path overlaps or contradicts an earlier one,
// otherwise "". Adding many paths is fastest in their order.
func (t *pathTree[T]) add(p path, at T) (message string) {
	node := t
	for _, s := range p {
		if node.end {
			return overlap(node.first, p)
		}
		i, found := node.find(s)
		if !found {
			if len(node.children) > 0 && node.isList() != s.list {
				return "Two document paths conflict with each other; must remove or rewrite " +
					"one of these paths; path one: " + node.first.String() +
					", path two: " + p.String()
			}
			node.children = slices.Insert(node.children, i, pathTree[T]{step: s, first: p})
		}
		node = &node.children[i]
	}
	if node.end || len(node.children) > 0 {
		return overlap(node.first, p)
	}
	node.end, node.at = true, at
	return ""
}

// isList reports whether the steps from here lead into a list.
func (t *pathTree[T]) isList() bool { return len(t.children) > 0 && t.children[0].step.list }

// find returns the index of a step's child, or the index to insert it at.
func (t *pathTree[T]) find(s step) (at int, found bool) {
	at, _ = slices.BinarySearchFunc(t.children, s, func(child pathTree[T], s step) int {
		return cmp.Or(cmp.Compare(child.step.index, s.index), cmp.Compare(child.step.name, s.name))
	})
	return at, at < len(t.children) && t.children[at].step == s
}

func overlap(one, two path) string {
	return "Two document paths overlap with each other; must remove or rewrite one of " +
		"these paths; path one: " + one.String() + ", path two: " + two.String()
}

// project returns the parts of the item at the tree's paths, within the maps and lists around
// them; a list keeps only the elements of the paths, moved together. It returns nil if the item
// has none.
func (t *pathTree[T]) project(item itemstore.Item) itemstore.Item {
	if part, ok := t.part(item).(itemstore.Map); ok {
		return part
	}
	return nil
}

func (t *pathTree[T]) part(value itemstore.Value) itemstore.Value {
	if t.end {
		return value
	}
	switch v := value.(type) {
	case itemstore.Map:
		part := itemstore.Map{}
		for i := range t.children {
			child := &t.children[i]
			if inner := child.part(v[child.step.name]); inner != nil && !child.step.list {
				part[child.step.name] = inner
			}
		}
		if len(part) > 0 {
			return part
		}
	case itemstore.List:
		var part itemstore.List
		for i := range t.children {
			child := &t.children[i]
			if index := child.step.index; child.step.list && index < len(v) {
				if inner := child.part(v[index]); inner != nil {
					part = append(part, inner)
				}
			}
		}
		if len(part) > 0 {
			return part
		}
	}
	return nil
}

// sortedKeys returns a map's keys, ascending.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
