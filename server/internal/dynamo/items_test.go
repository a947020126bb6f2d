package dynamo

import (
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

func TestItemOperations(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	const key = `"TableName":"pairs","Key":{"id":{"B":"AA=="},"at":{"N":"1.0"}}`
	const item = `"TableName":"pairs","Item":{"id":{"B":"AA=="},"at":{"N":"1"},"v":{"S":"x"},"n":{"N":"1"}}`
	const all = `{"at":{"N":"1"},"id":{"B":"AA=="},"n":{"N":"1"},"v":{"S":"x"}}`
	run(t, s, []exchange{
		{"CreateTable", pairTable, `{"TableDescription":…`},
		{"PutItem", `{` + item + `,"ReturnValues":"ALL_OLD"}`, `{}`},
		{
			"PutItem", `{` + item + `,"ReturnValues":"ALL_OLD","ReturnConsumedCapacity":"TOTAL"}`,
			`{"Attributes":` + all + `,"ConsumedCapacity":{"TableName":"pairs","CapacityUnits":1}}`,
		},
		{"GetItem", `{` + key + `}`, `{"Item":` + all + `}`},
		{"GetItem", `{` + key + `,"ReturnConsumedCapacity":"INDEXES"}`, `{"Item":` + all +
			`,"ConsumedCapacity":{"TableName":"pairs","CapacityUnits":0.5,"Table":{"CapacityUnits":0.5}}}`},
		{
			"GetItem", `{` + key + `,"ProjectionExpression":"#v","ExpressionAttributeNames":{"#v":"v"}}`,
			`{"Item":{"v":{"S":"x"}}}`,
		},
		{"GetItem", `{` + key + `,"AttributesToGet":["n","gone"]}`, `{"Item":{"n":{"N":"1"}}}`},
		{"GetItem", `{` + key + `,"ProjectionExpression":"gone"}`, `{"Item":{}}`},
		{"GetItem", `{"TableName":"pairs","Key":{"id":{"B":"AA=="},"at":{"N":"2"}}}`, `{}`},
		{"UpdateItem", `{` + key + `,"UpdateExpression":"SET v = :v REMOVE n","ReturnValues":"UPDATED_NEW",
			"ExpressionAttributeValues":{":v":{"S":"y"}}}`, `{"Attributes":{"v":{"S":"y"}}}`},
		{"UpdateItem", `{` + key + `,"UpdateExpression":"REMOVE v","ReturnValues":"UPDATED_NEW"}`, `{}`},
		{"UpdateItem", `{` + key + `}`, `{}`},
		{"GetItem", `{` + key + `}`, `{"Item":{"at":{"N":"1"},"id":{"B":"AA=="}}}`},
		{"UpdateItem", `{"TableName":"pairs","Key":{"id":{"B":"AQ=="},"at":{"N":"1"}},
			"UpdateExpression":"REMOVE v","ReturnValues":"ALL_NEW"}`, `{}`},
		{"GetItem", `{"TableName":"pairs","Key":{"id":{"B":"AQ=="},"at":{"N":"1"}}}`, `{}`},
		{"UpdateItem", `{"TableName":"pairs","Key":{"id":{"B":"AQ=="},"at":{"N":"1"}},
			"ReturnValues":"ALL_NEW"}`, `{"Attributes":{"at":{"N":"1"},"id":{"B":"AQ=="}}}`},
		{
			"UpdateItem", `{"TableName":"pairs","Key":{"id":{"B":"Ag=="},"at":{"N":"1"}},
			"AttributeUpdates":{},"ReturnValues":"ALL_NEW"}`,
			`{"Attributes":{"at":{"N":"1"},"id":{"B":"Ag=="}}}`,
		},
		{"UpdateItem", `{` + key + `,"UpdateExpression":"SET l = :l","ExpressionAttributeValues":
			{":l":{"L":[{"N":"1"}]}}}`, `{}`},
		{
			"UpdateItem", `{` + key + `,"AttributeUpdates":{"l":{"Action":"ADD","Value":{"L":[{"N":"2"}]}},
			"n":{"Action":"ADD","Value":{"N":"2"}},"s":{"Action":"DELETE","Value":{"SS":["x"]}}},
			"ReturnValues":"ALL_NEW"}`,
			`{"Attributes":{"at":{"N":"1"},"id":{"B":"AA=="},"l":{"L":[{"N":"1"},{"N":"2"}]},"n":{"N":"2"}}}`,
		},
		{
			"PutItem", `{` + item + `,"ConditionExpression":"n = :n","ExpressionAttributeValues":
			{":n":{"N":"3"}},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`,
			`ConditionalCheckFailedException: The conditional request failed {"at":{"N":"1"},"id"`,
		},
		{
			"DeleteItem", `{` + key + `,"Expected":{"n":{"ComparisonOperator":"GT",
			"AttributeValueList":[{"N":"1"}]}},"ReturnConsumedCapacity":"TOTAL"}`,
			`{"ConsumedCapacity":{"TableName":"pairs","CapacityUnits":1}}`,
		},
	})
}

func TestItemFaults(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	s.mustAsk(t, "CreateTable", pairTable)
	s.mustAsk(t, "CreateTable", leaseTable)
	const lease = `"TableName":"leases","Key":{"leaseKey":{"S":"a"}}`
	large := strings.Repeat("x", itemstore.MaxItemSize)
	run(t, s, []exchange{
		{"GetItem", `[]`, "SerializationException"},
		{"GetItem", ``, "SerializationException"},
		{"GetItem", `null`, "SerializationException"},
		{"GetItem", `{}`, "2 validation errors detected: Value null at 'tableName' failed to " +
			"satisfy constraint: Member must not be null; Value null at 'key' failed"},
		{"GetItem", `{` + lease + `,"ConsistentRead":"yes"}`, "STRING_VALUE can not be converted to Boolean"},
		{"GetItem", `{` + lease + `,"ReturnConsumedCapacity":"SOME"}`, "Value 'SOME' at 'returnConsumedCapacity'"},
		{"GetItem", `{"TableName":"gone","Key":{"a":{"S":"a"}}}`, "ResourceNotFoundException: Requested resource not found"},
		{"GetItem", `{"TableName":"leases","Key":{"leaseKey":{"N":"1"}}}`, "The provided key element does not match the schema"},
		{"GetItem", `{"TableName":"leases","Key":{"other":{"S":"a"}}}`, "The provided key element does not match the schema"},
		{"GetItem", `{"TableName":"leases","Key":{"leaseKey":{"S":"a"},"other":{"S":"a"}}}`, "The provided key element does not match the schema"},
		{"GetItem", `{"TableName":"pairs","Key":{"id":{"B":"AA=="}}}`, "The provided key element does not match the schema"},
		{"GetItem", `{"TableName":"leases","Key":{"leaseKey":{"S":""}}}`, "cannot contain an empty string value. Key: leaseKey"},
		{"GetItem", `{"TableName":"leases","Key":{"leaseKey":{"S":"` + large[:2049] + `"}}}`, "Size of hashkey has exceeded"},
		{
			"GetItem", `{` + lease + `,"ProjectionExpression":"a","AttributesToGet":["a"]}`,
			"Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
		},
		{"GetItem", `{` + lease + `,"ExpressionAttributeNames":{"#a":"a"}}`, "ExpressionAttributeNames can only be specified when using expressions"},
		{"PutItem", `{"TableName":"leases"}`, "Value null at 'item'"},
		{"PutItem", `{"TableName":"leases","Item":{"a":{"S":"a"}}}`, "One or more parameter values were invalid: Missing the key leaseKey in the item"},
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"N":"1"}}}`, "Type mismatch for key leaseKey expected: S actual: N"},
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"a"},"v":{"S":"` + large + `"}}}`, "Item size has exceeded the maximum allowed size"},
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"a"}},"ReturnValues":"ALL_NEW"}`, "ReturnValues can only be ALL_OLD or NONE"},
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"a"}},"ReturnValues":"none"}`, "Value 'none' at 'returnValues' failed to satisfy constraint"},
		{
			"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"a"}},"ConditionExpression":"a = :a","ExpressionAttributeValues":{":a":{"S":"a"},":b":{"S":"b"}}}`,
			"Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}",
		},
		{
			"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"a"}},"ExpressionAttributeValues":{":a":{"S":"a"}}}`,
			"ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null",
		},
		{
			"UpdateItem", `{` + lease + `,"ExpressionAttributeValues":{":a":{"S":"a"}}}`,
			"expressions: UpdateExpression and ConditionExpression are null",
		},
		{
			"UpdateItem", `{` + lease + `,"UpdateExpression":"REMOVE a","ExpressionAttributeNames":{"#b":"b"}}`,
			"Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}",
		},
		{
			"UpdateItem", `{` + lease + `,"UpdateExpression":"REMOVE a","ExpressionAttributeNames":{"b":"b"}}`,
			`ExpressionAttributeNames contains invalid key: Syntax error; key: "b"`,
		},
		{"UpdateItem", `{` + lease + `,"UpdateExpression":"REMOVE a","ExpressionAttributeNames":{}}`, "ExpressionAttributeNames must not be empty"},
		{"UpdateItem", `{` + lease + `,"UpdateExpression":"SET a = :a","ExpressionAttributeValues":{}}`, "ExpressionAttributeValues must not be empty"},
		{
			"UpdateItem", `{` + lease + `,"UpdateExpression":"SET a = :a","ExpressionAttributeValues":{":a":{"SS":[]}}}`,
			"ExpressionAttributeValues contains invalid value: One or more parameter values were invalid: An string set  may not be empty for key :a",
		},
		{
			"UpdateItem", `{` + lease + `,"UpdateExpression":"SET leaseKey = :a","ExpressionAttributeValues":{":a":{"S":"b"}}}`,
			"Cannot update attribute leaseKey. This attribute is part of the key",
		},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"leaseKey":{"Action":"DELETE"}}}`, "Cannot update attribute leaseKey"},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"a":{"Action":"PUT"}}}`, "Only DELETE action is allowed when no attribute value is specified"},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"a":{"Action":"ADD","Value":{"S":"a"}}}}`, "ADD action is not supported for the type S"},
		{"UpdateItem", `{` + lease + `,"AttributeUpdates":{"a":{"Action":"MOVE"}}}`, "Value 'MOVE' at 'action'"},
		{"UpdateItem", `{` + lease + `,"UpdateExpression":"REMOVE a","Expected":{"a":{"Exists":false}}}`, "Non-expression parameters: {Expected} Expression parameters: {UpdateExpression}"},
		{"UpdateItem", `{` + lease + `,"UpdateExpression":"SET a = :a","ExpressionAttributeValues":{":a":{"S":"` + large + `"}}}`, "Item size to update has exceeded the maximum allowed size"},
		{"DeleteItem", `{` + lease + `,"Expected":{"a":{}}}`, "Value must be provided when Exists is null for Attribute: a"},
		{"DeleteItem", `{` + lease + `,"Expected":{"a":{"Exists":true}}}`, "Value must be provided when Exists is true for Attribute: a"},
		{"DeleteItem", `{` + lease + `,"Expected":{"a":{"Exists":false,"Value":{"S":"a"}}}}`, "Value cannot be used when Exists is false for Attribute: a"},
		{"DeleteItem", `{` + lease + `,"Expected":{"a":{"Exists":false,"ComparisonOperator":"NULL"}}}`, "Exists and ComparisonOperator cannot be used together"},
		{"DeleteItem", `{` + lease + `,"Expected":{"a":{"ComparisonOperator":"LIKE"}}}`, "Value 'LIKE' at 'comparisonOperator'"},
		{"DeleteItem", `{` + lease + `,"Expected":{"a":{"ComparisonOperator":"EQ"}}}`, "Invalid number of argument(s) for the EQ ComparisonOperator"},
		{"DeleteItem", `{` + lease + `,"Expected":{"a":{"ComparisonOperator":"LT","AttributeValueList":[{"BOOL":true}]}}}`, "ComparisonOperator LT is not valid for BOOL AttributeValue type"},
		{"DeleteItem", `{` + lease + `,"ConditionalOperator":"OR"}`, "ConditionalOperator cannot be used without Filter or Expected"},
		{"DeleteItem", `{` + lease + `,"ConditionalOperator":"OR","Expected":{"a":{"Exists":false}}}`, "can only be used when Filter or Expected has two or more elements"},
		{"Scan", `{"TableName":"leases","IndexName":"owners"}`, "The table does not have the specified index: owners"},
		{"Scan", `{"TableName":"leases","Limit":0}`, "Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"Scan", `{"TableName":"leases","Segment":1}`, "The TotalSegments parameter is required"},
		{"Scan", `{"TableName":"leases","TotalSegments":1}`, "The Segment parameter is required"},
		{"Scan", `{"TableName":"leases","Segment":2,"TotalSegments":2}`, "Segment: 2 is not less than TotalSegments: 2"},
		{"Scan", `{"TableName":"leases","ExclusiveStartKey":{"a":{"S":"a"}}}`, "The provided starting key is invalid"},
		{"Scan", `{"TableName":"leases","Select":"SPECIFIC_ATTRIBUTES"}`, "Must specify the AttributesToGet or ProjectionExpression"},
		{"Scan", `{"TableName":"leases","Select":"COUNT","ProjectionExpression":"a"}`, "Cannot specify the AttributesToGet or ProjectionExpression when choosing to get COUNT"},
	})
	if got := s.ask(t, "Scan", `{"TableName":"leases"}`); got != `{"Count":0,"ScannedCount":0,"Items":[]}` {
		t.Errorf("a refused call changed something: %s", got)
	}
}

// TestMembersOfARequest has members that are null, doubled, of a wrong form or unsupported, and
// checks the reported fault.
func TestMembersOfARequest(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	const lease = `"TableName":"leases","Key":{"leaseKey":{"S":"a"}}`
	run(t, s, []exchange{
		{"GetItem", `{` + lease + `,"Key":{"leaseKey":{"S":"b"}},"Key":{"leaseKey":{"S":"c"}}}`, `{}`},
		{"GetItem", `{"Key":[],` + lease + `}`, `{}`},
		{"GetItem", `{` + lease + `,"Key":[]}`, "SerializationException: Unrecognized collection type"},
		{"GetItem", `{` + lease + `,"ConsistentRead":null,"AttributesToGet":null}`, `{}`},
		{
			"GetItem", `{` + lease + `,"AttributesToGet":["a","b","c","b","a"]}`,
			"Duplicate value in attribute name: b",
		},
		{
			"GetItem", `{` + lease + `,"ExpressionAttributeNames":{"#b":1},"ProjectionExpression":"#b"}`,
			"SerializationException: Start of structure",
		},
		{
			"GetItem", `{` + lease + `,"ExpressionAttributeNames":[],"ProjectionExpression":"#b"}`,
			"SerializationException: Unrecognized collection type: a list where Map",
		},
		{
			"GetItem", `{` + lease + `,"ExpressionAttributeNames":{"#b":null},"ProjectionExpression":"#b"}`,
			`ExpressionAttributeNames contains invalid value: The attribute name must not be empty; key: "#b"`,
		},
		{"GetItem", `{` + lease + `,"ExpressionAttributeNames":{"\u0023b":"leaseKey"},
			"ProjectionExpression":"#b"}`, `{}`},
		{"CreateTable", `{"Tags":[],"WarmThroughput":{},"OnDemandThroughput":{},"ResourcePolicy":"x",
			"VectorIndexes":null,"Nobody":1}`, "OnDemandThroughput is not supported"},
		{
			"CreateTable", leaseTable[:len(leaseTable)-1] + `,"WarmThroughput":null,"Nobody":1}`,
			"ResourceInUseException: Table already exists",
		},
		{"UpdateItem", `{` + lease + `,"UpdateExpression":"SET a = :a","ExpressionAttributeValues":
			{":b":{"S":1},":a":{"Q":"x"}}}`, "invalid value: Supplied AttributeValue has the unknown " +
			"datatype Q, must contain exactly one of the supported datatypes for key :a"},
		{
			"UpdateItem", `{` + lease + `,"UpdateExpression":"SET a = :a","ExpressionAttributeValues":7}`,
			"NUMBER_VALUE can not be converted to Map",
		},
		{
			"UpdateItem", `{` + lease + `,"Expected":{"b":{"Value":{"S":1}},"a":{"Exists":7}}}`,
			"NUMBER_VALUE can not be converted to Boolean",
		},
		{
			"UpdateItem", `{` + lease + `,"AttributeUpdates":{"a":null}}`,
			"SerializationException: Start of structure",
		},
	})
}
