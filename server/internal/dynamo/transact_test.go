package dynamo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
)

// transact returns a body with these items.
func transact(more string, items ...string) string {
	return `{` + more + `"TransactItems":[` + strings.Join(items, ",") + `]}`
}

func TestTransactWriteItems(t *testing.T) {
	s := newRangeTable(t)
	s.mustAsk(t, "PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"Leader"},"ownerName":{"S":"me"}}}`)
	// The migration of KCL 3.0-3.4 to 3.5.
	const (
		check = `{"ConditionCheck":{"TableName":"leases","Key":{"leaseKey":{"S":"Leader"}},"ConditionExpression":"ownerName = :owner",
			"ExpressionAttributeValues":{":owner":{"S":"me"}},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}}`
		put = `{"Put":{"TableName":"leases","Item":{"leaseKey":{"S":"new"}},"ConditionExpression":"attribute_not_exists(leaseKey)",
			"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}}`
		update = `{"Update":{"TableName":"abc","Key":{"a":{"S":"h"},"b":{"S":"k"}},"UpdateExpression":"ADD n :one SET c = :c",
			"ExpressionAttributeValues":{":one":{"N":"1"},":c":{"S":"x"}}}}`
		remove = `{"Delete":{"TableName":"leases","Key":{"leaseKey":{"S":"gone"}}}}`
	)
	other := strings.Replace(check, `"me"`, `"you"`, 1)
	none := `{"Code":"None"}`
	bad := func(code, text string) string { return fmt.Sprintf(`{"Code":%q,"Message":%q}`, code, text) }
	reasons := func(t *testing.T, body, codes, want string) {
		t.Helper()
		_, err := s.Serve(t.Context(), call("TransactWriteItems", body))
		var fault *wire.Error
		if !errors.As(err, &fault) || fault.Code != namespace+"TransactionCanceledException" ||
			fault.Message != "Transaction cancelled, please refer cancellation reasons for specific reasons ["+codes+"]" {
			t.Fatalf("%v", err)
		}
		var a answer
		if err := a.value("r", fault.Extra["CancellationReasons"]); err != nil {
			t.Fatal(err)
		}
		if got := string(a.bytes()); got != `{"r":[`+want+`]}` {
			t.Errorf("%s\nwant [%s]", got, want)
		}
	}
	run(t, s, []exchange{
		{"TransactWriteItems", transact(`"ReturnConsumedCapacity":"INDEXES",`, check, put, update, remove), `{"ConsumedCapacity":[` +
			`{"TableName":"abc","CapacityUnits":4,"WriteCapacityUnits":4,"Table":{"CapacityUnits":2,"WriteCapacityUnits":2},` +
			`"GlobalSecondaryIndexes":{"index3":{"CapacityUnits":2,"WriteCapacityUnits":2}}},` +
			`{"TableName":"leases","CapacityUnits":6,"WriteCapacityUnits":6,"Table":{"CapacityUnits":6,"WriteCapacityUnits":6}}]}`},
		{"GetItem", `{"TableName":"leases","Key":{"leaseKey":{"S":"new"}}}`, `{"Item":{"leaseKey":{"S":"new"}}}`},
	})
	reasons(t, transact(``, update, put, remove, other), "None, ConditionalCheckFailed, None, ConditionalCheckFailed",
		none+`,{"Code":"ConditionalCheckFailed","Item":{"leaseKey":{"S":"new"}},"Message":"The conditional request failed"},`+none+
			`,{"Code":"ConditionalCheckFailed","Item":{"leaseKey":{"S":"Leader"},"ownerName":{"S":"me"}},"Message":"The conditional request failed"}`)
	reasons(t, transact(``, strings.Replace(other, `"ALL_OLD"`, `"NONE"`, 1)), "ConditionalCheckFailed",
		bad("ConditionalCheckFailed", "The conditional request failed"))
	run(t, s, []exchange{{"GetItem", `{"TableName":"abc","Key":{"a":{"S":"h"},"b":{"S":"k"}},"ProjectionExpression":"n"}`, `{"Item":{"n":{"N":"1"}}}`}})

	invalid := "One or more parameter values were invalid: "
	for _, test := range []struct{ item, code, text string }{
		{`{"Put":{"TableName":"leases","Item":{"x":{"S":"a"}}}}`, "ValidationError", invalid + "Missing the key leaseKey in the item"},
		{`{"Delete":{"TableName":"leases","Key":{"x":{"S":"a"}}}}`, "ValidationError", "The provided key element does not match the schema"},
		{strings.Replace(update, "ADD n :one SET c = :c", "ADD c :one SET d = :c", 1), "ValidationError", "An operand in the update expression has an incorrect data type"},
		{strings.Replace(update, "ADD n :one SET c = :c", "ADD n :one SET a = :c", 1), "ValidationError", invalid + "Cannot update attribute a. This attribute is part of the key"},
		{strings.Replace(update, "ADD n :one SET c = :c", "ADD n :one SET d = :c", 1), "ValidationError", invalid + "Type mismatch for Index Key d Expected: N Actual: S IndexName: index4"},
		{`{"Put":{"TableName":"abc","Item":{"a":{"S":"a"},"b":{"S":"b"},"c":{"L":[]}}}}`, "ValidationError", invalid + "Type mismatch for Index Key c Expected: S Actual: L IndexName: index3"},
		{`{"Put":{"TableName":"leases","Item":{"leaseKey":{"S":"a"},"v":{"S":"` + strings.Repeat("x", 400<<10) + `"}}}}`, "ValidationError", "Item size has exceeded the maximum allowed size"},
	} {
		reasons(t, transact(``, remove, test.item), "None, "+test.code, none+`,`+bad(test.code, test.text))
	}
	token := func(n int) string { return `"ClientRequestToken":"` + strings.Repeat("t", n) + `",` }
	for body, want := range map[string]string{
		`{}`:                            "Value null at 'transactItems' failed to satisfy constraint: Member must not be null",
		transact(``):                    "Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or equal to 1",
		transact(``, many(101, put)...): "Value at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100",
		transact(``, `{}`):              "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
		transact(``, `null`):            "SerializationException",
		transact(token(37), put):        "Member must have length between 1 and 36",
		transact(token(0), put):         "Member must have length between 1 and 36",
		transact(``, put, remove, put):  "ValidationException: Transaction request cannot include multiple operations on one item",
		transact(``, `{"Get":{}}`):      "Invalid Request: TransactWriteRequest should contain",
		transact(``, `{"Put":{}}`):      "2 validation errors detected: Value null at 'transactItems.1.member.put.tableName' failed to satisfy constraint: Member must not be null; Value null at 'transactItems.1.member.put.item'",
		transact(``, `{"Update":{"TableName":"abc","Key":{"a":{"S":"h"},"b":{"S":"k"}}}}`):                    "Value null at 'transactItems.1.member.update.updateExpression'",
		transact(``, `{"ConditionCheck":{"TableName":"abc","Key":{"a":{"S":"h"},"b":{"S":"k"}}}}`):            "Value null at 'transactItems.1.member.conditionCheck.conditionExpression'",
		transact(``, put[:len(put)-1]+`,`+remove[1:]):                                                         "TransactItems can only contain one of Check, Put, Update or Delete",
		transact(``, strings.Replace(put, "attribute_not_exists(leaseKey)", "nonsense", 1)):                   "Invalid ConditionExpression: Syntax error",
		transact(``, strings.Replace(update, "ADD n :one", "ADD n :two", 1)):                                  "An expression attribute value used in expression is not defined; attribute value: :two",
		transact(``, strings.Replace(update, "SET c = :c", "", 1)):                                            "unused in expressions: keys: {:c}",
		transact(``, remove, strings.Replace(put, `"leases"`, `"none"`, 1)):                                   "ResourceNotFoundException: Requested resource not found",
		transact(``, remove, `{"Put":{"TableName":"abc","Item":{"a":{"S":"a"},"b":{"S":"b"},"c":{"S":""}}}}`): "ValidationException: One or more parameter values are not valid. A value specified for a secondary index key",
		transact(``, remove, strings.Replace(update, `{"S":"x"}`, `{"S":""}`, 1)):                             "The update expression attempted to update a secondary index key",
		transact(``, remove, `{"Put":{"TableName":"leases","Item":{"leaseKey":{"S":""}}}}`):                   "cannot contain an empty string value. Key: leaseKey",
		transact(`"ReturnItemCollectionMetrics":"SOME",`, put):                                                "ReturnItemCollectionMetrics is not supported",
	} {
		if got := s.ask(t, "TransactWriteItems", body); !strings.Contains(got, want) {
			t.Errorf("%.200s: %s, want %s", body, got, want)
		}
	}
	heavy := make([]string, 12)
	for i := range heavy {
		heavy[i] = fmt.Sprintf(`{"Put":{"TableName":"leases","Item":{"leaseKey":{"S":"h%d"},"v":{"S":%q}}}}`, i, strings.Repeat("x", 390<<10))
	}
	if got := s.ask(t, "TransactWriteItems", transact(``, heavy...)); !strings.Contains(got, "aggregate size") {
		t.Error(got)
	}
	if got := s.mustAsk(t, "Scan", `{"TableName":"leases","Select":"COUNT"}`); got != `{"Count":2,"ScannedCount":2}` {
		t.Errorf("a refused transaction changed something: %s", got)
	}
}

func many(n int, item string) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(item, `"new"`, fmt.Sprintf(`"new%d"`, i))
	}
	return items
}

