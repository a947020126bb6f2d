package dynamo

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// placeholders holds a request's ExpressionAttributeNames and ExpressionAttributeValues, each in
// ascending order of their keys, and records their use in expressions.
type placeholders struct {
	names  []placeholder[string]
	values []placeholder[itemstore.Value]
	nested []string // attributes with a path into them, such as a of a.b
}

// placeholder is a key, #name or :value, and its meaning.
type placeholder[T any] struct {
	key  []byte // of the document
	is   T
	used bool
}

// use returns the meaning of a key and marks the key as used.
func use[T any](list []placeholder[T], key string) (is T, found bool) {
	at, found := slices.BinarySearchFunc(list, key, func(p placeholder[T], key string) int {
		return cmp.Compare(string(p.key), key)
	})
	if !found {
		return is, false
	}
	list[at].used = true
	return list[at].is, true
}

// unused returns the keys that no expression has used, for a message.
func unused[T any](list []placeholder[T]) string {
	var keys []string
	for _, p := range list {
		if !p.used {
			keys = append(keys, string(p.key))
		}
	}
	return strings.Join(keys, ", ")
}

// placeholderNames takes ExpressionAttributeNames. A name that is null is empty.
func (m *members) placeholderNames() (list []placeholder[string], found bool) {
	member := m.take("ExpressionAttributeNames")
	if !member.isThere() {
		return nil, false
	}
	if member.kind() != '{' {
		m.fail(unexpected(member, "Map"))
		return nil, false
	}
	list = make([]placeholder[string], 0, member.node().inner)
	for _, one := range member.byName() {
		name, fault := parseText(one)
		if fault != nil {
			m.fail(unexpected(member, "Map"))
			return nil, false
		}
		list = append(list, placeholder[string]{key: one.name(), is: name})
	}
	return list, true
}

// placeholderValues takes ExpressionAttributeValues.
func (m *members) placeholderValues() (list []placeholder[itemstore.Value], found bool) {
	member := m.take("ExpressionAttributeValues")
	if !member.isThere() {
		return nil, false
	}
	if member.kind() != '{' {
		m.fail(unexpected(member, "Map"))
		return nil, false
	}
	list = make([]placeholder[itemstore.Value], 0, member.node().inner)
	for _, one := range member.byName() {
		parsed, fault := parseAttribute(one, 0)
		if fault != nil {
			if fault.Code == coralValidation {
				fault = validation("ExpressionAttributeValues contains invalid value: %s for "+
					"key %s", fault.Message, one.name())
			}
			m.fail(fault)
		}
		list = append(list, placeholder[itemstore.Value]{key: one.name(), is: parsed})
	}
	return list, true
}
