package dynamo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// rangeTable has the names of the tests that are the source of the texts. Its key is a and b. The
// key of index3, which projects all attributes, is c; that of index4, which projects keys and e,
// is c and d.
const rangeTable = `{"TableName":"abc","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[
	{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"S"},
	{"AttributeName":"c","AttributeType":"S"},{"AttributeName":"d","AttributeType":"N"}],
	"KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],
	"GlobalSecondaryIndexes":[
	{"IndexName":"index3","KeySchema":[{"AttributeName":"c","KeyType":"HASH"}],
		"Projection":{"ProjectionType":"ALL"}},
	{"IndexName":"index4","KeySchema":[{"AttributeName":"c","KeyType":"HASH"},
		{"AttributeName":"d","KeyType":"RANGE"}],
		"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["e"]}}]}`

func newRangeTable(t *testing.T) *Service {
	s := newService(t, vfs.NewMem(), "data")
	s.mustAsk(t, "CreateTable", rangeTable)
	s.mustAsk(t, "CreateTable", leaseTable)
	return s
}

// TestQueryFaults uses the texts of dynalite's tests, which ran against DynamoDB, as far as they
// have one.
func TestQueryFaults(t *testing.T) {
	s := newRangeTable(t)
	const schema = "The provided key element does not match the schema"
	values := `,"ExpressionAttributeValues":`
	for _, test := range []struct{ members, want string }{
		{``, "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
		{`"KeyConditionExpression":""`, "Invalid KeyConditionExpression: The expression can not be empty;"},
		{`"KeyConditionExpression":"a > 4"`, "Invalid KeyConditionExpression: Syntax error; "},
		{`"KeyConditionExpression":"","KeyConditions":{},"FilterExpression":"","QueryFilter":{},"AttributesToGet":["a"],"ConditionalOperator":"OR"`, "Non-expression parameters: {AttributesToGet, QueryFilter, ConditionalOperator, KeyConditions} Expression parameters: {FilterExpression, KeyConditionExpression}"},
		{`"KeyConditions":{},"FilterExpression":"","QueryFilter":{}`, "Non-expression parameters: {QueryFilter} Expression parameters: {FilterExpression}"},
		{`"ExpressionAttributeValues":{},"KeyConditions":{}`, "ExpressionAttributeValues can only be specified when using expressions: FilterExpression and KeyConditionExpression are null"},
		{`"KeyConditionExpression":"attribute_type(a, :a)"` + values + `{":a":{"S":"S"}}`, "Invalid operator used in KeyConditionExpression: attribute_type"},
		{`"KeyConditionExpression":"a > b and size(b) > c or a > c"`, "Invalid operator used in KeyConditionExpression: OR"},
		{`"KeyConditionExpression":"a in (b, size(c), d)"`, "Invalid operator used in KeyConditionExpression: IN"},
		{`"KeyConditionExpression":"attribute_not_exists(a)"`, "Invalid operator used in KeyConditionExpression: attribute_not_exists"},
		{`"KeyConditionExpression":"contains(a.d, b)"`, "Invalid operator used in KeyConditionExpression: contains"},
		{`"KeyConditionExpression":"not a > b"`, "Invalid operator used in KeyConditionExpression: NOT"},
		{`"KeyConditionExpression":"a <> b"`, "Invalid operator used in KeyConditionExpression: <>"},
		{`"KeyConditionExpression":":a between size(b) and size(a) and b > :b"` + values + `{":a":{"S":"1"},":b":{"S":"1"}}`, "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute as its first operand"},
		{`"KeyConditionExpression":"begins_with(:a, b) and a > :b"` + values + `{":a":{"S":"1"},":b":{"S":"1"}}`, "begins_with operator must have the key attribute as its first operand"},
		{`"KeyConditionExpression":"size(b) > a AND a.b > b AND b > c"`, "KeyConditionExpressions cannot contain nested operations"},
		{`"KeyConditionExpression":"a between size(b) and size(a)"`, "KeyConditionExpressions cannot contain nested operations"},
		{`"KeyConditionExpression":"b > a.b"`, "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{`"KeyConditionExpression":"begins_with(a, b)"`, "Multiple attribute names used in one condition"},
		{`"KeyConditionExpression":"b.d > a AND c.d > e.f"`, "KeyConditionExpressions cannot have conditions on nested attributes"},
		{`"KeyConditionExpression":":b > :a AND a < :b"` + values + `{":a":{"N":"1"},":b":{"N":"1"}}`, "Invalid condition in KeyConditionExpression: No key attribute specified"},
		{`"KeyConditionExpression":"(a > :a and b > :a) and (b > :a and c > :a)"` + values + `{":a":{"N":"1"}}`, "KeyConditionExpressions must only contain one condition per key"},
		{`"KeyConditionExpression":"a = :a and b = :a and c = :a"` + values + `{":a":{"N":"1"}}`, "Conditions can be of length 1 or 2 only"},
		{`"KeyConditionExpression":"a between :b and :a"` + values + `{":a":{"S":"a"},":b":{"N":"1"}}`, "Invalid KeyConditionExpression: The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:a}"},
		{`"KeyConditions":{"a":{"AttributeValueList":[]}}`, "Value null at 'keyConditions.a.member.comparisonOperator' failed to satisfy constraint"},
		{`"KeyConditions":{}`, "Conditions can be of length 1 or 2 only"},
		{`"KeyConditions":{"a":{"ComparisonOperator":"EQ"}}`, "Invalid number of argument(s) for the EQ ComparisonOperator"},
		{`"KeyConditions":{"a":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"S":"b"},{"S":"a"}]}}`, "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"},
		{`"KeyConditions":{"z":{"ComparisonOperator":"NULL"}}`, "Query condition missed key schema element: a"},
		{`"KeyConditionExpression":"z between :a and :a"` + values + `{":a":{"N":"1"}}`, "Query condition missed key schema element: a"},
		{`"KeyConditionExpression":"a = :a and c = :a"` + values + `{":a":{"S":"1"}}`, "Query condition missed key schema element: b"},
		{`"KeyConditions":{"a":{"ComparisonOperator":"NE","AttributeValueList":[{"N":"1"}]}}`, "Attempted conditional constraint is not an indexable operation"},
		{`"KeyConditions":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"b"}]},"b":{"ComparisonOperator":"NOT_NULL"}}`, "Attempted conditional constraint is not an indexable operation"},
		{`"KeyConditionExpression":":a > a"` + values + `{":a":{"N":"1"}}`, "One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{`"KeyConditionExpression":":a <= a"` + values + `{":a":{"S":"1"}}`, "Query key condition not supported"},
		{`"KeyConditionExpression":"begins_with(a, :a)"` + values + `{":a":{"S":"1"}}`, "Query key condition not supported"},
		{`"KeyConditionExpression":"a = :a"` + values + `{":a":{"S":""}}`, "cannot contain an empty string value. Key: a"},
		{`"KeyConditionExpression":"a = :a"` + values + `{":a":{"S":"1"},":b":{"S":"1"}}`, "unused in expressions: keys: {:b}"},
		{`"IndexName":"whatever","KeyConditions":{"z":{"ComparisonOperator":"NULL"}}`, "The table does not have the specified index: whatever"},
		{`"IndexName":"w;","KeyConditions":{}`, "Value 'w;' at 'indexName' failed to satisfy constraint"},
		{`"IndexName":"index3","ConsistentRead":true,"KeyConditions":{"z":{"ComparisonOperator":"NULL"}}`, "Consistent reads are not supported on global secondary indexes"},
		{`"IndexName":"index3","KeyConditionExpression":"y = :a and z = :a"` + values + `{":a":{"S":"1"}}`, "Query key condition not supported"},
		{`"IndexName":"index4","KeyConditionExpression":"c = :a and begins_with(d, :b)"` + values + `{":a":{"S":"1"},":b":{"S":"1"}}`, "Condition parameter type does not match schema type"},
		{`"IndexName":"index4","Select":"ALL_ATTRIBUTES","KeyConditionExpression":"c = :a"` + values + `{":a":{"S":"1"}}`, "Select type ALL_ATTRIBUTES is not supported for global secondary index index4 because its projection type is not ALL"},
		{`"IndexName":"index4","ProjectionExpression":"e, f","KeyConditionExpression":"c = :a"` + values + `{":a":{"S":"1"}}`, "Global secondary index index4 does not project [f]"},
		{`"Select":"ALL_PROJECTED_ATTRIBUTES","KeyConditionExpression":"a = :a"` + values + `{":a":{"S":"1"}}`, "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"},
		{`"KeyConditionExpression":"a = :a","FilterExpression":"attribute_exists(b.c) AND c = :a"` + values + `{":a":{"S":"1"}}`, "Filter Expression can only contain non-primary key attributes: Primary key attribute: b"},
		{`"KeyConditionExpression":"a = :a","FilterExpression":"size(a) > c"` + values + `{":a":{"S":"1"}}`, "Primary key attribute: a"},
		{`"KeyConditions":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"b"}]}},"QueryFilter":{"b":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"b"}]}}`, "QueryFilter can only contain non-primary key attributes: Primary key attribute: b"},
		{`"KeyConditions":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"b"}]}},"QueryFilter":{"c":{"Exists":false}}`, "Value null at 'queryFilter.c.member.comparisonOperator'"},
	} {
		body := `{"TableName":"abc"`
		if test.members != "" {
			body += ","
		}
		if got := s.ask(t, "Query", body+test.members+`}`); !strings.Contains(got, test.want) {
			t.Errorf("%s\n got %s\nwant %s", test.members, got, test.want)
		}
	}
	key := `"KeyConditionExpression":"a = :a and b > :a"` + values + `{":a":{"S":"b"}}`
	for start, want := range map[string]string{
		`{}`:                              badStart,
		`{"a":{"S":"b"}}`:                 badStart,
		`{"a":{"S":"b"},"z":{"S":"c"}}`:   badStart,
		`{"a":{"S":"b"},"b":{"N":"1"}}`:   badStart + ": " + schema,
		`{"a":{"S":"b"},"b":{}}`:          badStart + ": Supplied AttributeValue is empty",
		`{"a":{"S":"b"},"b":{"S":"a"}}`:   "The provided starting key does not match the range key predicate",
		`{"a":{"S":"c"},"b":{"S":"c"}}`:   "The query can return at most one row and cannot be restarted",
		`{"a":{"S":"b"},"b":{"S":"c"}}`:   `{"Count":0,"ScannedCount":0,"Items":[]}`,
		`{"a":{"S":"b"},"b":{"SS":[]}}`:   badStart,
		`{"a":{"S":"b"},"b":{"N":"1e9"}}`: badStart,
	} {
		got := s.ask(t, "Query", `{"TableName":"abc",`+key+`,"ExclusiveStartKey":`+start+`}`)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", start, got, want)
		}
	}
	for body, want := range map[string]string{
		`{"TableName":"abc","KeyConditionExpression":"a = :a","ExclusiveStartKey":{"a":{"S":"c"},"b":{"S":"b"}}` +
			values + `{":a":{"S":"b"}}}`: "The provided starting key is outside query boundaries based on provided conditions",
		`{"TableName":"none","KeyConditionExpression":"z = :a"` + values + `{":a":{"S":"b"}}}`:                     "ResourceNotFoundException: Requested resource not found",
		`{"TableName":"leases","KeyConditionExpression":"leaseKey = :a and z = :a"` + values + `{":a":{"S":"b"}}}`: "Query key condition not supported",
	} {
		if got := s.ask(t, "Query", body); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func TestQuery(t *testing.T) {
	s := newRangeTable(t)
	for i := range 4 {
		s.mustAsk(t, "PutItem", fmt.Sprintf(`{"TableName":"abc","Item":{"a":{"S":"h"},"b":{"S":"k%d"},
			"c":{"S":"x"},"d":{"N":"%d"},"e":{"S":"e%d"},"f":{"S":"f"}}}`, i, 9-i, i%2))
	}
	s.mustAsk(t, "PutItem", `{"TableName":"abc","Item":{"a":{"S":"other"},"b":{"S":"k1"},"c":{"S":"x"}}}`)
	s.mustAsk(t, "PutItem", `{"TableName":"abc","Item":{"a":{"S":"sparse"},"b":{"S":"k1"},"d":{"N":"1"}}}`)
	const h = `"KeyConditionExpression":"a = :h","ProjectionExpression":"b","ExpressionAttributeValues":{":h":{"S":"h"}}`
	const x = `"IndexName":"index4","KeyConditionExpression":"c = :x AND d BETWEEN :l AND :h",
		"ExpressionAttributeValues":{":x":{"S":"x"},":l":{"N":"7"},":h":{"N":"8"}}`
	run(t, s, []exchange{
		{"Query", `{"TableName":"abc",` + h + `}`, `{"Count":4,"ScannedCount":4,"Items":[{"b":{"S":"k0"}},{"b":{"S":"k1"}},{"b":{"S":"k2"}},{"b":{"S":"k3"}}]}`},
		{
			"Query", `{"TableName":"abc","ScanIndexForward":false,"Limit":1,` + h + `}`,
			`{"Count":1,"ScannedCount":1,"Items":[{"b":{"S":"k3"}}],"LastEvaluatedKey":{"a":{"S":"h"},"b":{"S":"k3"}}}`,
		},
		{
			"Query", `{"TableName":"abc","ScanIndexForward":false,"Limit":1,"ExclusiveStartKey":{"a":{"S":"h"},"b":{"S":"k3"}},` + h + `}`,
			`{"Count":1,"ScannedCount":1,"Items":[{"b":{"S":"k2"}}],"LastEvaluatedKey":{"a":{"S":"h"},"b":{"S":"k2"}}}`,
		},
		{
			"Query", `{"TableName":"abc","Select":"COUNT","ConsistentRead":true,"ReturnConsumedCapacity":"INDEXES","KeyConditions":{
			"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"h"}]},"b":{"ComparisonOperator":"BEGINS_WITH","AttributeValueList":[{"S":"k"}]}},
			"FilterExpression":"e = :e","ExpressionAttributeValues":{":e":{"S":"e1"}}}`,
			`{"Count":2,"ScannedCount":4,"ConsumedCapacity":{"TableName":"abc","CapacityUnits":1,"Table":{"CapacityUnits":1}}}`,
		},
		{
			"Query", `{"TableName":"abc","KeyConditions":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"h"}]},
			"b":{"ComparisonOperator":"GE","AttributeValueList":[{"S":"k2"}]}},"QueryFilter":{"e":{"ComparisonOperator":"NE","AttributeValueList":[{"S":"e1"}]},
			"f":{"ComparisonOperator":"NOT_NULL"}},"ConditionalOperator":"AND","AttributesToGet":["b"]}`,
			`{"Count":1,"ScannedCount":2,"Items":[{"b":{"S":"k2"}}]}`,
		},
		{
			"Query", `{"TableName":"abc","ReturnConsumedCapacity":"INDEXES",` + x + `}`,
			`{"Count":2,"ScannedCount":2,"Items":[{"a":{"S":"h"},"b":{"S":"k2"},"c":{"S":"x"},"d":{"N":"7"},"e":{"S":"e0"}},` +
				`{"a":{"S":"h"},"b":{"S":"k1"},"c":{"S":"x"},"d":{"N":"8"},"e":{"S":"e1"}}],"ConsumedCapacity":{"TableName":"abc","CapacityUnits":0.5,` +
				`"Table":{"CapacityUnits":0},"GlobalSecondaryIndexes":{"index4":{"CapacityUnits":0.5}}}}`,
		},
		{
			"Query", `{"TableName":"abc","Limit":1,"Select":"COUNT",` + x + `}`,
			`{"Count":1,"ScannedCount":1,"LastEvaluatedKey":{"a":{"S":"h"},"b":{"S":"k2"},"c":{"S":"x"},"d":{"N":"7"}}}`,
		},
		{
			"Query", `{"TableName":"abc","Select":"COUNT","ExclusiveStartKey":{"a":{"S":"h"},"b":{"S":"k2"},"c":{"S":"x"},"d":{"N":"7"}},` + x + `}`,
			`{"Count":1,"ScannedCount":1}`,
		},
		{"Query", `{"TableName":"abc","IndexName":"index3","KeyConditionExpression":"c = :x","Select":"COUNT","ExpressionAttributeValues":{":x":{"S":"x"}}}`, `{"Count":5,"ScannedCount":5}`},
		{"Scan", `{"TableName":"abc","IndexName":"index4","Select":"COUNT"}`, `{"Count":4,"ScannedCount":4}`},
		{"Scan", `{"TableName":"abc","IndexName":"index3","Select":"COUNT"}`, `{"Count":5,"ScannedCount":5}`},
		{"Scan", `{"TableName":"abc","IndexName":"index3","ConsistentRead":true}`, "Consistent reads are not supported on global secondary indexes"},
		{"Scan", `{"TableName":"abc","IndexName":"index3","ExclusiveStartKey":{"a":{"S":"h"},"b":{"S":"k2"}}}`, badStart},
		{"Scan", `{"TableName":"abc","IndexName":"index4","Limit":1,"ProjectionExpression":"e"}`, `{"Count":1,"ScannedCount":1,"Items":[{"e":{"S":"e1"}}],"LastEvaluatedKey":{"a":{"S":"h"},"b":{"S":"k3"},"c":{"S":"x"},"d":{"N":"6"}}}`},
	})
}

// TestQueryPages reads a partition of several pages.
func TestQueryPages(t *testing.T) {
	s := newRangeTable(t)
	filler := strings.Repeat("x", 200<<10)
	for i := range 12 {
		s.mustAsk(t, "PutItem", fmt.Sprintf(
			`{"TableName":"abc","Item":{"a":{"S":"h"},"b":{"S":"%02d"},"c":{"S":"h"},"x":{"S":%q}}}`, i, filler))
	}
	for _, index := range []string{``, `"IndexName":"index3",`} {
		start, seen, pages := "", 0, 0
		for {
			var page struct {
				Count            int
				LastEvaluatedKey json.RawMessage
				ConsumedCapacity struct{ CapacityUnits float64 }
			}
			key := map[bool]string{true: "a", false: "c"}[index == ""]
			answer := s.mustAsk(t, "Query", `{"TableName":"abc",`+index+start+`"Select":"COUNT","ReturnConsumedCapacity":"TOTAL",
				"KeyConditionExpression":"`+key+` = :h","ExpressionAttributeValues":{":h":{"S":"h"}}}`)
			if err := json.Unmarshal([]byte(answer), &page); err != nil {
				t.Fatal(err)
			}
			pages++
			seen += page.Count
			if page.LastEvaluatedKey == nil {
				break
			}
			if page.Count != 6 || page.ConsumedCapacity.CapacityUnits != 150.5 {
				t.Errorf("a page of %s", answer)
			}
			start = `"ExclusiveStartKey":` + string(page.LastEvaluatedKey) + `,`
		}
		if seen != 12 || pages != 3 {
			t.Errorf("%s: %d items in %d pages", index, seen, pages)
		}
	}
}

// TestQueryModel makes queries with random key conditions in both languages, in pages and in both
// orders, and compares them with a filter over all items.
func TestQueryModel(t *testing.T) {
	s := newRangeTable(t)
	words := []string{"a", "ab", "abc", "b", "ba", "é", "\u00ff"}
	all := map[string][]string{} // sort keys by partition key
	for _, hash := range words {
		for i, sort := range words {
			if i%3 != len(hash)%3 {
				s.mustAsk(t, "PutItem", fmt.Sprintf(`{"TableName":"abc","Item":{"a":{"S":%q},"b":{"S":%q}}}`, hash, sort))
				all[hash] = append(all[hash], sort)
			}
		}
		slices.Sort(all[hash])
	}
	operators := map[string]struct {
		text  string
		holds func(key, x, y string) bool
	}{
		"EQ":          {"b = :x", func(key, x, _ string) bool { return key == x }},
		"LT":          {":x > b", func(key, x, _ string) bool { return key < x }},
		"LE":          {"(b <= :x)", func(key, x, _ string) bool { return key <= x }},
		"GT":          {"b > :x", func(key, x, _ string) bool { return key > x }},
		"GE":          {":x <= b", func(key, x, _ string) bool { return key >= x }},
		"BEGINS_WITH": {"begins_with (b, :x)", func(key, x, _ string) bool { return strings.HasPrefix(key, x) }},
		"BETWEEN":     {"b between :x and :y", func(key, x, y string) bool { return x <= key && key <= y }},
	}
	rapid.Check(t, func(rt *rapid.T) {
		hash := rapid.SampledFrom(words).Draw(rt, "hash")
		operator := rapid.SampledFrom(sortedKeys(operators)).Draw(rt, "operator")
		x, y := rapid.SampledFrom(words).Draw(rt, "x"), rapid.SampledFrom(words).Draw(rt, "y")
		x, y = min(x, y), max(x, y)
		backward := rapid.Bool().Draw(rt, "backward")
		var want []string
		for _, key := range all[hash] {
			if operators[operator].holds(key, x, y) {
				want = append(want, key)
			}
		}
		if backward {
			slices.Reverse(want)
		}
		values := fmt.Sprintf(`{":h":{"S":%q},":x":{"S":%q}}`, hash, x)
		list := fmt.Sprintf(`[{"S":%q}]`, x)
		if operator == "BETWEEN" {
			values = fmt.Sprintf(`{":h":{"S":%q},":x":{"S":%q},":y":{"S":%q}}`, hash, x, y)
			list = fmt.Sprintf(`[{"S":%q},{"S":%q}]`, x, y)
		}
		condition := fmt.Sprintf(`"KeyConditionExpression":"a = :h AND %s","ExpressionAttributeValues":%s`,
			operators[operator].text, values)
		if rapid.Bool().Draw(rt, "older") {
			condition = fmt.Sprintf(`"KeyConditions":{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":%q}]},
				"b":{"ComparisonOperator":%q,"AttributeValueList":%s}}`, hash, operator, list)
		}
		if limit := rapid.IntRange(0, 3).Draw(rt, "limit"); limit > 0 && operator != "EQ" {
			condition += fmt.Sprintf(`,"Limit":%d`, limit)
		}
		var got []string
		start := ""
		for {
			var page struct {
				Items            []map[string]map[string]string
				LastEvaluatedKey json.RawMessage
			}
			answer := s.mustAsk(t, "Query", fmt.Sprintf(`{"TableName":"abc","ScanIndexForward":%v,%s%s}`,
				!backward, condition, start))
			if err := json.Unmarshal([]byte(answer), &page); err != nil {
				rt.Fatal(err)
			}
			for _, item := range page.Items {
				got = append(got, item["b"]["S"])
			}
			if page.LastEvaluatedKey == nil {
				break
			}
			start = `,"ExclusiveStartKey":` + string(page.LastEvaluatedKey)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%s: %q, want %q", condition, got, want)
		}
	})
}

func FuzzKeyConditions(f *testing.F) {
	f.Add("a = :x AND b BETWEEN :x AND :x", `{"a":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"a"}]}}`)
	f.Add("begins_with(a, :x) and :x <= b", `{"a":{"ComparisonOperator":"NULL"}}`)
	f.Add("not (a = :x or size(b) > :x)", `{"b":{"ComparisonOperator":"BEGINS_WITH","AttributeValueList":[{"B":"AA=="}]}}`)
	schema := itemstore.Schema{
		Hash:  itemstore.KeyAttribute{Name: "a", Kind: itemstore.KindString},
		Range: itemstore.KeyAttribute{Name: "b", Kind: itemstore.KindString},
	}
	item := itemstore.Item{"a": itemstore.String("v"), "b": itemstore.String("v")}
	f.Fuzz(func(t *testing.T, text, older string) {
		ph := newPlaceholders(nil, map[string]itemstore.Value{":x": itemstore.String("v")})
		if expression, err := parseCondition("KeyConditionExpression", text, ph); err == nil {
			keys, err := expressedKeys(expression)
			if err == nil && keys.check(schema) == nil {
				// The expression must hold for the same items as its key conditions.
				all := true
				for _, k := range keys {
					all = all && k.condition().holds(item)
				}
				if all != expression.holds(item) {
					t.Fatalf("%s: %v as key conditions", text, all)
				}
				keys.narrow(schema, &itemstore.Range{})
			}
		}
		m := parseMembers("Query", []byte(`{"KeyConditions":`+older+`}`))
		raw := m.take("KeyConditions")
		if !raw.isThere() {
			return
		}
		if keys, err := legacyKeys(raw); err == nil && keys.check(schema) == nil {
			keys.narrow(schema, &itemstore.Range{})
		}
	})
}