func TestTransactionOfHundred(t *testing.T) {
	s := newRangeTable(t)
	put := `{"Put":{"TableName":"leases","Item":{"leaseKey":{"S":"new"}}}}`
	s.mustAsk(t, "TransactWriteItems", transact(``, many(100, put)...))
	if got := s.mustAsk(t, "Scan", `{"TableName":"leases","Select":"COUNT"}`); got != `{"Count":100,"ScannedCount":100}` {
		t.Error(got)
	}
}

// TestClientRequestToken sends a request twice, before and after a loss of power.
func TestClientRequestToken(t *testing.T) {
	fs := vfs.NewCrashable()
	s := newService(t, fs, "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	const add = `{"Update":{"TableName":"leases","Key":{"leaseKey":{"S":"a"}},"UpdateExpression":"ADD n :one","ExpressionAttributeValues":{":one":{"N":"1"}}}}`
	const reordered = `{"Update": {"UpdateExpression":"ADD n :one","Key":{"leaseKey":{"S":"a"}},"TableName":"leases","ExpressionAttributeValues":{":one":{"N":"1"}}}}`
	const token = `"ClientRequestToken":"token","ReturnConsumedCapacity":"TOTAL",`
	const get = `{"TableName":"leases","Key":{"leaseKey":{"S":"a"}},"AttributesToGet":["n"]}`
	again := `{"ConsumedCapacity":[{"TableName":"leases","CapacityUnits":2,"ReadCapacityUnits":2}]}`
	run(t, s, []exchange{
		{"TransactWriteItems", transact(token, add), `{"ConsumedCapacity":[{"TableName":"leases","CapacityUnits":2,"WriteCapacityUnits":2}]}`},
		{"TransactWriteItems", transact(token, add), again},
		{"TransactWriteItems", transact(token, reordered), again},
		{"TransactWriteItems", transact(token, strings.Replace(add, `"N":"1"`, `"N":"2"`, 1)), "IdempotentParameterMismatchException"},
		{"GetItem", get, `{"Item":{"n":{"N":"1"}}}`},
	})
	s = newService(t, fs.Crash(rand.New(rand.NewPCG(3, 4))), "data")
	run(t, s, []exchange{
		{"TransactWriteItems", transact(token, add), again},
		{"GetItem", get, `{"Item":{"n":{"N":"1"}}}`},
		{"TransactWriteItems", transact(`"ClientRequestToken":"other",`, add), `{}`},
		{"TransactWriteItems", transact(``, add), `{}`},
		{"GetItem", get, `{"Item":{"n":{"N":"3"}}}`},
	})
	elsewhere := call("TransactWriteItems", transact(token, add))
	elsewhere.World.Region = "eu-west-1"
	if _, err := s.Serve(t.Context(), elsewhere); err == nil {
		t.Error("another region has the same tokens")
	}
}
