package dynamo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// ownerIndex is the index that KCL 3 creates when it starts.
const ownerIndex = `"AttributeDefinitions":[{"AttributeName":"leaseOwner","AttributeType":"S"},
	{"AttributeName":"leaseKey","AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[{"Create":{
	"IndexName":"LeaseOwnerToLeaseKeyIndex","Projection":{"ProjectionType":"KEYS_ONLY"},"KeySchema":[
	{"AttributeName":"leaseOwner","KeyType":"HASH"},{"AttributeName":"leaseKey","KeyType":"RANGE"}]}}]`

const ownedLeases = `{"TableName":"leases","IndexName":"LeaseOwnerToLeaseKeyIndex",
	"KeyConditionExpression":"leaseOwner = :leaseOwner","ExpressionAttributeValues":{":leaseOwner":{"S":"w1"}}}`

// TestLeaseOwnerIndex uses the index like KCL 3, and loses power.
func TestLeaseOwnerIndex(t *testing.T) {
	fs := vfs.NewCrashable()
	s := newService(t, fs, "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	for i := range 4 {
		s.mustAsk(t, "PutItem", fmt.Sprintf(`{"TableName":"leases","Item":{"leaseKey":{"S":"k%d"},
			"leaseOwner":{"S":"w%d"},"leaseCounter":{"N":"1"}}}`, i, i%2))
	}
	s.mustAsk(t, "PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"Leader"}}}`)
	description := func(status, more string) string {
		return `"GlobalSecondaryIndexes":[{"IndexName":"LeaseOwnerToLeaseKeyIndex","KeySchema":[` +
			`{"AttributeName":"leaseOwner","KeyType":"HASH"},{"AttributeName":"leaseKey","KeyType":"RANGE"}],` +
			`"Projection":{"ProjectionType":"KEYS_ONLY"},"IndexStatus":"` + status + `",` + more +
			`"ProvisionedThroughput":{"NumberOfDecreasesToday":0,"ReadCapacityUnits":0,"WriteCapacityUnits":0},` +
			`"IndexSizeBytes":88,"ItemCount":4,"IndexArn":` +
			`"arn:aws:dynamodb:us-east-1:000000000000:table/leases/index/LeaseOwnerToLeaseKeyIndex"}]`
	}
	if got := s.mustAsk(t, "UpdateTable", `{"TableName":"leases",`+ownerIndex+`}`); !strings.Contains(got, description("CREATING", `"Backfilling":false,`)) {
		t.Errorf("%s", got)
	}
	s = newService(t, fs.Crash(rand.New(rand.NewPCG(1, 2))), "data")
	got := s.mustAsk(t, "DescribeTable", `{"TableName":"leases"}`)
	if !strings.Contains(got, description("ACTIVE", "")) || !strings.Contains(got,
		`[{"AttributeName":"leaseKey","AttributeType":"S"},{"AttributeName":"leaseOwner","AttributeType":"S"}]`) {
		t.Errorf("%s", got)
	}
	const lease = `"TableName":"leases","Key":{"leaseKey":{"S":"k1"}},"ReturnConsumedCapacity":"INDEXES"`
	one := func(units int, index string) string {
		return fmt.Sprintf(`"ConsumedCapacity":{"TableName":"leases","CapacityUnits":%d,"Table":{"CapacityUnits":1}%s}}`, units, index)
	}
	moved := func(units int) string {
		return fmt.Sprintf(`,"GlobalSecondaryIndexes":{"LeaseOwnerToLeaseKeyIndex":{"CapacityUnits":%d}}`, units)
	}
	run(t, s, []exchange{
		{"Query", ownedLeases, `{"Count":2,"ScannedCount":2,"Items":[{"leaseKey":{"S":"k1"},"leaseOwner":{"S":"w1"}},{"leaseKey":{"S":"k3"},"leaseOwner":{"S":"w1"}}]}`},
		// A renewal does not write to the index; another owner writes to it twice, none once.
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"leaseCounter":{"Action":"ADD","Value":{"N":"1"}}}}`, `{` + one(1, "")},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"leaseOwner":{"Value":{"S":"w7"}}}}`, `{` + one(3, moved(2))},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"leaseOwner":{"Action":"DELETE"}}}`, `{` + one(2, moved(1))},
		{"Query", ownedLeases, `{"Count":1,"ScannedCount":1,"Items":[{"leaseKey":{"S":"k3"},"leaseOwner":{"S":"w1"}}]}`},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"leaseOwner":{"Value":{"S":"w1"}}}}`, `{` + one(2, moved(1))},
		{"Query", strings.Replace(ownedLeases, `{"TableName"`, `{"ConsistentRead":true,"TableName"`, 1), "Consistent reads are not supported on global secondary indexes"},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"leaseOwner":{"Value":{"N":"1"}}}}`, "One or more parameter values were invalid: Type mismatch for Index Key leaseOwner Expected: S Actual: N IndexName: LeaseOwnerToLeaseKeyIndex"},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"leaseOwner":{"Value":{"S":""}}}}`, "The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty string value."},
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"k1"},"leaseOwner":{"S":""}}}`, "A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty string value. IndexName: LeaseOwnerToLeaseKeyIndex, IndexKey: leaseOwner"},
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"k1"},"leaseOwner":{"S":"` + strings.Repeat("x", 2049) + `"}}}`, "has exceeded the maximum size limit"},
		{"DeleteItem", `{` + lease + `}`, `{` + one(2, moved(1))},
		{"Query", ownedLeases, `{"Count":1,…`},
		{"UpdateTable", `{"TableName":"leases",` + ownerIndex + `}`, "ValidationException: Attempting to create an index which already exists"},
		{"UpdateTable", `{"TableName":"leases","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"LeaseOwnerToLeaseKeyIndex"}}]}`, `"IndexStatus":"DELETING"`},
		{"Query", ownedLeases, "The table does not have the specified index: LeaseOwnerToLeaseKeyIndex"},
		{"UpdateTable", `{"TableName":"leases",` + ownerIndex + `}`, `"IndexStatus":"CREATING"`},
		{"Query", ownedLeases, `{"Count":1,…`},
	})
}

