package dynamo

import (
	"slices"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// conditionFunctions are the functions that are complete conditions.
var conditionFunctions = map[string]bool{
	"attribute_exists": true, "attribute_not_exists": true, "attribute_type": true,
	"begins_with": true, "contains": true,
}

var kindNames = []itemstore.Kind{"B", "BOOL", "BS", "L", "M", "N", "NS", "NULL", "S", "SS"}

// oneOfKinds is the list of kinds in messages, in no particular order.
const oneOfKinds = "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}"

// function parses a condition that is a function call. Function names are case-sensitive.
func (p *parser) function() condition {
	name := p.peek().text
	if !conditionFunctions[name] {
		left := p.operand() // reports its own fault
		if p.peek().compares() {
			p.compared(left)
		}
		return nil
	}
	p.next()
	p.expect("(")
	list := p.operands()
	p.operator()
	if p.peek().compares() {
		p.misused(name)
		p.compared(nil)
	}
	switch name {
	case "attribute_exists", "attribute_not_exists":
		return p.existence(name, list)
	}
	if !p.count(name, list, 2) {
		return nil
	}
	switch name {
	case "attribute_type":
		p.kindName(list[1])
		return hasKind{list[0], list[1]}
	case "begins_with":
		p.distinct(name, list...)
		p.kinds(name, list[0], "S", "B")
		p.kinds(name, list[1], "S", "B")
		return beginsWith{list[0], list[1]}
	default:
		p.distinct(name, list...)
		return contains{list[0], list[1]}
	}
}

func (p *parser) existence(name string, list []operand) condition {
	if !p.count(name, list, 1) {
		return nil
	}
	of, ok := list[0].(pathOperand)
	if !ok {
		p.fail("Operator or function requires a document path; operator or function: %s", name)
		return nil
	}
	if name == "attribute_exists" {
		return exists(of)
	}
	return notCondition{exists(of)}
}

// kindName checks the second operand of attribute_type.
func (p *parser) kindName(o operand) {
	value, ok := o.(valueOperand)
	if !ok {
		p.fail("Incorrect operand type for operator or function; operator or function: "+
			"attribute_type, operand type: %s", oneOfKinds)
		return
	}
	name, ok := value.constant.(itemstore.String)
	if !ok {
		p.kinds("attribute_type", o, "S")
		return
	}
	if !slices.Contains(kindNames, itemstore.Kind(name)) {
		p.fail("Invalid attribute type name found; type: %s, valid types: %s", name, oneOfKinds)
	}
}

// count checks the number of operands. It returns false after any fault; otherwise the operands
// are usable.
func (p *parser) count(name string, list []operand, want int) bool {
	if len(list) != want {
		p.fail("Incorrect number of operands for operator or function; operator or function: "+
			"%s, number of operands: %d", name, len(list))
	}
	return p.fault == ""
}

// distinct checks that the first operand, if it is a path, is none of the others.
func (p *parser) distinct(name string, list ...operand) {
	for _, other := range list[1:] {
		a, isPath := list[0].(pathOperand)
		b, areBoth := other.(pathOperand)
		if isPath && areBoth && a.path.equal(b.path) {
			p.fail("The first operand must be distinct from the remaining operands for this "+
				"operator or function; operator: %s, first operand: %s", name, a.path)
		}
	}
}

// ordered checks that the request's own values are of ordered kinds.
func (p *parser) ordered(name string, list ...operand) {
	for _, o := range list {
		p.kinds(name, o, "S", "N", "B")
	}
}

// kinds checks that the operand, if it is a value in the request or a size, is of one of the
// kinds. The kind of an item's attribute is not known yet; a wrong one makes the condition false.
func (p *parser) kinds(name string, o operand, kinds ...itemstore.Kind) {
	kind := itemstore.KindNumber
	switch o := o.(type) {
	case sizeOperand:
	case valueOperand:
		if o.constant == nil { // an undefined placeholder
			return
		}
		kind = o.constant.Kind()
	default:
		return
	}
	if !slices.Contains(kinds, kind) {
		p.fail("Incorrect operand type for operator or function; operator or function: %s, "+
			"operand type: %s", name, kind)
	}
}

// braced formats a value as DynamoDB's messages do: {N:1}.
func braced(value itemstore.Value) string {
	switch v := value.(type) {
	case itemstore.String:
		return "{S:" + string(v) + "}"
	case itemstore.Number:
		return "{N:" + v.String() + "}"
	}
	return string(appendAttribute(nil, value))
}
