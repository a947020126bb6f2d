package dynamo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// members are the members of a request, or of a structure in it. An operation takes those that
// it understands, one by one, and then asks check, which refuses the request if a member is
// left that DynamoDB knows: so none that it would act on is ever ignored. Names have their case.
// A member that is null is one that is not there.
//
// The first thing that is wrong with a member's form is kept; taking goes on with zero values.
type members struct {
	shape   string // which structure: see known
	at      string // before a member's name in messages, as "transactItems.1.member.put."
	object  value  // not there if what should be the structure is something else
	fault   *wire.Error
	invalid []string // violated constraints, which DynamoDB reports together
}

func parseMembers(shape string, body []byte) members {
	d, err := readDocument(body)
	if err != nil {
		return members{shape: shape, fault: noStructure}
	}
	return membersOf(shape, value{document: d})
}

var noStructure = serialization("Start of structure or map found where not expected")

func membersOf(shape string, v value) members {
	m := members{shape: shape, object: v}
	if v.kind() != '{' {
		m.object, m.fault = value{}, noStructure
	}
	return m
}

// find returns a member that nobody has taken, also one that is null.
func (m *members) find(name string) value {
	if m.object.isThere() {
		for member := range m.object.inner() {
			if string(member.name()) == name {
				return member
			}
		}
	}
	return value{}
}

// take returns a member that is there.
func (m *members) take(name string) value {
	member := m.find(name)
	if !member.isThere() {
		return value{}
	}
	member.node().gone = true
	if member.isNull() {
		return value{}
	}
	return member
}

// decode takes a member into a value of encoding/json's, and reports whether it was there.
func (m *members) decode(name, shape string, into any) bool {
	member := m.take(name)
	if !member.isThere() {
		return false
	}
	if err := json.Unmarshal(member.raw(), into); err != nil {
		m.fail(unexpected(member, shape))
		return false
	}
	return true
}

func (m *members) fail(fault *wire.Error) {
	if m.fault == nil {
		m.fault = fault
	}
}

// unexpected is the answer to JSON of another shape than the API has there.
func unexpected(v value, shape string) *wire.Error {
	found := "NUMBER_VALUE"
	switch v.kind() {
	case '"':
		found = "STRING_VALUE"
	case 't':
		found = "TRUE_VALUE"
	case 'f':
		found = "FALSE_VALUE"
	case '{':
		return noStructure
	case '[':
		return serialization("Unrecognized collection type: a list where %s is expected", shape)
	}
	return serialization("%s can not be converted to %s", found, shape)
}

// structure takes a structure; nil if it is not there. Its faults are its own until they are
// absorbed.
func (m *members) structure(name, shape string) *members {
	member := m.take(name)
	if !member.isThere() {
		return nil
	}
	inner := membersOf(shape, member)
	inner.at = m.path(name) + "."
	return &inner
}

// list takes a list; found is true for an empty one too.
func (m *members) list(name string) (list value, found bool) {
	list = m.take(name)
	if list.isThere() && list.kind() != '[' {
		m.fail(unexpected(list, "List"))
		return value{}, false
	}
	return list, list.isThere()
}

// structures takes a list of structures; found is true for an empty one too.
func (m *members) structures(name, shape string) (list []*members, found bool) {
	elements, found := m.list(name)
	if !found {
		return nil, false
	}
	for one := range elements.inner() {
		inner := membersOf(shape, one)
		inner.at = fmt.Sprintf("%s.%d.member.", m.path(name), len(list)+1)
		list = append(list, &inner)
	}
	return list, true
}

// absorb takes over what is wrong with a structure.
func (m *members) absorb(inner *members) {
	if name := inner.left(); name != "" {
		inner.fail(unsupported(name))
	}
	if inner.fault != nil {
		m.fail(inner.fault)
	}
	m.invalid = append(m.invalid, inner.invalid...)
}

func (m *members) text(name string) (text string, found bool) {
	member := m.take(name)
	if !member.isThere() {
		return "", false
	}
	text, fault := parseText(member)
	if fault != nil {
		m.fail(fault)
	}
	return text, fault == nil
}

func (m *members) flag(name string) (flag, found bool) {
	member := m.take(name)
	if !member.isThere() {
		return false, false
	}
	flag, fault := parseFlag(member)
	if fault != nil {
		m.fail(fault)
	}
	return flag, fault == nil
}

func (m *members) integer(name string) (n int64, found bool) {
	found = m.decode(name, "Integer", &n)
	return n, found
}

// enum takes one of some words; the first is the default.
func (m *members) enum(name string, words ...string) string {
	text, found := m.text(name)
	if !found {
		return words[0]
	}
	for _, word := range words {
		if text == word {
			return word
		}
	}
	m.violated("Value '%s' at '%s' failed to satisfy constraint: Member must satisfy enum "+
		"value set: [%s]", text, m.path(name), strings.Join(words, ", "))
	return words[0]
}

// within takes an integer of at least low and at most high; 0 if it is not there.
func (m *members) within(name string, low, high int64) (n int64, found bool) {
	n, found = m.integer(name)
	switch {
	case !found:
	case n < low:
		m.violated("Value '%d' at '%s' failed to satisfy constraint: Member must have value "+
			"greater than or equal to %d", n, m.path(name), low)
	case n > high:
		m.violated("Value '%d' at '%s' failed to satisfy constraint: Member must have value "+
			"less than or equal to %d", n, m.path(name), high)
	}
	return n, found
}

// item takes an item or a key; nil if it is not there.
func (m *members) item(name string) itemstore.Item {
	member := m.take(name)
	if !member.isThere() {
		return nil
	}
	item, fault := parseItem(member, 0)
	if fault != nil {
		m.fail(fault)
	}
	return item
}

// attribute takes an attribute value; nil if it is not there.
func (m *members) attribute(name string) itemstore.Value {
	member := m.take(name)
	if !member.isThere() {
		return nil
	}
	parsed, fault := parseAttribute(member, 0)
	if fault != nil {
		m.fail(fault)
	}
	return parsed
}

func (m *members) violated(format string, args ...any) {
	m.invalid = append(m.invalid, fmt.Sprintf(format, args...))
}

// required notes that a member must be there.
func (m *members) required(name string) {
	m.violated("Value null at '%s' failed to satisfy constraint: Member must not be null",
		m.path(name))
}

// none takes a member that runnel has no use for, and refuses it unless its JSON is one of
// the values that change nothing.
func (m *members) none(name string, harmless ...string) {
	member := m.take(name)
	if !member.isThere() {
		return
	}
	var compact bytes.Buffer
	if json.Compact(&compact, member.raw()) == nil {
		for _, value := range harmless {
			if compact.String() == value {
				return
			}
		}
	}
	m.fail(unsupported(name))
}

func unsupported(name string) *wire.Error {
	return validation("%s is not supported by this server (runnel): leave it out", name)
}

// check returns the request's first fault, if it has one.
func (m *members) check() error {
	switch {
	case m.fault != nil:
		return m.fault
	case m.left() != "":
		return unsupported(m.left())
	case len(m.invalid) == 1:
		return validation("1 validation error detected: %s", m.invalid[0])
	case len(m.invalid) > 1:
		return validation("%d validation errors detected: %s", len(m.invalid),
			strings.Join(m.invalid, "; "))
	}
	return nil
}

// path is how DynamoDB's messages name a member.
func (m *members) path(name string) string { return m.at + lowerFirst(name) }

// lowerFirst is how DynamoDB's messages spell a member: tableName.
func lowerFirst(name string) string { return strings.ToLower(name[:1]) + name[1:] }
