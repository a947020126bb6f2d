package dynamo

import (
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// jsonItem reads an item in the API's form.
func jsonItem(t testing.TB, text string) itemstore.Item {
	t.Helper()
	item, fault := parseItem(jsonValue(t, text), 0)
	if fault != nil {
		t.Fatalf("%s: %v", text, fault)
	}
	return item
}

// testNames and testValues are the placeholders of the expression tests.
var testNames = map[string]string{"#n": "n", "#dot": "a.b", "#m": "m", "#size": "size"}

func testValues(t testing.TB) map[string]itemstore.Value {
	return jsonItem(t, `{
		":one":{"N":"1"}, ":two":{"N":"2"}, ":five":{"N":"5"}, ":oneText":{"S":"1"},
		":he":{"S":"he"}, ":hello":{"S":"hello"}, ":ell":{"S":"ell"}, ":bytes":{"B":"aGVsbG8="},
		":S":{"S":"S"}, ":N":{"S":"N"}, ":M":{"S":"M"}, ":dog":{"S":"DOG"},
		":list":{"L":[{"N":"1"}]}, ":map":{"M":{}}, ":true":{"BOOL":true}, ":null":{"NULL":true},
		":ss":{"SS":["b","a"]}, ":ns":{"NS":["1.0","2"]}, ":b":{"S":"b"},
		":wide":{"S":"aä😀x"}}`)
}

const testItem = `{
	"n":{"N":"1.0"}, "s":{"S":"hello"}, "b":{"B":"aGVsbG8="}, "yes":{"BOOL":true},
	"empty_":{"NULL":true}, "ss":{"SS":["a","b"]}, "ns":{"NS":["2","1"]}, "bs":{"BS":["aA=="]},
	"l":{"L":[{"N":"1"},{"S":"x"},{"L":[{"N":"1"}]}]}, "a.b":{"N":"7"}, "size":{"N":"3"},
	"m":{"M":{"x":{"N":"2"},"y":{"M":{"z":{"L":[{"S":"deep"}]}}}}}}`

func TestConditions(t *testing.T) {
	item := jsonItem(t, testItem)
	for text, want := range map[string]bool{
		"n = :one": true, "n = :two": false, "n = :oneText": false, "n <> :oneText": true,
		"gone = :one": false, "gone <> :one": true, "gone <> lost": true, "gone = lost": false,
		"n < :two": true, "n <= :one": true, "n > :one": false, "n >= :one": true,
		":two > n": true, "n < :oneText": false, "gone < :one": false, ":one < gone": false,
		"l < :one": false, "s > :he": true, "b = :bytes": true, "b = :hello": false,
		"ss = :ss": true, "ns = :ns": true, "yes = :true": true, "empty_ = :null": true,
		"l[0] = :one": true, "l[9] = :one": false, "m.x = :two": true, "#m.x = :two": true,
		"m[0] = :one": false, "l.x = :one": false, "#dot > :five": true, "#n = :one": true,
		"m.y.z[0] > :he": false, "begins_with(m.y.z[0], :he)": false,

		"n BETWEEN :one AND :two": true, "n between :two and :five": false,
		"s BETWEEN :ell AND :hello": true, "gone BETWEEN :one AND :two": false,
		":one BETWEEN n AND m.x": true, "n BETWEEN s AND :two": false,
		"n IN (:one)": true, "n in (:two, :one)": true, "n IN (:hello, :oneText)": false,
		"gone IN (:one, lost)": false, "m.x IN (n, :two)": true,

		"attribute_exists(n)": true, "attribute_exists (gone)": false,
		"attribute_not_exists(m.q)": true, "attribute_exists(l[2][0])": true,
		"attribute_type(n, :N)": true, "attribute_type(n, :S)": false,
		"attribute_type(m, :M)": true, "attribute_type(gone, :S)": false,
		"attribute_type(:one, :N)": true,
		"begins_with(s, :he)":      true, "begins_with(s, :ell)": false, "begins_with(b, :bytes)": true,
		"begins_with(n, :he)": false, "begins_with(:hello, s)": true, "begins_with(gone, :he)": false,
		"contains(s, :ell)": true, "contains(ss, :b)": true, "contains(ss, :one)": false,
		"contains(ns, :one)": true, "contains(l, :list)": true, "contains(l, :two)": false,
		"contains(b, :bytes)": true, "contains(b, :hello)": false, "contains(gone, :one)": false,
		"contains(l, n)": true,

		"size(:wide) = :five": true, // UTF-16 units
		"size(s) = :five":     true, "size(l) > :two": true, "size(m) = :two": true,
		"size(ss) = :two": true, "size(n) = :one": false, "size(gone) = :one": false,
		"size(b) BETWEEN :one AND :five": true, "size(s) IN (:one, :five)": true,
		"size(ns) = m.x": true, "size(s) = :hello": false, "size(#size) = :one": false,

		"n = :one AND s = :hello": true, "n = :two OR s = :hello": true,
		"n = :one OR n = :two AND n = :two":    true, // AND binds first
		"(n = :one OR n = :two) AND n = :two":  false,
		"NOT n = :two AND n = :one":            true, // NOT binds first
		"NOT (n = :two OR n = :one)":           false,
		"NOT NOT n = :one":                     true,
		"NOT n BETWEEN :one AND :two":          false,
		"n BETWEEN :one AND :two AND n = :one": true,
		"not gone = :one or n = :two":          true,
		"attribute_exists(n) AND (n = :one)":   true,
		"n=:one AND(s=:hello)":                 true,

		"(n) = (:one)": true, "((n) = :one)": true, "(n) IN ((:two), (:one))": true, "NOT (n) = :two": true,
		"(size(s)) = :five": true, "contains((l), (n))": true, "(n) BETWEEN (:one) AND (:two)": true,
		":one = :one": true, "n IN (:one, :one)": true, "size(s) = size(s)": true, // of paths alone the same is wrong
	} {
		c, err := parseCondition("ConditionExpression", text,
			newPlaceholders(testNames, testValues(t)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := c.holds(item); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		c.holds(nil) // an item that is not there
	}
}

func TestConditionFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "The expression can not be empty;",
		" \n":                                    `Syntax error; token: "<EOF>", near: " \n"`,
		"n":                                      `Syntax error; token: "<EOF>", near: "n"`,
		"n = ":                                   `Syntax error; token: "<EOF>", near: "= "`,
		"n = :one n":                             `Syntax error; token: "n", near: ":one n"`,
		"n == :one":                              `Syntax error; token: "=", near: "== :one"`,
		"(n = :one":                              `Syntax error; token: "<EOF>"`,
		"n = :one)":                              `Syntax error; token: ")"`,
		"n = 1":                                  `Syntax error; token: "1"`,
		"n ? :one":                               `Syntax error; token: "?"`,
		"n = é":                                  `Syntax error; token: "é"`,
		"n = # ":                                 `Syntax error; token: "#"`,
		"n IN ()":                                `Syntax error; token: ")"`,
		"n[:one] = :one":                         `Syntax error; token: ":one"`,
		"l[-1] = :one":                           `Syntax error; token: "-"`,
		"l[99999999999] = :one":                  "List index is not within the allowable range",
		"n + :one = :two":                        `Syntax error; token: "+"`,
		"n BETWEEN :one OR :two":                 `Syntax error; token: "OR"`,
		"NOT":                                    `Syntax error; token: "<EOF>"`,
		":one":                                   `Syntax error; token: "<EOF>"`,
		"((n = :one))":                           "The expression has redundant parentheses;",
		"((n)) = :one":                           "The expression has redundant parentheses;",
		"n = ((:one))":                           "The expression has redundant parentheses;",
		"((n) = :one) AND ((n = :one))":          "The expression has redundant parentheses;",
		"n = n AND ((n = :gone))":                "The expression has redundant parentheses;", // before all but syntax
		"n = n AND ((n = :gone)) )":              `Syntax error; token: ")"`,
		"OR (n = :one)":                          `Syntax error; token: "OR"`,
		"remove = :one":                          `Syntax error; token: "remove"`,
		"n = attribute_exists(Set)":              `Syntax error; token: "Set"`,
		"name = :gone AND n":                     `Syntax error; token: "<EOF>"`,
		"(n)":                                    `Syntax error; token: ")"`,
		"(n).x = :one":                           `Syntax error; token: ")", near: "n)."`,
		"(n = :one) = :one":                      `Syntax error; token: "="`,
		"_n = :one":                              `Syntax error; token: "_"`,
		"l[01] = :one":                           `Syntax error; token: "1"`,
		"begins_with(s, size(s))":                "operator or function: begins_with, operand type: N",
		"size(size(s)) = :one":                   "operator or function: size, operand type: N",
		"attribute_exists(n) BETWEEN n AND s":    "not allowed to be used this way in an expression; function: attribute_exists",
		"dog(n) IN (s)":                          "Invalid function name; function: dog",
		"n = :gone":                              "attribute value used in expression is not defined; attribute value: :gone",
		"#gone = :one":                           "used in the document path is not defined; attribute name: #gone",
		"name = :one":                            "Attribute name is a reserved keyword; reserved keyword: name",
		"m.Status = :one":                        "reserved keyword: Status",
		"dog(n)":                                 "Invalid function name; function: dog",
		"dog(n) = :one":                          "Invalid function name; function: dog",
		"ATTRIBUTE_EXISTS(n)":                    "Invalid function name; function: ATTRIBUTE_EXISTS",
		"if_not_exists(n, n) = :one":             "The function is not allowed in a condition expression",
		"size(s)":                                "not allowed to be used this way in an expression; function: size",
		"attribute_exists(n) = :one":             "not allowed to be used this way in an expression; function: attribute_exists",
		"n = attribute_exists(n)":                "not allowed to be used this way in an expression; function: attribute_exists",
		"size(s, s) = :one":                      "function: size, number of operands: 2",
		"attribute_exists(n, n)":                 "function: attribute_exists, number of operands: 2",
		"begins_with(s)":                         "function: begins_with, number of operands: 1",
		"attribute_exists(:one)":                 "requires a document path; operator or function: attribute_exists",
		"attribute_type(n, s)":                   "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: {B,",
		"attribute_type(n, :one)":                "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: N",
		"attribute_type(n, :dog)":                "Invalid attribute type name found; type: DOG",
		"begins_with(s, :one)":                   "operator or function: begins_with, operand type: N",
		"size(:one) = :one":                      "operator or function: size, operand type: N",
		"n < :list":                              "operator or function: <, operand type: L",
		":map >= n":                              "operator or function: >=, operand type: M",
		"n BETWEEN :list AND :list":              "operator or function: BETWEEN, operand type: L",
		"n BETWEEN :two AND :one":                "upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:2}",
		"n BETWEEN :one AND :he":                 "requires same data type for lower and upper bounds",
		"n = n":                                  "must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]",
		"#n <> n":                                "first operand: [n]",
		"contains(l[0], l[0])":                   "operator: contains, first operand: [l, [0]]",
		"n IN (:one, n)":                         "operator: IN",
		strings.Repeat("NOT ", 301) + "n = :one": "too many operators",
		strings.Repeat("(", 5000):                "Expression size has exceeded the maximum allowed size; expression size: 5000",
		"n IN (" + strings.Repeat(":one,", 100) + ":one)": "IN, number of operands: 101",
		"a" + strings.Repeat(".a", 32) + " = :one":        "too many nesting levels; nesting levels: 33",
	} {
		_, err := parseCondition("ConditionExpression", text,
			newPlaceholders(testNames, testValues(t)))
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "Invalid ConditionExpression: ") {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// TestWords has every word of the grammar and the reserved words in three spellings, and other
// words.
func TestWords(t *testing.T) {
	for _, set := range []words{reserved(), grammarWords} {
		for word := range set {
			lower := strings.ToLower(word)
			if !set.has(word) || !set.has(lower) || !set.has(word[:1]+lower[1:]) {
				t.Errorf("%s is not found", word)
			}
			if set.has(word+"_") || set.has("") || set.has(strings.Repeat(word, longestWord)) {
				t.Errorf("more than %s is found", word)
			}
		}
	}
}
