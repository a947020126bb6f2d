package dynamo

import "slices"

// known lists the members of the API's structures, from the SDK's types. A member in this list
// that no operation has taken is refused by name, so the server never ignores a member that
// DynamoDB would act on. DynamoDB ignores all other members too.
var known = map[string][]string{
	"CreateTable": {
		"AttributeDefinitions", "BillingMode", "DeletionProtectionEnabled",
		"GlobalSecondaryIndexes", "GlobalTableSettingsReplicationMode", "GlobalTableSourceArn",
		"KeySchema", "LocalSecondaryIndexes", "OnDemandThroughput", "ProvisionedThroughput",
		"ResourcePolicy", "SSESpecification", "StreamSpecification", "TableClass", "TableName",
		"Tags", "VectorIndexes", "WarmThroughput",
	},
	"UpdateTable": {
		"AttributeDefinitions", "BillingMode", "DeletionProtectionEnabled",
		"DisassociationProtectionEnabled", "GlobalSecondaryIndexUpdates",
		"GlobalTableSettingsReplicationMode", "GlobalTableWitnessUpdates",
		"MultiRegionConsistency", "OnDemandThroughput", "ProvisionedThroughput",
		"ReplicaUpdates", "SSESpecification", "StreamSpecification", "TableClass", "TableName",
		"VectorIndexUpdates", "WarmThroughput",
	},
	"DeleteTable":               {"TableName"},
	"DescribeTable":             {"TableName"},
	"DescribeContinuousBackups": {"TableName"},
	"UpdateContinuousBackups":   {"PointInTimeRecoverySpecification", "TableName"},
	"ListTables":                {"ExclusiveStartTableName", "Limit"},
	"GetItem": {
		"AttributesToGet", "ConsistentRead", "ExpressionAttributeNames", "Key",
		"ProjectionExpression", "ReturnConsumedCapacity", "TableName",
	},
	"PutItem":    append([]string{"Item"}, conditionalWrite...),
	"DeleteItem": append([]string{"Key"}, conditionalWrite...),
	"UpdateItem": append([]string{"AttributeUpdates", "Key", "UpdateExpression"},
		conditionalWrite...),
	"Query": {
		"AttributesToGet", "ConditionalOperator", "ConsistentRead", "ExclusiveStartKey",
		"ExpressionAttributeNames", "ExpressionAttributeValues", "FilterExpression",
		"IndexName", "KeyConditionExpression", "KeyConditions", "Limit",
		"ProjectionExpression", "QueryFilter", "ReturnConsumedCapacity", "ScanIndexForward",
		"Select", "TableName",
	},
	"Scan": {
		"AttributesToGet", "ConditionalOperator", "ConsistentRead", "ExclusiveStartKey",
		"ExpressionAttributeNames", "ExpressionAttributeValues", "FilterExpression",
		"IndexName", "Limit", "ProjectionExpression", "ReturnConsumedCapacity", "ScanFilter",
		"Segment", "Select", "TableName", "TotalSegments",
	},
	"TransactWriteItems": {
		"ClientRequestToken", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics",
		"TransactItems",
	},

	"TransactWriteItem": {"ConditionCheck", "Delete", "Put", "Update"},
	"ConditionCheck":    append([]string{"Key"}, transactWrite...),
	"Delete":            append([]string{"Key"}, transactWrite...),
	"Put":               append([]string{"Item"}, transactWrite...),
	"Update":            append([]string{"Key", "UpdateExpression"}, transactWrite...),

	"GlobalSecondaryIndex":             createIndex,
	"CreateGlobalSecondaryIndexAction": createIndex,
	"UpdateGlobalSecondaryIndexAction": {
		"IndexName", "OnDemandThroughput", "ProvisionedThroughput", "WarmThroughput",
	},
	"DeleteGlobalSecondaryIndexAction": {"IndexName"},
	"GlobalSecondaryIndexUpdate":       {"Create", "Delete", "Update"},
	"Projection":                       {"NonKeyAttributes", "ProjectionType"},

	"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled", "RecoveryPeriodInDays"},

	"AttributeValueUpdate": {"Action", "Value"},
	"Condition":            {"AttributeValueList", "ComparisonOperator"},
	"ExpectedAttributeValue": {
		"AttributeValueList", "ComparisonOperator", "Exists", "Value",
	},
}

var (
	conditionalWrite = []string{
		"ConditionExpression", "ConditionalOperator", "Expected", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics",
		"ReturnValues", "ReturnValuesOnConditionCheckFailure", "TableName",
	}
	transactWrite = []string{
		"ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues",
		"ReturnValuesOnConditionCheckFailure", "TableName",
	}
	createIndex = []string{
		"IndexName", "KeySchema", "OnDemandThroughput", "Projection", "ProvisionedThroughput",
		"WarmThroughput",
	}
)

// left returns the first member by name that DynamoDB knows and the operation has not taken; ""
// for none.
func (m *members) left() string {
	first := ""
	if !m.object.isThere() {
		return first
	}
	for member := range m.object.inner() {
		name := string(member.name())
		if (first == "" || name < first) && !member.isNull() &&
			slices.Contains(known[m.shape], name) {
			first = name
		}
	}
	return first
}
