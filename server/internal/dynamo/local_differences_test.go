package dynamo

import (
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestAsDynamoDBLocal checks answers in which this package once differed from Amazon's DynamoDB
// Local.
func TestAsDynamoDBLocal(t *testing.T) {
	s := newRangeTable(t)
	const (
		scalars = "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
		key     = `"TableName":"abc","Key":{"a":{"S":"h"},"b":{"S":"k"}},`
		one     = `,"ExpressionAttributeValues":{":one":{"N":"1"}}`
		noName  = "Attribute name must not be empty"
	)
	s.mustAsk(t, "PutItem", `{"TableName":"abc","Item":{"a":{"S":"h"},"b":{"S":"k"},"c":{"S":"x"},"n":{"N":"1"},"f":{"S":"y"}}}`)
	for _, test := range []struct{ operation, body, want string }{
		// Paths into the attributes of keys.
		{"UpdateItem", `{` + key + `"UpdateExpression":"SET c.x = :one"` + one + `}`, scalars + "IndexKey: c"},
		{"UpdateItem", `{` + key + `"UpdateExpression":"REMOVE n","ConditionExpression":"b[0] = :one"` + one + `}`, scalars + "Key: b"},
		{"PutItem", `{"TableName":"abc","Item":{"a":{"S":"h"},"b":{"S":"k"}},"ConditionExpression":"attribute_exists(d[1])"}`, scalars + "IndexKey: d"},
		{"DeleteItem", `{` + key + `"ConditionExpression":"size(a.x) = :one"` + one + `}`, scalars + "Key: a"},
		{"GetItem", `{` + key + `"ProjectionExpression":"n, a.x"}`, scalars + "Key: a"},
		{"Scan", `{"TableName":"abc","FilterExpression":"c.x = :one"` + one + `}`, scalars + "IndexKey: c"},
		{"Query", `{"TableName":"abc","KeyConditionExpression":"a = :a","FilterExpression":"c.x = :a","ExpressionAttributeValues":{":a":{"S":"h"}}}`, scalars + "IndexKey: c"},
		{"TransactWriteItems", transact(``, `{"Delete":{`+key+`"ConditionExpression":"attribute_exists(a.x)"}}`), scalars + "Key: a"},
		{"GetItem", `{` + key + `"ProjectionExpression":"n.x"}`, `{"Item":{}}`},
		// Filters on attributes that the index does not hold: index3 holds all; index4 holds e
		// but not n.
		{"Query", `{"TableName":"abc","IndexName":"index4","KeyConditionExpression":"c = :c","FilterExpression":"n = :c AND e = :c AND f = :c","ExpressionAttributeValues":{":c":{"S":"x"}}}`, "Secondary index index4 does not project one or more filter attributes: [f, n]"},
		{"Query", `{"TableName":"abc","IndexName":"index4","KeyConditionExpression":"c = :c","FilterExpression":"e = :c AND b = :c","ExpressionAttributeValues":{":c":{"S":"x"}}}`, `{"Count":0,`},
		{"Query", `{"TableName":"abc","IndexName":"index3","KeyConditionExpression":"c = :c","FilterExpression":"f <> :c","ExpressionAttributeValues":{":c":{"S":"x"}}}`, `{"Count":1,`},
		{"Scan", `{"TableName":"abc","IndexName":"index4","FilterExpression":"attribute_exists(f)"}`, `{"Count":0,`},
		// An index's key of another type, before the condition.
		{"PutItem", `{"TableName":"abc","Item":{"a":{"S":"h"},"b":{"S":"k"},"d":{"S":"1"}},"ConditionExpression":"attribute_exists(gone)"}`, "Type mismatch for Index Key d Expected: N Actual: S IndexName: index4"},
		{"TransactWriteItems", transact(``, `{"Put":{"TableName":"abc","Item":{"a":{"S":"h"},"b":{"S":"k"},"d":{"S":"1"}},"ConditionExpression":"attribute_exists(gone)"}}`), "reasons [ValidationError]"},
		// Names.
		{"UpdateItem", `{` + key + `"AttributeUpdates":{"":{"Action":"DELETE"}}}`, noName},
		{"DeleteItem", `{` + key + `"Expected":{"":{"Exists":false}}}`, noName},
		{"Scan", `{"TableName":"abc","ScanFilter":{"":{"ComparisonOperator":"NULL"}}}`, noName},
		{"Scan", `{"TableName":"abc","AttributesToGet":[""]}`, noName},
		{"Query", `{"TableName":"abc","KeyConditions":{"":{"ComparisonOperator":"NULL"}}}`, noName},
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"a"},"` + strings.Repeat("x", 65536) + `":{"S":""}}}`, "Attribute name is too large, must be less than 65536 bytes"},
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"a"},"` + strings.Repeat("x", 65535) + `":{"S":""}}}`, `{}`},
		// An update that cannot be made, of an item that is not there.
		{"UpdateItem", `{"TableName":"leases","Key":{"leaseKey":{"S":"gone"}},"UpdateExpression":"REMOVE m.x"}`, errUpdatePath.Error()[len(coralValidation):]},
		{"UpdateItem", `{` + key + `"AttributeUpdates":{"f":{"Action":"ADD","Value":{"N":"1"}}}}`, "Type mismatch for attribute to update"},
		{"UpdateItem", `{` + key + `"AttributeUpdates":{"f":{"Action":"DELETE","Value":{"SS":["a"]}}}}`, "Type mismatch for attribute to update"},
		{"UpdateItem", `{` + key + `"UpdateExpression":"ADD f :one"` + one + `}`, errOperandType.Message},
		// A projection has no values.
		{"Scan", `{"TableName":"abc","ProjectionExpression":"n"` + one + `}`, "ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null"},
		// A segment's starting key: c is in one of the two.
		{"Scan", `{"TableName":"leases","Segment":` + otherSegment + `,"TotalSegments":2,"ExclusiveStartKey":{"leaseKey":{"S":"c"}}}`, badStart + ": Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: 2 Segment: " + otherSegment},
	} {
		if got := s.ask(t, test.operation, test.body); !strings.Contains(got, test.want) {
			t.Errorf("%s %.300s\n got %.300s\nwant %.300s", test.operation, test.body, got, test.want)
		}
	}
	if got := s.mustAsk(t, "Scan", `{"TableName":"abc"}`); !strings.Contains(got, `"n":{"N":"1"}`) || !strings.Contains(got, `"Count":1,`) {
		t.Errorf("a refused request changed something: %s", got)
	}
}

