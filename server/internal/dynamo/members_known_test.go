package dynamo

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestKnownMembers compares the table with the SDK's types, so that a newer SDK reveals new
// members of the API.
func TestKnownMembers(t *testing.T) {
	inputs := []any{
		dynamodb.CreateTableInput{},
		dynamodb.UpdateTableInput{},
		dynamodb.DeleteTableInput{},
		dynamodb.DescribeTableInput{},
		dynamodb.DescribeContinuousBackupsInput{},
		dynamodb.UpdateContinuousBackupsInput{},
		dynamodb.ListTablesInput{},
		dynamodb.GetItemInput{},
		dynamodb.PutItemInput{},
		dynamodb.DeleteItemInput{},
		dynamodb.UpdateItemInput{},
		dynamodb.QueryInput{},
		dynamodb.ScanInput{},
		dynamodb.TransactWriteItemsInput{},
		types.TransactWriteItem{},
		types.ConditionCheck{},
		types.Delete{},
		types.Put{},
		types.Update{},
		types.GlobalSecondaryIndex{},
		types.CreateGlobalSecondaryIndexAction{},
		types.UpdateGlobalSecondaryIndexAction{},
		types.DeleteGlobalSecondaryIndexAction{},
		types.GlobalSecondaryIndexUpdate{},
		types.Projection{},
		types.PointInTimeRecoverySpecification{},
		types.AttributeValueUpdate{},
		types.Condition{},
		types.ExpectedAttributeValue{},
	}
	if len(inputs) != len(known) {
		t.Errorf("%d structures, want %d", len(known), len(inputs))
	}
	for _, input := range inputs {
		shape := reflect.TypeOf(input)
		name := shape.Name()
		if shape.PkgPath() == reflect.TypeFor[dynamodb.ScanInput]().PkgPath() {
			name = name[:len(name)-len("Input")]
		}
		var want []string
		for i := range shape.NumField() {
			if field := shape.Field(i); field.IsExported() {
				want = append(want, field.Name)
			}
		}
		got := slices.Clone(known[name])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, want)
		}
		if _, answered := operations[name]; shape.PkgPath() != reflect.TypeFor[types.Put]().PkgPath() && !answered {
			t.Errorf("there is no operation %s", name)
		}
	}
}

// TestNoKnownMemberIsIgnored gives every operation each of its members with a value of a wrong
// shape: the operation must refuse each, supported or not. An operation ignores a member that
// DynamoDB does not know.
func TestNoKnownMemberIsIgnored(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	minimal := map[string]string{
		"CreateTable":               leaseTable[1 : len(leaseTable)-1],
		"UpdateTable":               `"TableName":"leases","DeletionProtectionEnabled":false`,
		"DescribeTable":             `"TableName":"leases"`,
		"DeleteTable":               `"TableName":"leases"`,
		"DescribeContinuousBackups": `"TableName":"leases"`,
		"UpdateContinuousBackups": `"TableName":"leases","PointInTimeRecoverySpecification":
			{"PointInTimeRecoveryEnabled":true}`,
		"ListTables": `"Limit":1`,
		"GetItem":    `"TableName":"leases","Key":{"leaseKey":{"S":"a"}}`,
		"PutItem":    `"TableName":"leases","Item":{"leaseKey":{"S":"a"}}`,
		"UpdateItem": `"TableName":"leases","Key":{"leaseKey":{"S":"a"}}`,
		"DeleteItem": `"TableName":"leases","Key":{"leaseKey":{"S":"a"}}`,
		"Query": `"TableName":"leases","KeyConditionExpression":"leaseKey = :a",
			"ExpressionAttributeValues":{":a":{"S":"a"}}`,
		"Scan": `"TableName":"leases"`,
		"TransactWriteItems": `"TransactItems":[{"Delete":{"TableName":"leases",
			"Key":{"leaseKey":{"S":"a"}}}}]`,
	}
	odd := `[[{}]]` // no member of DynamoDB's is a list of lists
	for operation := range operations {
		for _, member := range known[operation] {
			// Of two members of one name the later one counts, as in every JSON reader.
			body := fmt.Sprintf(`{%s,%q:%s}`, minimal[operation], member, odd)
			got := s.ask(t, operation, body)
			if !slices.ContainsFunc([]string{"SerializationException", "ValidationException"},
				func(code string) bool { return len(got) > len(code) && got[:len(code)] == code }) {
				t.Errorf("%s: %s is ignored: %s", operation, member, got)
			}
		}
		if operation == "CreateTable" || operation == "DeleteTable" {
			continue
		}
		body := fmt.Sprintf(`{%s,"NobodyKnowsThis":%s}`, minimal[operation], odd)
		s.mustAsk(t, operation, body)
	}
	run(t, s, []exchange{
		{"CreateTable", `{"TableName":"x","WarmThroughput":{"ReadUnitsPerSecond":1}}`, "WarmThroughput is not supported by this server (runnel)"},
		{
			"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"leases","Item":{"leaseKey":{"S":"a"}},"Expected":{}}}]}`,
			`{}`, // which a Put of a transaction does not have
		},
		{"UpdateTable", `{"TableName":"leases","GlobalSecondaryIndexUpdates":[{"Create":{"WarmThroughput":{}}}]}`, "WarmThroughput is not supported"},
	})
}