func TestIndexFaults(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	for _, test := range []struct{ old, new, want string }{
		{`"GlobalSecondaryIndexes":[`, `"GlobalSecondaryIndexes":[],"x":[`, "One or more parameter values were invalid: List of GlobalSecondaryIndexes is empty"},
		{`"index4"`, `"index3"`, "Duplicate index name: index3"},
		{`"index4"`, `"x;"`, "Value 'x;' at 'globalSecondaryIndexes.2.member.indexName' failed to satisfy constraint"},
		{`"ProjectionType":"ALL"`, `"ProjectionType":"SOME"`, "Value 'SOME' at 'globalSecondaryIndexes.1.member.projection.projectionType' failed"},
		{`"ProjectionType":"ALL"`, ``, "Unknown ProjectionType: null"},
		{`"ProjectionType":"ALL"`, `"ProjectionType":"KEYS_ONLY","NonKeyAttributes":["z"]`, "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified"},
		{`,"NonKeyAttributes":["e"]`, ``, "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"},
		{`["e"]`, `["e","e"]`, "Duplicate element in NonKeyAttributes: e"},
		{`"Projection":{"ProjectionType":"ALL"}`, `"Projection":null`, "Value null at 'globalSecondaryIndexes.1.member.projection'"},
		{`"Projection":{"ProjectionType":"ALL"}`, `"Projection":{"ProjectionType":"ALL"},"OnDemandThroughput":{}`, "OnDemandThroughput is not supported"},
		{`"index3","KeySchema":[{"AttributeName":"c"`, `"index3","KeySchema":[{"AttributeName":"z"`, "Some index key attributes are not defined in AttributeDefinitions. Keys: [z], AttributeDefinitions: [a, b, c, d]"},
		{`"index3","KeySchema":[{"AttributeName":"c","KeyType":"HASH"`, `"index3","KeySchema":[{"AttributeName":"c","KeyType":"RANGE"`, "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
		{`{"AttributeName":"d","KeyType":"RANGE"`, `{"AttributeName":"d","KeyType":"HASH"`, "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"},
		{`{"AttributeName":"d","KeyType":"RANGE"`, `{"AttributeName":"c","KeyType":"RANGE"`, "Both the Hash Key and the Range Key element in the KeySchema have the same name"},
		{",\n\t\t" + `{"AttributeName":"d","KeyType":"RANGE"}`, ``, "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c, d], keys used: [a, b, c]"},
		{`"AttributeName":"d","AttributeType":"N"}`, `"AttributeName":"d","AttributeType":"N"},{"AttributeName":"a","AttributeType":"S"}`, "Attribute Name is duplicated: a"},
		{`"BillingMode":"PAY_PER_REQUEST"`, `"ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, "ProvisionedThroughput is not specified for index: index3"},
		{`"IndexName":"index3"`, `"IndexName":"index3","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}`, "ProvisionedThroughput should not be specified for index: index3 when BillingMode is PAY_PER_REQUEST"},
		{`"IndexName":"index3"`, `"IndexName":"index3","ProvisionedThroughput":{"ReadCapacityUnits":0}`, "Value '0' at 'globalSecondaryIndexes.1.member.provisionedThroughput.readCapacityUnits'"},
	} {
		if !strings.Contains(rangeTable, test.old) {
			t.Fatalf("%s is not in the table", test.old)
		}
		got := s.ask(t, "CreateTable", strings.Replace(rangeTable, test.old, test.new, 1))
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.new, got, test.want)
		}
	}
	s.mustAsk(t, "CreateTable", rangeTable)
	s.mustAsk(t, "CreateTable", pairTable)
	create := func(members string) string {
		return `{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"z","AttributeType":"S"}],
			"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"new","Projection":{"ProjectionType":"ALL"},
			"KeySchema":[{"AttributeName":"z","KeyType":"HASH"}]` + members + `}}]}`
	}
	const units = `"ProvisionedThroughput":{"ReadCapacityUnits":7,"WriteCapacityUnits":8}`
	run(t, s, []exchange{
		{"UpdateTable", `{"TableName":"abc","GlobalSecondaryIndexUpdates":[]}`, "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates,"},
		{"UpdateTable", `{"TableName":"abc","GlobalSecondaryIndexUpdates":[{}]}`, "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null"},
		{"UpdateTable", `{"TableName":"abc","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"abc"},"Update":{"IndexName":"abc",` + units + `}}]}`, "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"},
		{"UpdateTable", `{"TableName":"abc","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"abc"}},{"Delete":{"IndexName":"abc"}}]}`, "Only one global secondary index update per index is allowed simultaneously. Index: abc"},
		{"UpdateTable", `{"TableName":"abc","GlobalSecondaryIndexUpdates":[{"Update":{}}]}`, "2 validation errors detected: Value null at 'globalSecondaryIndexUpdates.1.member.update.indexName' failed to satisfy constraint: Member must not be null; Value null at 'globalSecondaryIndexUpdates.1.member.update.provisionedThroughput'"},
		{"UpdateTable", `{"TableName":"abc","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"abc"}},{"Delete":{"IndexName":"abd"}}]}`, "LimitExceededException: Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"},
		{"UpdateTable", `{"TableName":"abc","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"none"}}]}`, "ResourceNotFoundException: Requested resource not found: Index: none not found"},
		{"UpdateTable", `{"TableName":"gone","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"none"}}]}`, "ResourceNotFoundException: Requested resource not found: Table: gone not found"},
		{"UpdateTable", `{"TableName":"abc","GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"index3",` + units + `}}]}`, "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: index3 when BillingMode is PAY_PER_REQUEST"},
		{"UpdateTable", `{"TableName":"abc","BillingMode":"PROVISIONED",` + units + `}`, "ProvisionedThroughput must be specified for index: index3"},
		{"UpdateTable", strings.Replace(create(``), `"z","AttributeType"`, `"y","AttributeType"`, 1), "Some index key attributes are not defined in AttributeDefinitions. Keys: [z], AttributeDefinitions: [y]"},
		{"UpdateTable", strings.Replace(create(``), `"AttributeDefinitions"`, `"Other"`, 1), "AttributeDefinitions is not specified for index: new"},
		{"UpdateTable", strings.Replace(create(``), `"AttributeType":"S"}`, `"AttributeType":"S"},{"AttributeName":"a","AttributeType":"N"}`, 1), "Attribute a is of type S in the table's keys, and not of type N"},
		{"UpdateTable", create(`,` + units), "ProvisionedThroughput should not be specified for index: new"},
		{"UpdateTable", strings.Replace(create(`,`+units), `"abc"`, `"pairs",`+units, 1), "You cannot create or delete index while updating table IOPS"},
		{"UpdateTable", strings.Replace(create(``), `"abc"`, `"pairs"`, 1), "ProvisionedThroughput is not specified for index: new"},
		{"UpdateTable", strings.Replace(create(`,`+units), `"abc"`, `"pairs"`, 1), `"ReadCapacityUnits":7,"WriteCapacityUnits":8},"IndexSizeBytes":0`},
		{"UpdateTable", `{"TableName":"pairs","GlobalSecondaryIndexUpdates":[{"Update":{"IndexName":"new","ProvisionedThroughput":{"ReadCapacityUnits":9,"WriteCapacityUnits":9}}}]}`, `"ReadCapacityUnits":9,"WriteCapacityUnits":9},"IndexSizeBytes":0`},
		{"UpdateTable", `{"TableName":"pairs","BillingMode":"PAY_PER_REQUEST"}`, `"ReadCapacityUnits":0,"WriteCapacityUnits":0},"IndexSizeBytes":0`},
	})
	if got := s.mustAsk(t, "DescribeTable", `{"TableName":"abc"}`); strings.Count(got, `"IndexName"`) != 2 || !strings.Contains(got, "PAY_PER_REQUEST") {
		t.Errorf("a refused call changed something: %s", got)
	}
	many := `{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}],
		"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"i%02d","Projection":{"ProjectionType":"KEYS_ONLY"},
		"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]}}]}`
	for i := 2; i < maxIndexes; i++ {
		s.mustAsk(t, "UpdateTable", fmt.Sprintf(many, i))
	}
	if got := s.ask(t, "UpdateTable", fmt.Sprintf(many, maxIndexes)); !strings.HasPrefix(got, "LimitExceededException") {
		t.Errorf("one too many: %s", got)
	}
}

