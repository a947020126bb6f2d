package dynamo

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
)

// value is a value of a document. The zero value is a missing one.
type value struct {
	document *document
	index    int32 // of its node
}

func (v value) node() *node { return &v.document.nodes[v.index] }

// raw returns the value's JSON.
func (v value) raw() json.RawMessage { return v.document.at(v.node().raw) }

// kind returns the first byte of its JSON: one of { [ " t f n, or a number's.
func (v value) kind() byte { return v.document.text[v.node().raw.from] }

func (v value) isThere() bool { return v.document != nil }
func (v value) isNull() bool  { return v.kind() == 'n' }

// name returns the name of a member.
func (v value) name() []byte { return v.document.at(v.node().name) }

// text returns the meaning of a JSON string.
func (v value) text() string {
	quoted := v.raw()
	if isPlain(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	return string(appendUnquoted(nil, quoted))
}

// inner yields an object's members or a list's elements, in the order of the text. Of members
// with one name it yields the last one.
func (v value) inner() iter.Seq[value] {
	return func(yield func(value) bool) {
		for i, end := v.index+1, v.node().behind; i < end; i = v.document.nodes[i].behind {
			if !v.document.nodes[i].gone && !yield(value{v.document, i}) {
				return
			}
		}
	}
}

// byName returns an object's members in ascending order of their names.
func (v value) byName() []value {
	members := slices.AppendSeq(make([]value, 0, v.node().inner), v.inner())
	slices.SortFunc(members, func(a, b value) int {
		return cmp.Compare(string(a.name()), string(b.name()))
	})
	return members
}
