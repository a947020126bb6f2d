package rollup

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner finds the values of several JSON pointers in one pass over a document, and validates the
// whole document. It allocates nothing for a valid document, except to grow its buffers.
type scanner struct {
	root node
	// found has the JSON of each pointer's value, a part of data; nil where data has none.
	found   [][]byte
	data    []byte
	buffer  bytes.Buffer // over data, which a Decoder reads in place
	decoder *jsontext.Decoder
	name    []byte // the last member's name that had an escape
}

// node is a place in documents on the way to a pointer's value.
type node struct {
	name     string // as the member of an object
	index    int    // as the element of an array; -1 if the name is no index
	children []*node
	slot     int // of the value in scanner.found; -1 if no pointer ends here
	lo, hi   int // the slots here and below are [lo, hi)
}

// newScanner returns a scanner of valid pointers, and each pointer's slot.
func newScanner(pointers []string) (s *scanner, slots []int) {
	s = &scanner{root: node{slot: -1}}
	ends := make([]*node, len(pointers))
	for i, pointer := range pointers {
		at := &s.root
		for _, name := range pointerPath(pointer) {
			at = at.child(name)
		}
		at.slot = 0 // number gives the final one
		ends[i] = at
	}
	s.found = make([][]byte, s.root.number(0))
	for _, end := range ends {
		slots = append(slots, end.slot)
	}
	s.decoder = jsontext.NewDecoder(&s.buffer)
	return s, slots
}

// child returns the child of a name, a new one if there is none.
func (n *node) child(name string) *node {
	i := slices.IndexFunc(n.children, func(c *node) bool { return c.name == name })
	if i >= 0 {
		return n.children[i]
	}
	c := &node{name: name, index: arrayIndex(name), slot: -1}
	n.children = append(n.children, c)
	return c
}

// arrayIndex returns the array index that a name is in RFC 6901; -1 if it is none.
func arrayIndex(name string) int {
	const maxDigits = 9 // no record has more elements
	if name == "" || len(name) > maxDigits || name[0] == '0' && len(name) > 1 {
		return -1
	}
	index := 0
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return -1
		}
		index = 10*index + int(name[i]-'0')
	}
	return index
}

// number gives the slots from lo on to the node and the nodes below it, and returns the next one.
func (n *node) number(lo int) int {
	n.lo, n.hi = lo, lo
	if n.slot >= 0 {
		n.slot = lo
		n.hi++
	}
	for _, c := range n.children {
		n.hi = c.number(n.hi)
	}
	return n.hi
}

// decoderOptions is a variable because a literal would be allocated for each document. The last of
// several members with one name counts, as in encoding/json. Invalid UTF-8 is allowed since it
// includes lone surrogates in escapes, which matter only in a text that is used; scan itself
// refuses invalid bytes.
var decoderOptions = []jsontext.Options{
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
}

// scan sets found, and reports whether the document is one JSON value in UTF-8. The document must
// not change while found is in use.
func (s *scanner) scan(document []byte) bool {
	clear(s.found)
	if !utf8.Valid(document) {
		return false
	}
	s.data = document
	s.buffer = *bytes.NewBuffer(document[:len(document):len(document)])
	s.decoder.Reset(&s.buffer, decoderOptions...)
	if err := s.value(&s.root); err != nil {
		return false
	}
	return len(bytes.TrimLeft(s.decoder.UnreadBuffer(), " \t\r\n")) == 0
}

// value reads the next value, which is at the node.
func (s *scanner) value(n *node) error {
	kind := s.decoder.PeekKind()
	if len(n.children) == 0 || kind != '{' && kind != '[' {
		value, err := s.decoder.ReadValue()
		if err == nil && n.slot >= 0 {
			s.found[n.slot] = s.before(len(value))
		}
		return err
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return err
	}
	from := s.decoder.InputOffset() - 1
	var err error
	if kind == '{' {
		err = s.members(n)
	} else {
		err = s.elements(n)
	}
	if err == nil && n.slot >= 0 {
		s.found[n.slot] = s.before(int(s.decoder.InputOffset() - from))
	}
	return err
}

// before returns the part of data with the given length that the decoder has just read. A Decoder
// promises its own slice only until the next call.
func (s *scanner) before(length int) []byte {
	end := int(s.decoder.InputOffset())
	return s.data[end-length : end : end]
}

// members reads the members of an object and its end.
func (s *scanner) members(n *node) error {
	for s.decoder.PeekKind() != '}' {
		name, err := s.decoder.ReadValue()
		if err != nil {
			return err
		}
		if err := s.childValue(s.member(n, name)); err != nil {
			return err
		}
	}
	_, err := s.decoder.ReadToken()
	return err
}

// elements reads the elements of an array and its end.
func (s *scanner) elements(n *node) error {
	for i := 0; s.decoder.PeekKind() != ']'; i++ {
		var child *node
		for _, c := range n.children {
			if c.index == i {
				child = c
			}
		}
		if err := s.childValue(child); err != nil {
			return err
		}
	}
	_, err := s.decoder.ReadToken()
	return err
}

// childValue reads the next value, which is at the node; nil if no pointer leads there.
func (s *scanner) childValue(n *node) error {
	if n == nil {
		_, err := s.decoder.ReadValue()
		return err
	}
	// An earlier member of the same name does not count, nor do the values inside it.
	clear(s.found[n.lo:n.hi])
	return s.value(n)
}

// member returns the child with the name, which is a JSON string; nil if there is none.
func (s *scanner) member(n *node, quoted []byte) *node {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		// The only error is a lone surrogate; the name then has U+FFFD in its place.
		s.name, _ = jsontext.AppendUnquote(s.name[:0], quoted)
		name = s.name
	}
	for _, c := range n.children {
		if string(name) == c.name {
			return c
		}
	}
	return nil
}
