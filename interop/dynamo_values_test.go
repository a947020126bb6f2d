package interop

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// draw draws requests. Its number of mistakes is limited: with a single mistake the answer does not
// depend on the order of checks.
type draw struct {
	*rand.Rand
	mistakes int
}

// one draws an element of the list.
func one[T any](d *draw, list []T) T { return list[d.IntN(len(list))] }

// in reports true with a chance of 1/n.
func (d *draw) in(n int) bool { return d.IntN(n) == 0 }

// wrong reports whether the request gets a mistake here: with a chance of 1/n, if the request may
// still have one.
func (d *draw) wrong(n int) bool {
	if d.mistakes == 0 || !d.in(n) {
		return false
	}
	d.mistakes--
	return true
}

// There are few values, so that equal ones are frequent.
var (
	someTexts   = []string{"", "a", "ab", "abc", "b", "bc", "B", "ä", "日本", "😀", "a\n\"\\", "1"}
	someNumbers = []string{
		"0", "1", "2", "3", "-1", "10", "1.0", "01", "1e1", "1E+2", "2E-1", ".5", "5.", "-0", "+3",
		"100", "0.1", "-0.10", "12345678901234567890123456789012345678",
		"-1.2345678901234567890123456789012345678", "1e-130", "-1E-130", "0e200",
		"9.9999999999999999999999999999999999999E+125",
		"-9.9999999999999999999999999999999999999E125",
		"0.000000000000000000000000000000000000000000000000001", "1e37", "1e-37", "1E38", "1e39",
	}
	wrongNumbers = []string{
		"", "a", "1e", "--1", "1e126", "1e-131", "-1e126", " 1", "1 ", "0x1", "NaN", "Infinity",
		"1_000", "1,5", "1.2.3", "e5", ".", "+",
		"123456789012345678901234567890123456789", "1.23456789012345678901234567890123456789",
	}
	someBytes = []string{"", "AA==", "AAE=", "YQ==", "YWI=", "/w=="}
	kinds     = []string{"S", "N", "B", "SS", "NS", "BS", "L", "M", "BOOL", "NULL"}
)

// value draws an attribute value, lists and maps of up to depth levels.
func (d *draw) value(depth int) object {
	if d.wrong(12) {
		return d.wrongValue()
	}
	return d.valueOf(one(d, kinds), depth)
}

func (d *draw) valueOf(kind string, depth int) object {
	switch kind {
	case "S":
		return object{"S": one(d, someTexts)}
	case "N":
		return object{"N": d.number()}
	case "B":
		return object{"B": one(d, someBytes)}
	case "SS":
		return object{"SS": d.set([]string{"a", "ab", "b", "c", "ä"})}
	case "NS":
		return object{"NS": d.set([]string{"1", "2", "3", "10", "-1"})}
	case "BS":
		return object{"BS": d.set(someBytes[1:])}
	case "L":
		list := []any{}
		for range d.IntN(4) {
			list = append(list, d.element(depth))
		}
		return object{"L": list}
	case "M":
		fields := object{}
		for range d.IntN(3) {
			fields[one(d, []string{"x", "y", "z"})] = d.element(depth)
		}
		return object{"M": fields}
	case "BOOL":
		return object{"BOOL": d.in(2)}
	}
	return object{"NULL": true}
}

func (d *draw) number() string {
	if d.wrong(8) {
		return one(d, wrongNumbers)
	}
	if d.in(2) {
		return one(d, someNumbers[:6])
	}
	return one(d, someNumbers)
}

func (d *draw) set(of []string) []string {
	set := []string{}
	for i, at := range d.Perm(len(of)) {
		if i > 0 && d.in(2) {
			break
		}
		set = append(set, of[at])
	}
	switch {
	case d.wrong(8):
		return set[:0]
	case d.wrong(8):
		return append(set, set[0])
	}
	return set
}

// element draws a value in a list or map.
func (d *draw) element(depth int) object {
	if depth == 0 {
		return d.valueOf(one(d, kinds[:6]), 0)
	}
	return d.value(depth - 1)
}

// wrongValue draws an invalid attribute value.
func (d *draw) wrongValue() object {
	return one(d, []object{
		{},
		{"S": "a", "N": "1"},
		{"NULL": false},
		{"SS": []any{}},
		{"NS": []any{}},
		{"BS": []any{}},
		{"SS": []string{"a", "a"}},
		{"NS": []string{"1", "1.0"}},
		{"BS": []string{"AA==", "AA=="}},
		{"N": ""},
		{"NS": []string{"x"}},
		{"L": []any{object{}}},
		{"M": object{"x": object{}}},
		{"M": object{"": object{"S": "a"}}},
		{"S": nil},
		{"M": object{"x": object{"N": "x"}}},
		d.nested(33), d.nested(32),
	})
}

// nested draws a value with that many levels.
func (d *draw) nested(levels int) object {
	value := object{"S": "deep"}
	for i := range levels {
		if i%2 == 0 {
			value = object{"L": []any{value}}
		} else {
			value = object{"M": object{"x": value}}
		}
	}
	return value
}

// attributes maps names of attributes to their most frequent kind.
var attributes = map[string]string{
	"str": "S", "num": "N", "bin": "B", "strs": "SS", "nums": "NS", "bins": "BS", "lst": "L",
	"obj": "M", "flag": "BOOL", "nil": "NULL", "cnt": "N", "own": "S",
}

var attributeNames = func() []string {
	var names []string
	for name := range attributes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

// fields draws attributes besides the key.
func (d *draw) fields() object {
	item := object{}
	for range d.IntN(12) {
		name := one(d, attributeNames)
		if d.in(6) && name != "own" && name != "cnt" {
			item[name] = d.value(2)
		} else {
			item[name] = d.valueOf(attributes[name], 2)
		}
	}
	if d.wrong(20) {
		item[one(d, []string{"", strings.Repeat("n", 70_000)})] = object{"S": "a"}
	}
	return item
}
