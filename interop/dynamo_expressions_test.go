package interop

import (
	"fmt"
	"strings"
)

// expressions draws the expressions of one request. They share their placeholders.
type expressions struct {
	*draw
	names, values object
	targets       []string // the paths of an update's actions
}

func (d *draw) expressions() *expressions {
	return &expressions{draw: d, names: object{}, values: object{}}
}

// into puts the placeholders into the request.
func (e *expressions) into(request object) {
	switch {
	case e.wrong(20):
		e.names["#unused"] = "str"
	case e.wrong(20):
		e.values[":unused"] = object{"S": "a"}
	case e.wrong(40):
		e.names["bad"] = "str"
	case e.wrong(40):
		e.values["bad"] = object{"S": "a"}
	case e.wrong(40):
		e.names["#a-b"] = "str"
	case len(e.values) > 0 && e.wrong(40):
		delete(e.values, ":v0")
	case e.wrong(40):
		e.names["#empty"] = ""
	}
	if len(e.names) > 0 || e.wrong(60) {
		request["ExpressionAttributeNames"] = e.names
	}
	if len(e.values) > 0 || e.wrong(60) {
		request["ExpressionAttributeValues"] = e.values
	}
}

// constant adds a value and returns its placeholder.
func (e *expressions) constant(value object) string {
	if e.wrong(30) {
		return ":undefined"
	}
	name := fmt.Sprintf(":v%d", len(e.values))
	e.values[name] = value
	return name
}

// name returns an attribute's name or a placeholder for it.
func (e *expressions) name(name string) string {
	switch {
	case e.wrong(30): // without CONVERT and SIZE, which DynamoDB Local does not reserve
		return one(e.draw, []string{"#undefined", "name", "1a", "_", "a-b", "ä", "#"})
	case e.in(4):
		key := "#" + name
		e.names[key] = name
		return key
	}
	return name
}

// attribute draws an attribute's name. It has that kind if there is such an attribute.
func (e *expressions) attribute(kind string) string {
	if kind != "" && !e.in(6) {
		for range 20 {
			if name := one(e.draw, attributeNames); attributes[name] == kind {
				return name
			}
		}
	}
	return one(e.draw, attributeNames)
}

// path draws a document path. Its value mostly has that kind.
func (e *expressions) path(kind string) string {
	text := ""
	switch e.IntN(10) {
	case 0, 1:
		text = e.name("obj") + "." + e.name(one(e.draw, []string{"x", "y", "z"}))
	case 2, 3:
		text = fmt.Sprintf("%s[%d]", e.name("lst"), e.IntN(4))
	case 4:
		text = e.name(e.attribute(kind))
		for range 1 + e.IntN(2) {
			text += one(e.draw, []string{"[0]", "[1]", ".x", ".y"})
		}
	default:
		text = e.name(e.attribute(kind))
	}
	if e.wrong(40) {
		text += one(e.draw, []string{
			"[", "[x]", "[-1]", ".", "..x", "[99999999999]", "[4294967296]", ".[0]",
			strings.Repeat("[0]", 32), " str", "[01]", "[ 1 ]",
		})
	}
	return text
}

// operand draws a path, a value or a size, mostly of that kind.
func (e *expressions) operand(kind string) string {
	switch e.IntN(6) {
	case 0, 1, 2:
		return e.path(kind)
	case 3:
		if kind == "N" {
			return "size(" + e.path(one(e.draw, kinds)) + ")"
		}
	}
	if e.wrong(6) {
		kind = one(e.draw, kinds)
	}
	return e.constant(e.valueOf(kind, 1))
}

// condition draws a condition.
func (e *expressions) condition(depth int) string {
	if depth > 0 {
		switch e.IntN(5) {
		case 0, 1:
			return e.condition(depth-1) + one(e.draw, []string{" AND ", " OR ", " and ", "\nOr "}) +
				e.condition(depth-1)
		case 2:
			return one(e.draw, []string{"NOT ", "not ", "NOT"}) + "(" + e.predicate() + ")"
		case 3:
			text := "(" + e.predicate() + one(e.draw, []string{" AND ", " OR "}) + e.predicate() + ")"
			if e.wrong(10) {
				text = one(e.draw, []string{"(" + text + ")", "(" + text, text + ")", "()"})
			}
			return text
		}
	}
	return e.predicate()
}

