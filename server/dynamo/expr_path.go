package dynamo

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/itemstore"
)

// step is one step of a document path: into a map by name, or into a list by index.
type step struct {
	name  string
	index int
	list  bool
}

// path is a document path; its first step is an attribute's name.
type path []step

// String returns the path as DynamoDB's messages show it: [a, b, [1]].
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

// pathTree is a set of paths of which none is a part of another, as a tree by steps; what
// stands at a path's end is of type T. The zero value is not ready: see newPathTree.
type pathTree[T any] struct {
	names   map[string]*pathTree[T] // the steps into a map
	indexes map[int]*pathTree[T]    // the steps into a list
	first   path                    // the first path that came through here
	end     bool                    // a path ends here: there are no steps further
	at      T                       // at the end
}

func newPathTree[T any]() *pathTree[T] {
	return &pathTree[T]{names: map[string]*pathTree[T]{}}
}

// add adds a path. The message is empty if all is well; otherwise the path overlaps or
// contradicts an earlier one.
func (t *pathTree[T]) add(p path, at T) (message string) {
	node := t
	for _, s := range p {
		if node.end {
			return overlap(node.first, p)
		}
		child := node.child(s)
		if child == nil {
			if s.list && node.names != nil || !s.list && node.indexes != nil {
				return "Two document paths conflict with each other; must remove or rewrite " +
					"one of these paths; path one: " + node.first.String() +
					", path two: " + p.String()
			}
			child = node.grow(s)
			child.first = p
		}
		node = child
	}
	if node.end || node.names != nil || node.indexes != nil {
		return overlap(node.first, p)
	}
	node.end, node.at = true, at
	return ""
}

func overlap(one, two path) string {
	return "Two document paths overlap with each other; must remove or rewrite one of " +
		"these paths; path one: " + one.String() + ", path two: " + two.String()
}

func (t *pathTree[T]) child(s step) *pathTree[T] {
	if s.list {
		return t.indexes[s.index]
	}
	return t.names[s.name]
}

func (t *pathTree[T]) grow(s step) *pathTree[T] {
	child := new(pathTree[T])
	switch {
	case s.list && t.indexes == nil:
		t.indexes = map[int]*pathTree[T]{s.index: child}
	case s.list:
		t.indexes[s.index] = child
	case t.names == nil:
		t.names = map[string]*pathTree[T]{s.name: child}
	default:
		t.names[s.name] = child
	}
	return child
}

// project returns the parts of the item at the tree's paths, in the maps and lists that they
// are in; a list has only the elements that the paths name, moved together. nil if the item
// has nothing there.
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
		for name, child := range t.names {
			if inner := child.part(v[name]); inner != nil {
				part[name] = inner
			}
		}
		if len(part) > 0 {
			return part
		}
	case itemstore.List:
		var part itemstore.List
		for _, index := range sortedKeys(t.indexes) {
			if index < len(v) {
				if inner := t.indexes[index].part(v[index]); inner != nil {
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
