package main

import (
	"fmt"
	"strings"
)

// The words of AWS's JSON reader (kinesalite test/helpers.js, seen on AWS).
const (
	strayList   = "Start of list found where not expected"
	strayMap    = "Start of structure or map found where not expected."
	strayNumber = "class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be " +
		"converted to "
	strayBoolean = "class java.lang.Boolean can not be converted to "
	strayString  = "class java.lang.String can not be converted to "
)

// misfit is a value of the wrong type, with the error's text.
type misfit struct {
	value any
	text  string
}

// typeFacts are about members of the wrong type: one fact for each kind of member.
func typeFacts() []fact {
	kind := func(name, op string, in object, path string, misfits ...misfit) fact {
		article := map[bool]string{true: "an", false: "a"}[strings.ContainsAny(name[:1], "aeiou")]
		return fact{
			"types/" + name, op,
			fmt.Sprintf("A value of another type for %s %s member is refused with "+
				"SerializationException, in the words of AWS's JSON reader.", article, name),
			kinesalite("helpers"), nothing, func(c *check) {
				for _, m := range misfits {
					a := c.call(op, placed(in.with(object{"StreamName": c.absent()}), path,
						m.value))
					c.want(a.status == 400 && a.code() == "SerializationException" &&
						a.message() == m.text,
						"SerializationException: "+m.text+" of "+show(m.value),
						a.String())
				}
			},
		}
	}
	return []fact{
		kind("string", describeStream, object{}, "StreamName",
			misfit{true, strayBoolean + "an String"}, misfit{23, strayNumber + "an String"},
			misfit{34.56, strayNumber + "an String"}, misfit{[]any{}, strayList},
			misfit{object{}, strayMap}),
		kind("integer", listStreams, object{}, "Limit",
			misfit{"23", strayString + "an Integer"}, misfit{true, strayBoolean + "an Integer"},
			misfit{[]any{}, strayList}, misfit{object{}, strayMap}),
		kind("boolean", deleteStream, object{},
			"EnforceConsumerDeletion", misfit{23, strayNumber + "an Boolean"},
			misfit{[]any{}, strayList}, misfit{object{}, strayMap}),
		kind("blob", putRecord, object{"PartitionKey": "a"},
			"Data",
			misfit{true, strayBoolean + "a Blob"}, misfit{23, strayNumber + "a Blob"},
			misfit{[]any{}, strayList}, misfit{object{}, strayMap},
			misfit{"23456", "'23456' can not be converted to a Blob: Base64 encoded length is " +
				"expected a multiple of 4 bytes but found: 5"},
			misfit{"=+/=", "'=+/=' can not be converted to a Blob: Invalid Base64 character: '='"},
			misfit{"+/+=", "'+/+=' can not be converted to a Blob: Invalid last non-pad Base64 " +
				"character dectected"}),
		kind("list", putRecords, object{}, "Records",
			misfit{"23", "Expected list or null"}, misfit{true, "Expected list or null"},
			misfit{23, "Expected list or null"}, misfit{object{}, strayMap}),
		kind("map", addTags, object{}, "Tags",
			misfit{"23", "Expected map or null"}, misfit{true, "Expected map or null"},
			misfit{23, "Expected map or null"}, misfit{[]any{}, strayList}),
		kind("structure", putRecords, object{}, "Records.0",
			misfit{"23", "Expected null"}, misfit{true, "Expected null"}, misfit{
				23,
				"Expected null",
			},
			misfit{[]any{}, strayList}),
		kind("nested-string", putRecords, object{},
			"Records.0.PartitionKey", misfit{true, strayBoolean + "an String"},
			misfit{[]any{}, strayList}),
		kind("list-member", removeTags, object{}, "TagKeys.0",
			misfit{23, strayNumber + "an String"}, misfit{object{}, strayMap}),
		kind("map-member", addTags, object{}, "Tags.a",
			misfit{23, strayNumber + "an String"}, misfit{[]any{}, strayList}),
	}
}

// placed returns a copy of a request with a value at a path. In the path 0 is a list's first
// element.
func placed(in object, path string, value any) object {
	names := strings.Split(path, ".")
	for i := len(names) - 1; i > 0; i-- {
		if names[i] == "0" {
			value = []any{value}
		} else {
			value = object{names[i]: value}
		}
	}
	return in.with(object{names[0]: value})
}
