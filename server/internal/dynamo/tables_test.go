package dynamo

import (
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

const pairTable = `{"TableName":"pairs","ProvisionedThroughput":
	{"ReadCapacityUnits":5,"WriteCapacityUnits":6},"AttributeDefinitions":[
	{"AttributeName":"at","AttributeType":"N"},{"AttributeName":"id","AttributeType":"B"}],
	"KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"at","KeyType":"RANGE"}]}`

func TestTables(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	description := func(status string) string {
		return `{"AttributeDefinitions":[{"AttributeName":"leaseKey","AttributeType":"S"}],` +
			`"TableName":"leases","KeySchema":[{"AttributeName":"leaseKey","KeyType":"HASH"}],` +
			`"TableStatus":"` + status + `","CreationDateTime":1500000000.250,` +
			`"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":0,` +
			`"WriteCapacityUnits":0},"TableSizeBytes":0,"ItemCount":0,` +
			`"TableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/leases","TableId":"`
	}
	run(t, s, []exchange{
		{"ListTables", `{}`, `{"TableNames":[]}`},
		{
			"DescribeTable", `{"TableName":"leases"}`,
			"ResourceNotFoundException: Requested resource not found: Table: leases not found",
		},
		{"CreateTable", leaseTable, `{"TableDescription":` + description("CREATING") + "…"},
		{"CreateTable", leaseTable, "ResourceInUseException: Table already exists: leases"},
		{"DescribeTable", `{"TableName":"leases"}`, `{"Table":` + description("ACTIVE") + "…"},
		{
			"DescribeTable", `{"TableName":"arn:aws:dynamodb:us-east-1:000000000000:table/leases"}`,
			`{"Table":` + description("ACTIVE") + "…",
		},
		{
			"DescribeTable", `{"TableName":"arn:aws:dynamodb:us-west-2:000000000000:table/leases"}`,
			"ResourceNotFoundException",
		},
		{"CreateTable", pairTable, `{"TableDescription":…`},
		{"ListTables", `{}`, `{"TableNames":["leases","pairs"]}`},
		{"ListTables", `{"Limit":1}`, `{"TableNames":["leases"],"LastEvaluatedTableName":"leases"}`},
		{"ListTables", `{"ExclusiveStartTableName":"leases"}`, `{"TableNames":["pairs"]}`},
		{"ListTables", `{"Limit":101}`, "Value '101' at 'limit' failed to satisfy constraint"},
		{
			"UpdateTable", `{"TableName":"leases","DeletionProtectionEnabled":true}`,
			`{"TableDescription":` + description("UPDATING") + "…",
		},
		{"DeleteTable", `{"TableName":"leases"}`, "currently protected against deletion"},
		{
			"UpdateTable", `{"TableName":"leases","DeletionProtectionEnabled":false}`,
			`{"TableDescription":…`,
		},
		{"UpdateTable", `{"TableName":"leases","BillingMode":"PROVISIONED"}`, "must both be specified"},
		{"UpdateTable", `{"TableName":"leases"}`, "At least one of"},
		{
			"DeleteTable", `{"TableName":"leases"}`,
			`{"TableDescription":` + description("DELETING") + "…",
		},
		{
			"DeleteTable", `{"TableName":"leases"}`,
			"ResourceNotFoundException: Requested resource not found: Table: leases not found",
		},
		{
			"GetItem", `{"TableName":"leases","Key":{"leaseKey":{"S":"a"}}}`,
			"ResourceNotFoundException: Requested resource not found",
		},
		{
			"BatchGetItem", `{}`,
			"UnknownOperationException: runnel's DynamoDB subset has no operation BatchGetItem",
		},
	})
	other := call("ListTables", `{}`)
	other.World.Region = "eu-west-1"
	if got, err := s.Serve(t.Context(), other); err != nil || string(got.Body) != `{"TableNames":[]}` {
		t.Errorf("another region: %s, %v", got, err)
	}
}

func TestTableFaults(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	for _, test := range []struct{ old, new, want string }{
		{`"TableName":"leases",`, ``, "1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null"},
		{`"leases"`, `"le"`, "1 validation error detected: Value 'le' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3"},
		{`"leases"`, `"le ases"`, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{`"leases"`, `"arn:aws:dynamodb:us-east-1:000000000000:table/leases"`, "regular expression"},
		{`"leases"`, `7`, "SerializationException: NUMBER_VALUE can not be converted to String"},
		{`"BillingMode":"PAY_PER_REQUEST",`, ``, "No provisioned throughput specified"},
		{`"PAY_PER_REQUEST"`, `"FREE"`, "Value 'FREE' at 'billingMode' failed to satisfy constraint"},
		{`"PAY_PER_REQUEST"`, `"PAY_PER_REQUEST","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, "Neither ReadCapacityUnits nor"},
		{`"PAY_PER_REQUEST"`, `"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":0}`, "2 validation errors detected: Value '0' at 'provisionedThroughput.readCapacityUnits'"},
		{`"HASH"`, `"RANGE"`, "Invalid KeySchema"},
		{`"AttributeType":"S"`, `"AttributeType":"SS"`, "Value 'SS' at 'attributeDefinitions.1.member.attributeType'"},
		{`"AttributeName":"leaseKey","AttributeType"`, `"AttributeName":"other","AttributeType"`, "not defined in AttributeDefinitions. Keys: [leaseKey]"},
		{`"AttributeType":"S"}`, `"AttributeType":"S"},{"AttributeName":"x","AttributeType":"S"}`, "Number of attributes in KeySchema does not exactly match"},
		{`"BillingMode"`, `"LocalSecondaryIndexes":[{}],"BillingMode"`, "LocalSecondaryIndexes is not supported by this server"},
		{`"BillingMode"`, `"StreamSpecification":{"StreamEnabled":true},"BillingMode"`, "StreamSpecification is not supported"},
		{`"BillingMode"`, `"ResourcePolicy":"x","BillingMode"`, "ResourcePolicy is not supported"},
		{`"BillingMode"`, `"Tags":[{"Key":"a","Value":"b"},{"Key":"a","Value":"b"}],"BillingMode"`, "keys must be unique"},
	} {
		got := s.ask(t, "CreateTable", strings.Replace(leaseTable, test.old, test.new, 1))
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.new, got, test.want)
		}
	}
	harmless := `"Tags":[{"Key":"a","Value":"b"}],"GlobalSecondaryIndexes":null,` +
		`"StreamSpecification":{ "StreamEnabled" : false },"SSESpecification":{"Enabled":false},` +
		`"TableClass":"STANDARD","DeletionProtectionEnabled":false,"BillingMode"`
	s.mustAsk(t, "CreateTable", strings.Replace(leaseTable, `"BillingMode"`, harmless, 1))
}
