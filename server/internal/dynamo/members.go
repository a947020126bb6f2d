package dynamo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// members holds the members of a request, or of a structure in it. An operation takes the members
// that it supports, one by one, and then calls check. That refuses the request if a member is
// left that DynamoDB knows, so the server never ignores one that DynamoDB would act on. Names are
// case-sensitive. A null member counts as missing.
//
// The first fault of a member's form is kept; taking continues with zero values.
type members struct {
	shape   string // which structure: see known
	at      string // precedes a member's name in messages, as "transactItems.1.member.put."
	object  value  // the zero value if the JSON is not an object
	fault   *wire.Error
	invalid []string // violated constraints, which DynamoDB reports together
}

func parseMembers(shape string, body []byte) members {
	d, err := readDocument(body)
	switch {
	case errors.Is(err, errManyValues):
		return members{shape: shape, fault: serialization(
			"The document has more than %d values", maxNodes)}
	case err != nil:
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

// find returns a member that was not taken yet, also a null one.
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

// take returns a member unless it is missing or null.
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

// decode takes a member and decodes it with encoding/json. It returns false if the member is
// missing.
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

// unexpected is the answer to JSON of a wrong shape.
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

// structure takes a structure; nil if it is missing. Call absorb to merge its faults into m's.
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

// mostStructures is above the limit of every list of structures.
const mostStructures = 128

// structures takes a list of structures; found is true for an empty one too. Those behind the first
// mostStructures are left out: the caller refuses the list for its length, and a hostile one has
// millions.
func (m *members) structures(name, shape string) (list []*members, found bool) {
	elements, found := m.list(name)
	if !found {
		return nil, false
	}
	for one := range elements.inner() {
		if len(list) == mostStructures {
			break
		}
		inner := membersOf(shape, one)
		inner.at = fmt.Sprintf("%s.%d.member.", m.path(name), len(list)+1)
		list = append(list, &inner)
	}
	return list, true
}

// absorb merges a structure's faults into m's.
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

// enum takes one of the words; the first is the default.
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

// within takes an integer in [low, high]; 0 if it is missing.
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

// item takes an item or a key; nil if it is missing.
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

// attribute takes an attribute value; nil if it is missing.
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

// required records that a member must be present.
func (m *members) required(name string) {
	m.violated("Value null at '%s' failed to satisfy constraint: Member must not be null",
		m.path(name))
}

// none takes a member that runnel does not support, and refuses it unless its JSON is one of the
// values without effect.
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

// path returns a member's name as DynamoDB's messages write it.
func (m *members) path(name string) string { return m.at + lowerFirst(name) }

// lowerFirst returns a name with a small first letter: tableName.
func lowerFirst(name string) string { return strings.ToLower(name[:1]) + name[1:] }
