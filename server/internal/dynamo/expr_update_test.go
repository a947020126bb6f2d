package dynamo

import (
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

var updateValues = `{
	":one":{"N":"1"}, ":two":{"N":"2"}, ":s":{"S":"new"}, ":l":{"L":[{"N":"8"},{"N":"9"}]},
	":set":{"SS":["b","c"]}, ":all":{"SS":["a","b"]}, ":ns":{"NS":["3"]}, ":m":{"M":{}},
	":bs":{"BS":["aA=="]}, ":huge":{"N":"9E125"}}`

const updateItem = `{"id":{"S":"k"}, "n":{"N":"5"}, "s":{"S":"old"}, "ss":{"SS":["a","b"]},
	"l":{"L":[{"N":"0"},{"N":"1"},{"N":"2"}]}, "m":{"M":{"x":{"N":"1"},"l":{"L":[{"S":"i"}]}}}}`

// updated applies an expression to an item, nil if empty, and returns the changed attributes as
// JSON, or the error.
func updated(t *testing.T, item, text string) string {
	t.Helper()
	u, err := parseUpdate(text, newPlaceholders(map[string]string{"#n": "n", "#dot": "a.b"},
		jsonItem(t, updateValues)))
	if err != nil {
		return err.Error()
	}
	key := itemstore.Item{"id": itemstore.String("k")}
	var old itemstore.Item
	if item != "" {
		old = jsonItem(t, item)
	}
	next, err := u.apply(old, key)
	if err != nil {
		return err.Error()
	}
	if item != "" && !itemstore.Equal(old, jsonItem(t, item)) {
		t.Errorf("%s: changed the old item", text)
	}
	changed := itemstore.Item{}
	for name, value := range next {
		if !itemstore.Equal(value, old[name]) {
			changed[name] = value
		}
	}
	for name := range old {
		if next[name] == nil {
			changed["gone-"+name] = itemstore.Null{}
		}
	}
	return string(appendItem(nil, changed))
}

// An update of an item that is not there reads the attributes of its key, and no others.
func TestUpdatesOfNewItem(t *testing.T) {
	for text, want := range map[string]string{
		"SET a = if_not_exists(a, id)":                   `{"a":{"S":"k"},"id":{"S":"k"}}`,
		"SET a = id":                                     `{"a":{"S":"k"},"id":{"S":"k"}}`,
		"SET a = if_not_exists(id, :one)":                `{"a":{"S":"k"},"id":{"S":"k"}}`,
		"SET a = if_not_exists(gone, :one)":              `{"a":{"N":"1"},"id":{"S":"k"}}`,
		"SET a = if_not_exists(gone, lost)":              errNoAttribute.Message,
		"SET a = id + :one":                              errOperandType.Message,
		"SET m.x = id":                                   errUpdatePath.Message,
		"SET a = if_not_exists(b, id), b = :one":         `{"a":{"S":"k"},"b":{"N":"1"},"id":{"S":"k"}}`,
		"SET a = list_append(:l, if_not_exists(id, :l))": errOperandType.Message,
		"REMOVE a": `{}`,
	} {
		if got := updated(t, "", text); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestUpdates(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"SET n = :one", `{"n":{"N":"1"}}`},
		{"SET n = (:one)", `{"n":{"N":"1"}}`},
		{"SET n = (n - :one)", `{"n":{"N":"4"}}`},
		{"SET n = (n) + (:one)", `{"n":{"N":"6"}}`},
		{"SET n = (if_not_exists((gone), (:two)))", `{"n":{"N":"2"}}`},
		{"set #n = :one, a = :s", `{"a":{"S":"new"},"n":{"N":"1"}}`},
		{"SET n = n + :one", `{"n":{"N":"6"}}`},
		{"SET n = :one - n", `{"n":{"N":"-4"}}`},
		{"SET a = n, n = m.x", `{"a":{"N":"5"},"n":{"N":"1"}}`}, // the item as it was
		{"SET a = if_not_exists(n, :one)", `{"a":{"N":"5"}}`},
		{"SET a = if_not_exists(gone, :one) + :two", `{"a":{"N":"3"}}`},
		{"SET a = if_not_exists(gone, if_not_exists(lost, n))", `{"a":{"N":"5"}}`},
		{
			"SET l = list_append(l, :l)",
			`{"l":{"L":[{"N":"0"},{"N":"1"},{"N":"2"},{"N":"8"},{"N":"9"}]}}`,
		},
		{
			"SET a = list_append(:l, if_not_exists(gone, :l))",
			`{"a":{"L":[{"N":"8"},{"N":"9"},{"N":"8"},{"N":"9"}]}}`,
		},
		{"SET m.x = :s", `{"m":{"M":{"l":{"L":[{"S":"i"}]},"x":{"S":"new"}}}}`},
		{"SET m.y = :s REMOVE m.x", `{"m":{"M":{"l":{"L":[{"S":"i"}]},"y":{"S":"new"}}}}`},
		{"SET m.l[0] = :one", `{"m":{"M":{"l":{"L":[{"N":"1"}]},"x":{"N":"1"}}}}`},
		{"SET l[1] = :s", `{"l":{"L":[{"N":"0"},{"S":"new"},{"N":"2"}]}}`},
		{
			"SET l[9] = :one, l[7] = :two",
			`{"l":{"L":[{"N":"0"},{"N":"1"},{"N":"2"},{"N":"2"},{"N":"1"}]}}`,
		},
		{"REMOVE l[0] SET l[2] = :s", `{"l":{"L":[{"N":"1"},{"S":"new"}]}}`},
		{"SET l[5] = :s REMOVE l[3], l[0]", `{"l":{"L":[{"N":"1"},{"N":"2"},{"S":"new"}]}}`},
		{"REMOVE l[0], l[1], l[2]", `{"l":{"L":[]}}`},
		{"REMOVE l[17]", `{}`},
		{"REMOVE n, gone", `{"gone-n":{"NULL":true}}`},
		{"REMOVE m.x, m.l", `{"m":{"M":{}}}`},
		{"REMOVE m.gone", `{}`},
		{"SET #dot = :one", `{"a.b":{"N":"1"}}`},
		{"ADD n :one", `{"n":{"N":"6"}}`},
		{
			"ADD a :two, m.x :two",
			`{"a":{"N":"2"},"m":{"M":{"l":{"L":[{"S":"i"}]},"x":{"N":"3"}}}}`,
		},
		{"ADD ss :set", `{"ss":{"SS":["a","b","c"]}}`},
		{"ADD a :ns", `{"a":{"NS":["3"]}}`},
		{"DELETE ss :set", `{"ss":{"SS":["a"]}}`},
		{"DELETE ss :all", `{"gone-ss":{"NULL":true}}`},
		{"DELETE gone :set", `{}`},
		{
			"SET a = :one REMOVE n ADD b :two DELETE ss :set",
			`{"a":{"N":"1"},"b":{"N":"2"},"gone-n":{"NULL":true},"ss":{"SS":["a"]}}`,
		},

		{"SET a = gone", "refers to an attribute that does not exist in the item"},
		{"SET a = gone + :one", "refers to an attribute that does not exist in the item"},
		{"SET a = s + :one", "An operand in the update expression has an incorrect data type"},
		{"SET a = list_append(l, n)", "An operand in the update expression has an incorrect data type"},
		{"ADD s :one", "An operand in the update expression has an incorrect data type"},
		{"ADD n :set", "An operand in the update expression has an incorrect data type"},
		{"ADD ss :ns", "An operand in the update expression has an incorrect data type"},
		{"DELETE ss :bs", "An operand in the update expression has an incorrect data type"},
		{"DELETE n :set", "An operand in the update expression has an incorrect data type"},
		{"SET n = n + :huge", "Attempting to store more than 38 significant digits in a Number"},
		{"SET gone.x = :one", "The document path provided in the update expression is invalid"},
		{"SET n.x = :one", "The document path provided in the update expression is invalid"},
		{"SET n[0] = :one", "The document path provided in the update expression is invalid"},
		{"SET l.x = :one", "The document path provided in the update expression is invalid"},
		{"SET m[0] = :one", "The document path provided in the update expression is invalid"},
		{"REMOVE gone.x", "The document path provided in the update expression is invalid"},
		{"SET l[9].x = :one", "The document path provided in the update expression is invalid"},
	} {
		got := updated(t, updateItem, test.text)
		if got != test.want && (test.want[0] == '{' || !strings.Contains(got, test.want)) {
			t.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
	}
}

func TestUpdatesOfNoItem(t *testing.T) {
	for text, want := range map[string]string{
		"SET n = :one":             `{"id":{"S":"k"},"n":{"N":"1"}}`,
		"ADD n :one":               `{"id":{"S":"k"},"n":{"N":"1"}}`,
		"ADD ss :set":              `{"id":{"S":"k"},"ss":{"SS":["b","c"]}}`,
		"SET n = :one REMOVE s":    `{"id":{"S":"k"},"n":{"N":"1"}}`,
		"REMOVE n":                 `{}`, // makes no item
		"REMOVE gone.x, gone.y[0]": errUpdatePath.Error(),
		"DELETE gone.x :set":       errUpdatePath.Error(),
		"DELETE ss :set":           `{}`,
		"SET gone.x = :one":        errUpdatePath.Error(),
		"SET n = gone":             errNoAttribute.Error(),
	} {
		if got := updated(t, "", text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestUpdateFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "The expression can not be empty;",
		" ":                               `Syntax error; token: "<EOF>", near: " "`,
		"SET":                             `Syntax error; token: "<EOF>"`,
		"PUT n = :one":                    `Syntax error; token: "PUT"`,
		"SET n":                           `Syntax error; token: "<EOF>"`,
		"SET n = :one,":                   `Syntax error; token: "<EOF>"`,
		"SET n = :one + :two + :one":      `Syntax error; token: "+"`,
		"SET n = :one SET s = :s":         `The "SET" section can only be used once`,
		"REMOVE n remove s":               `The "REMOVE" section can only be used once`,
		"REMOVE :one":                     `Syntax error; token: ":one"`,
		"ADD n m":                         `Syntax error; token: "m"`,
		"ADD n :s":                        "operator: ADD, operand type: STRING",
		"DELETE ss :one":                  "operator: DELETE, operand type: NUMBER",
		"SET n = :s + :one":               "operator or function: +, operand type: S",
		"SET n = list_append(:s, l)":      "operator or function: list_append, operand type: S",
		"SET n = size(l)":                 "The function is not allowed in an update expression; function: size",
		"SET n = nope(l)":                 "Invalid function name; function: nope",
		"SET n = if_not_exists(:one, n)":  "requires a document path; operator or function: if_not_exists",
		"SET n = if_not_exists(n)":        "function: if_not_exists, number of operands: 1",
		"SET a = :one, a = :two":          "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]",
		"SET a = :one REMOVE a.b":         "path one: [a], path two: [a, b]",
		"SET a.b = :one, a = :two":        "path one: [a, b], path two: [a]",
		"SET a.b = :one, a[0] = :two":     "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [0]]",
		"SET values = :one":               "reserved keyword: values",
		"SET n = :gone":                   "attribute value: :gone",
		"SET remove = :one":               `Syntax error; token: "remove"`,
		"REMOVE And":                      `Syntax error; token: "And"`,
		"SET (n) = :one":                  `Syntax error; token: "("`,
		"SET n = ((:one))":                "The expression has redundant parentheses;",
		"SET n = (n + :one) + :one":       `Syntax error; token: "+"`,
		"SET n = n + :one + :one":         `Syntax error; token: "+"`,
		"SET n = if_not_exists(n, n + s)": `Syntax error; token: "+"`,
		"SET n = if_not_exists(n, n)":     "operator: if_not_exists, first operand: [n]",
		"SET n = list_append(l, list_append(l, l))":   "not allowed to be used this way in an expression; function: list_append",
		"SET n = n + list_append(l, l)":               "not allowed to be used this way in an expression; function: list_append",
		"SET n = if_not_exists(n, list_append(l, l))": "not allowed to be used this way in an expression; function: list_append",
		"ADD n :l":     "operator: ADD, operand type: LIST, typeSet: ALLOWED_FOR_ADD_OPERAND",
		"DELETE ss :m": "operator: DELETE, operand type: MAP, typeSet: ALLOWED_FOR_DELETE_OPERAND",
	} {
		got := updated(t, updateItem, text)
		if !strings.Contains(got, want) || !strings.Contains(got, "Invalid UpdateExpression: ") {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestProjection(t *testing.T) {
	for text, want := range map[string]string{
		"n, s":             `{"n":{"N":"5"},"s":{"S":"old"}}`,
		"gone":             `{}`,
		"m.x":              `{"m":{"M":{"x":{"N":"1"}}}}`,
		"m.x, m.l[0], #n":  `{"m":{"M":{"l":{"L":[{"S":"i"}]},"x":{"N":"1"}}},"n":{"N":"5"}}`,
		"l[2], l[0], l[9]": `{"l":{"L":[{"N":"0"},{"N":"2"}]}}`,
		"l.x, m[0], n.x":   `{}`,
		"n, n":             "Invalid ProjectionExpression: Two document paths overlap",
		"m, m.x":           "path one: [m], path two: [m, x]",
		"n,":               `Invalid ProjectionExpression: Syntax error; token: "<EOF>"`,
		"n s":              `Invalid ProjectionExpression: Syntax error; token: "s"`,
		":v":               `Invalid ProjectionExpression: Syntax error; token: ":v"`,
	} {
		tree, err := parseProjection(text, newPlaceholders(map[string]string{"#n": "n"}, nil))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = string(appendItem(nil, projected(tree, jsonItem(t, updateItem))))
		}
		if got != want && (want[0] == '{' || !strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