// otherSegment is the one of two segments that does not hold the key c.
const otherSegment = "1"

// TestQueryRestarts continues from a query's own starting keys, also if the key conditions allow
// one item only.
func TestQueryRestarts(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	s.mustAsk(t, "CreateTable", rangeTable)
	s.mustAsk(t, "PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"x"}}}`)
	s.mustAsk(t, "PutItem", `{"TableName":"abc","Item":{"a":{"S":"x"},"b":{"S":"x"}}}`)
	for _, query := range []string{
		`"TableName":"leases","KeyConditionExpression":"leaseKey = :x"`,
		`"TableName":"abc","KeyConditionExpression":"a = :x"`,
		`"TableName":"abc","KeyConditionExpression":"a = :x AND b = :x"`,
		`"TableName":"abc","KeyConditionExpression":"a = :x AND b <= :x"`,
		`"TableName":"abc","KeyConditionExpression":"a = :x AND b BETWEEN :x AND :x","ScanIndexForward":false`,
	} {
		query = `{"Limit":1,"ExpressionAttributeValues":{":x":{"S":"x"}},` + query
		first := s.mustAsk(t, "Query", query+`}`)
		_, last, found := strings.Cut(first, `"LastEvaluatedKey":`)
		if !found {
			t.Fatalf("%s: %s", query, first)
		}
		next := s.ask(t, "Query", query+`,"ExclusiveStartKey":`+last)
		if next != `{"Count":0,"ScannedCount":0,"Items":[]}` {
			t.Errorf("%s: after %s: %s", query, last, next)
		}
	}
}
