package interop

import (
	"maps"
	"slices"
	"strings"
)

// update draws an UpdateExpression.
func (e *expressions) update() string {
	if e.wrong(20) {
		return one(e.draw, wrongUpdates)
	}
	var sections []string
	for _, at := range e.Perm(4)[:1+e.IntN(2)] {
		var actions []string
		for range 1 + e.IntN(2) {
			actions = append(actions, e.action(at))
		}
		word := []string{"SET", "REMOVE", "ADD", "DELETE"}[at]
		if e.in(4) {
			word = strings.ToLower(word)
		}
		sections = append(sections, word+" "+strings.Join(actions, ", "))
	}
	if e.wrong(20) {
		sections = append(sections, sections[0])
	}
	return strings.Join(sections, " ")
}

func (e *expressions) action(section int) string {
	switch section {
	case 0:
		kind := one(e.draw, kinds)
		if e.in(4) {
			kind = "N"
		}
		return e.target(kind) + one(e.draw, []string{" = ", "="}) + e.sum(kind)
	case 1:
		return e.target("")
	case 2:
		kind := one(e.draw, []string{"N", "N", "SS", "NS", "BS"})
		return e.target(kind) + " " + e.constant(e.mostly(kind))
	}
	kind := one(e.draw, []string{"SS", "NS", "BS"})
	return e.target(kind) + " " + e.constant(e.mostly(kind))
}

// mostly draws a value, mostly of that kind.
func (e *expressions) mostly(kind string) object {
	if e.wrong(6) {
		kind = one(e.draw, kinds)
	}
	return e.valueOf(kind, 1)
}

// target draws a path that does not overlap the earlier ones: one update may not have two of [a],
// [a.b] and [a[0]].
func (e *expressions) target(kind string) string {
	for {
		names := maps.Clone(e.names)
		text := e.path(kind)
		if e.wrong(20) || !slices.ContainsFunc(e.targets, func(other string) bool {
			return meet(steps(text), steps(other))
		}) {
			e.targets = append(e.targets, text)
			return text
		}
		e.names = names
	}
}

func steps(path string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(path, "#", ""), "[", ".["), ".")
}

func meet(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return strings.HasPrefix(a[i], "[") != strings.HasPrefix(b[i], "[")
		}
	}
	return true
}

// sum draws the right side of a SET action.
func (e *expressions) sum(kind string) string {
	switch {
	case kind == "N" && e.in(2):
		sign := one(e.draw, []string{" + ", " - ", "+", "-"})
		return e.parenthesized(e.parenthesized(e.term(kind)) + sign + e.term(kind))
	case kind == "L" && e.in(2):
		return "list_append(" + e.term("L") + ", " + e.term("L") + ")"
	}
	return e.parenthesized(e.term(kind))
}

func (e *expressions) term(kind string) string {
	switch e.IntN(5) {
	case 0, 1:
		return e.path(kind)
	case 2:
		fallback := e.constant(e.mostly(kind))
		if e.in(3) {
			fallback = "if_not_exists(" + e.path(kind) + "[4], " + fallback + ")"
		}
		return "if_not_exists(" + e.path(kind) + ", " + fallback + ")"
	}
	if e.wrong(20) {
		return "list_append(lst, lst)"
	}
	return e.constant(e.mostly(kind))
}

var wrongUpdates = []string{
	"", " ", "SET", "SET str", "SET str =", "SET str = ", "REMOVE", "ADD str", "ADD str num",
	"DELETE str num", "SET str = num cnt", "SET str = num, num", "SET str = num + cnt + cnt",
	"SET str = nonsense(num)", "SET str = size(num)", "SET str = if_not_exists(num)",
	"SET str = list_append(lst)", "SET str = attribute_exists(num)", "SET str = (num)",
	"SET str = if_not_exists(if_not_exists(num, cnt), cnt)", "SET str = num SET num = cnt",
	"SET str = num, str = cnt", "SET obj.x = num, obj = cnt", "SET obj.x = num, obj[0] = cnt",
	"SET str = num REMOVE str", "REMOVE lst[0], lst[0]", "REMOVE obj, obj.x.y", "PUT str = num",
	"SET str = num,", ",", "SET size(str) = num", "SET str = 1", "SET str = 'a'",
	"SET str = If_Not_Exists(num, cnt)", "str = num", "REMOVE str num", "SET num = cnt - - num",
	"SET str = if_not_exists(num, cnt, cnt)", "SET = num", "SET num += cnt", "SET str == num",
	"ADD str = num", "REMOVE str = num", "REMOVE size(str)", "SET str = contains(str, num)",
	"SET num = if_not_exists(size(num), cnt)", "SET lst[0] = num, lst[0].x = cnt",
}