func TestContinuousBackups(t *testing.T) {
	fs := vfs.NewMem()
	s := newService(t, fs, "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	const off = `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED","PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":"DISABLED"}}}`
	on := func(days int) string {
		return fmt.Sprintf(`{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED","PointInTimeRecoveryDescription":{`+
			`"PointInTimeRecoveryStatus":"ENABLED","RecoveryPeriodInDays":%d,"EarliestRestorableDateTime":1500000000.250,"LatestRestorableDateTime":1500000000.250}}}`, days)
	}
	update := func(members string) string {
		return `{"TableName":"leases","PointInTimeRecoverySpecification":{` + members + `}}`
	}
	run(t, s, []exchange{
		{"DescribeContinuousBackups", `{"TableName":"leases"}`, off},
		{"UpdateContinuousBackups", update(`"PointInTimeRecoveryEnabled":true`), on(35)},
		{"UpdateContinuousBackups", update(`"PointInTimeRecoveryEnabled":true,"RecoveryPeriodInDays":3`), on(3)},
		{"DescribeContinuousBackups", `{"TableName":"leases"}`, on(3)},
		{"UpdateContinuousBackups", update(`"PointInTimeRecoveryEnabled":false`), off},
		{"UpdateContinuousBackups", update(`"PointInTimeRecoveryEnabled":false,"RecoveryPeriodInDays":3`), "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."},
		{"UpdateContinuousBackups", update(`"PointInTimeRecoveryEnabled":true,"RecoveryPeriodInDays":36`), "Value '36' at 'pointInTimeRecoverySpecification.recoveryPeriodInDays' failed to satisfy constraint: Member must have value less than or equal to 35"},
		{"UpdateContinuousBackups", update(``), "Value null at 'pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled'"},
		{"UpdateContinuousBackups", `{"TableName":"leases"}`, "Value null at 'pointInTimeRecoverySpecification'"},
		{"UpdateContinuousBackups", `{"TableName":"none","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`, "TableNotFoundException: Table not found: none"},
		{"DescribeContinuousBackups", `{"TableName":"none"}`, "TableNotFoundException: Table not found: none"},
	})
}
