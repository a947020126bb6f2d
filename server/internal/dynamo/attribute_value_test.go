package dynamo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

func TestAttributeValues(t *testing.T) {
	for text, want := range map[string]string{
		`{"S":"a\"\\\n\u0001é😀"}`:            `{"S":"a\"\\\u000a\u0001é😀"}`,
		`{"S":""}`:                           `{"S":""}`,
		`{"N":"0012.50"}`:                    `{"N":"12.5"}`,
		`{"N":"1e3"}`:                        `{"N":"1000"}`,
		`{"B":"AAE="}`:                       `{"B":"AAE="}`,
		`{"BOOL":false}`:                     `{"BOOL":false}`,
		`{"NULL":true}`:                      `{"NULL":true}`,
		`{"SS":["b","a"]}`:                   `{"SS":["a","b"]}`,
		`{"NS":["10","9.0"]}`:                `{"NS":["9","10"]}`,
		`{"BS":["Ag==","AQ=="]}`:             `{"BS":["AQ==","Ag=="]}`,
		`{"L":[{"S":"a"},{"L":[]}]}`:         `{"L":[{"S":"a"},{"L":[]}]}`,
		`{"M":{"b":{"N":"1"},"a":{"M":{}}}}`: `{"M":{"a":{"M":{}},"b":{"N":"1"}}}`,
		`{"S":"x","N":null}`:                 `{"S":"x"}`,

		`{"SS":["a",null]}`:      `{"SS":["","a"]}`,
		`{"\u0053":"a","S":"b"}`: `{"S":"b"}`,
		`{"L":[{"S":1}],"L":[]}`: `{"L":[]}`,

		`null`:              "Supplied AttributeValue is empty",
		`{}`:                "Supplied AttributeValue is empty",
		`{"S":null}`:        "Supplied AttributeValue is empty",
		`{"S":"a","N":"1"}`: "more than one datatypes set",
		`{"X":"a"}`:         "unknown datatype X",
		`{"s":"a"}`:         "unknown datatype s",
		`{"S":1}`:           "SerializationException: NUMBER_VALUE can not be converted to String",
		`{"N":1}`:           "SerializationException: NUMBER_VALUE can not be converted to String",
		`{"S":true}`:        "SerializationException: TRUE_VALUE can not be converted to String",
		`{"S":{}}`:          "SerializationException: Start of structure",
		`{"BOOL":"true"}`:   "SerializationException: STRING_VALUE can not be converted to Boolean",
		`{"SS":"a"}`:        "SerializationException: STRING_VALUE can not be converted to Set",
		`"a"`:               "SerializationException: STRING_VALUE",
		`{"N":"abc"}`:       "The parameter cannot be converted to a numeric value: abc",
		`{"N":""}`:          "The parameter cannot be converted to a numeric value",
		`{"N":"1e200"}`:     "Number overflow",
		`{"N":"1e-200"}`:    "Number underflow",
		`{"N":"` + strings.Repeat("1", 39) + `"}`: "more than 38 significant digits",
		`{"B":"!"}`:            "Base64",
		`{"NULL":false}`:       "Null attribute value types must have the value of true",
		`{"SS":[]}`:            "An string set  may not be empty",
		`{"NS":[]}`:            "An number set  may not be empty",
		`{"BS":[]}`:            "Binary sets should not be empty",
		`{"SS":["b","a","b"]}`: "Input collection [b, a, b] contains duplicates.",
		`{"NS":["1","1.0"]}`:   "Input collection [1, 1.0] contains duplicates.",
		`{"L":[{"S":"a"},{}]}`: "Supplied AttributeValue is empty",
		`{"M":{"":{"S":"a"}}}`: "Attribute name must not be empty",
		nested(32):             "Nesting Levels have exceeded supported limits",
	} {
		value, fault := parseAttribute(jsonValue(t, text), 0)
		got := ""
		if fault != nil {
			got = fault.Error()
		} else {
			got = string(appendAttribute(nil, value))
		}
		if got != want && (want[0] == '{' || !strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if _, fault := parseAttribute(jsonValue(t, nested(31)), 0); fault != nil {
		t.Error(fault)
	}
}

func nested(levels int) string {
	return strings.Repeat(`{"L":[`, levels) + `{"N":"1"}` + strings.Repeat(`]}`, levels)
}

func FuzzAttributeValue(f *testing.F) {
	f.Add(`{"M":{"a":{"L":[{"S":"x"},{"N":"1"},{"B":"AA=="}]},"s":{"SS":["a"]}}}`)
	f.Add(`{"NS":["1","2"]}`)
	f.Add(`{"NULL":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return // a body is valid before its parts are looked at
		}
		value, fault := parseAttribute(jsonValue(t, text), 0)
		if fault != nil {
			return
		}
		printed := appendAttribute(nil, value)
		if !json.Valid(printed) {
			t.Fatalf("%q is printed as %q", text, printed)
		}
		again, fault := parseAttribute(jsonValue(t, string(printed)), 0)
		if fault != nil || !itemstore.Equal(value, again) {
			t.Fatalf("%q is printed as %q, which reads as %v, %v", text, printed, again, fault)
		}
	})
}