func (e *expressions) predicate() string {
	if e.wrong(25) {
		return one(e.draw, wrongPredicates)
	}
	kind := one(e.draw, kinds[:3])
	switch e.IntN(10) {
	case 0:
		return "attribute_exists(" + e.path("") + ")"
	case 1:
		return "attribute_not_exists (" + e.path("") + ")"
	case 2:
		return "attribute_type(" + e.path("") + ", " + e.constant(e.kindName()) + ")"
	case 3:
		if kind == "N" && !e.wrong(2) {
			kind = "S"
		}
		return "begins_with(" + e.operand(kind) + ", " + e.other(kind) + ")"
	case 4:
		return "contains(" + e.operand(one(e.draw, kinds[:7])) + ", " + e.other(kind) + ")"
	case 5:
		high := e.path(kind) // with two constants the first one must not be the larger
		if e.wrong(3) {
			high = e.operand(kind)
		}
		return e.parenthesized(e.other(kind)) + " BETWEEN " + e.operand(kind) + " AND " + high
	case 6:
		list := []string{e.operand(kind)}
		for range e.IntN(3) {
			list = append(list, e.operand(kind))
		}
		return e.other(kind) + " IN (" + strings.Join(list, ", ") + ")"
	case 7:
		kind = one(e.draw, kinds)
		return e.operand(kind) + one(e.draw, []string{" = ", "=", " <> "}) + e.other(kind)
	default:
		operator := one(e.draw, []string{" = ", " <> ", " < ", "<=", " > ", " >= "})
		return e.parenthesized(e.operand(kind)) + operator + e.parenthesized(e.other(kind))
	}
}

// other draws an operand that is more than a path: a comparison of equal paths would be a mistake.
func (e *expressions) other(kind string) string {
	if e.in(3) {
		return e.path(kind) + "[4]"
	}
	return e.constant(e.valueOf(kind, 1))
}

func (e *expressions) parenthesized(operand string) string {
	if e.in(8) {
		return "(" + operand + ")"
	}
	return operand
}

func (e *expressions) kindName() object {
	if e.wrong(10) {
		return one(e.draw, []object{{"S": "X"}, {"S": ""}, {"N": "1"}, {"S": "s"}})
	}
	return object{"S": one(e.draw, kinds)}
}

var wrongPredicates = []string{
	"", " ", "str", "str =", "= str", "str == num", "str != num", "attribute_exists()",
	"attribute_exists(str, num)", "Attribute_Exists(str)", "nonsense(str)", "str = nonsense(num)",
	"size(str)", "size(str, num) = num", "contains(str)", "begins_with(str, num, cnt)",
	"attribute_type(str, num)", "str IN ()", "str IN num", "str BETWEEN num", "num + cnt = cnt",
	"if_not_exists(str, num) = num", "attribute_exists(str) = num", "str = str", "NOT", "str AND num",
	"size(size(str)) = num", "attribute_exists(size(str))", "str BETWEEN str AND num",
	"begins_with(str, str)", "contains(str, str)", "num = (cnt)", "str = num = cnt", "str; num",
	"SET str = num", "num IN (cnt, num)", "str BETWEEN num OR cnt", "contains(str, num) = cnt",
	"list_append(str, num) = num", "str < > num", "attribute_not_exists(str.)", "'a' = str", "1 = num",
	"attribute_exists str", "size(num) IN (cnt, size(num))", "begins_with(size(str), num)",
	"contains(size(str), num)", "attribute_type(size(str), num)",
}

// projection draws a ProjectionExpression.
func (e *expressions) projection() string {
	if e.wrong(10) {
		return one(e.draw, []string{
			"", " ", "str,", ",str", "str num", "str, str", "obj, obj.x", "obj.x, obj[0]", "lst[0], lst",
			"size(str)", "str = num", "*", "lst[0], lst[0]",
		})
	}
	var paths []string
	for range 1 + e.IntN(3) {
		paths = append(paths, e.target(""))
	}
	return strings.Join(paths, ", ")
}
