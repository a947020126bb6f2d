package dynamo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestUnits: each call adds the units that it reports, and a refused write those of the item that
// is there.
func TestUnits(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	s.mustAsk(t, "UpdateTable", `{"TableName":"leases",`+ownerIndex+`}`)
	big := func(key string, size int) string {
		return fmt.Sprintf(`{"leaseKey":{"S":%q},"data":{"S":%q}}`, key, strings.Repeat("x", size))
	}
	const key, absent = `"Key":{"leaseKey":{"S":"a"}}`, `"ConditionExpression":"attribute_not_exists(leaseKey)"`
	const owner = `"UpdateExpression":"SET leaseOwner = :o","ExpressionAttributeValues":{":o":{"S":"w1"}}`
	check := func(condition string) string {
		return `{"ConditionCheck":{"TableName":"leases",` + key + `,"ConditionExpression":"` + condition + `(leaseKey)"}}`
	}
	put := `{"Put":{"TableName":"leases","Item":` + big("b", 100) + `}}`
	for _, c := range []struct {
		name, operation, body, answer string
		read, write                   float64
	}{
		{"a write", "PutItem", `"Item":` + big("a", 2500), "{}", 0, 3},
		{"a smaller item", "PutItem", `"Item":` + big("a", 100), "{}", 0, 3},
		{"a larger item", "PutItem", `"Item":` + big("a", 5000), "{}", 0, 5},
		{"a condition that does not hold", "PutItem", `"Item":` + big("a", 1) + `,` + absent, "ConditionalCheckFailed", 0, 5},
		{
			"one on a missing item", "DeleteItem", `"Key":{"leaseKey":{"S":"no"}},"ConditionExpression":"attribute_exists(leaseKey)"`,
			"ConditionalCheckFailed", 0, 1,
		},
		{"a deletion of a missing item", "DeleteItem", `"Key":{"leaseKey":{"S":"no"}}`, "{}", 0, 1},
		{"an entry in the index", "UpdateItem", key + `,` + owner, "{}", 0, 6},
		{"no change in the index", "UpdateItem", key + `,` + owner, "{}", 0, 5},
		{"another key in the index", "UpdateItem", key + `,` + strings.Replace(owner, "w1", "w2", 1), "{}", 0, 7},
		{"an invalid call", "UpdateItem", key + `,"UpdateExpression":"SET"`, "ValidationException", 0, 0},
		{"a missing table", "PutItem", `"TableName":"none","Item":` + big("a", 2500), "", 0, 0},
		{"a read", "GetItem", key, `{"Item"`, 1, 0},
		{"a consistent read", "GetItem", key + `,"ConsistentRead":true`, `{"Item"`, 2, 0},
		{"a read of a missing item", "GetItem", `"Key":{"leaseKey":{"S":"no"}}`, "{}", 0.5, 0},
		{"a query of the index", "Query", `"IndexName":"LeaseOwnerToLeaseKeyIndex","KeyConditionExpression":"leaseOwner = :o",
			"ExpressionAttributeValues":{":o":{"S":"w2"}}`, `{"Count":1`, 0.5, 0},
		{"a query without a result", "Query", `"IndexName":"LeaseOwnerToLeaseKeyIndex","KeyConditionExpression":"leaseOwner = :o",
			"ExpressionAttributeValues":{":o":{"S":"w9"}}`, `{"Count":0`, 0.5, 0},
		{"a scan with a filter", "Scan", `"FilterExpression":"attribute_exists(nothing)","ConsistentRead":true`, `{"Count":0,"ScannedCount":1`, 2, 0},
		{"a transaction", "TransactWriteItems", `"TransactItems":[` + check("attribute_exists") + `,` + put + `]`, "{}", 0, 2*5 + 2},
		{
			"a cancelled transaction", "TransactWriteItems", `"TransactItems":[` + check("attribute_not_exists") + `,` + put + `]`,
			"TransactionCanceledException", 0, 2*5 + 2,
		},
		{"a transaction with a token", "TransactWriteItems", `"ClientRequestToken":"t","TransactItems":[` + put + `]`, "{}", 0, 2},
		{"it again", "TransactWriteItems", `"ClientRequestToken":"t","TransactItems":[` + put + `]`, "{}", 2, 0},
	} {
		before := s.Uses()[0]
		body := c.body
		if !strings.Contains(body, `"TableName"`) {
			body = `"TableName":"leases",` + body
		}
		if got := s.ask(t, c.operation, "{"+body+"}"); !strings.HasPrefix(got, c.answer) {
			t.Errorf("%s: got %.200s", c.name, got)
		}
		after := s.Uses()[0]
		if read, write := after.Read-before.Read, after.Write-before.Write; read != c.read || write != c.write {
			t.Errorf("%s used %v and %v units, want %v and %v", c.name, read, write, c.read, c.write)
		}
	}
	s.mustAsk(t, "DeleteTable", `{"TableName":"leases"}`)
	s.mustAsk(t, "CreateTable", leaseTable)
	if uses := s.Uses(); len(uses) != 1 || uses[0].Table != "leases" || uses[0].Read+uses[0].Write != 0 {
		t.Errorf("a table that is made again: %+v", uses)
	}
}
