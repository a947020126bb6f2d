package dynamo

import (
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestLeaseLife is the life of a KCL lease, in the forms that KCL 2 and 3 send.
func TestLeaseLife(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	const key = `"TableName":"leases","Key":{"leaseKey":{"S":"shard"}}`
	run(t, s, []exchange{
		{"CreateTable", leaseTable, `{"TableDescription":…`},
		// createLeaseIfNotExists
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"shard"},"leaseCounter":{"N":"0"},
			"checkpoint":{"S":"TRIM_HORIZON"},"ownerSwitchesSinceCheckpoint":{"N":"0"}},
			"Expected":{"leaseKey":{"Exists":false}}}`, `{}`},
		{
			"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"shard"}},
			"Expected":{"leaseKey":{"Exists":false}}}`,
			"ConditionalCheckFailedException: The conditional request failed",
		},
		// takeLease
		{"UpdateItem", `{` + key + `,"Expected":{"leaseCounter":{"Value":{"N":"0"}}},
			"AttributeUpdates":{"leaseOwner":{"Value":{"S":"me"},"Action":"PUT"},
			"checkpointOwner":{"Action":"DELETE"},
			"ownerSwitchesSinceCheckpoint":{"Value":{"N":"1"},"Action":"ADD"},
			"leaseCounter":{"Value":{"N":"1"},"Action":"PUT"}}}`, `{}`},
		// renewLease
		{"UpdateItem", `{` + key + `,"ReturnValuesOnConditionCheckFailure":"ALL_OLD",
			"Expected":{"leaseCounter":{"Value":{"N":"1"}},"checkpointOwner":{"Exists":false}},
			"AttributeUpdates":{"leaseCounter":{"Value":{"N":"2"},"Action":"PUT"},
			"throughputKBps":{"Value":{"N":"1.500000"},"Action":"PUT"}}}`, `{}`},
		{
			"UpdateItem", `{` + key + `,"ReturnValuesOnConditionCheckFailure":"ALL_OLD",
			"Expected":{"leaseCounter":{"Value":{"N":"1"}},"checkpointOwner":{"Exists":false}},
			"AttributeUpdates":{"leaseCounter":{"Value":{"N":"2"},"Action":"PUT"}}}`,
			`ConditionalCheckFailedException: The conditional request failed {"checkpoint":{"S":"TRIM_HORIZON"},"leaseCounter":{"N":"2"},"leaseKey":{"S":"shard"},"leaseOwner":{"S":"me"},"ownerSwitchesSinceCheckpoint":{"N":"1"},"throughputKBps":{"N":"1.5"}}`,
		},
		// assignLease
		{
			"UpdateItem", `{` + key + `,"ReturnValues":"ALL_NEW",
			"ReturnValuesOnConditionCheckFailure":"ALL_OLD",
			"Expected":{"leaseOwner":{"Value":{"S":"me"}},"checkpointOwner":{"Exists":false},
			"leaseKey":{"Exists":true,"Value":{"S":"shard"}}},
			"AttributeUpdates":{"leaseOwner":{"Value":{"S":"you"},"Action":"PUT"},
			"leaseCounter":{"Value":{"N":"1"},"Action":"ADD"}}}`,
			`{"Attributes":{"checkpoint":{"S":"TRIM_HORIZON"},"leaseCounter":{"N":"3"},"leaseKey":{"S":"shard"},"leaseOwner":{"S":"you"},"ownerSwitchesSinceCheckpoint":{"N":"1"},"throughputKBps":{"N":"1.5"}}}`,
		},
		// evictLease
		{
			"UpdateItem", `{` + key + `,"ReturnValues":"UPDATED_OLD",
			"Expected":{"leaseOwner":{"Value":{"S":"you"}}},
			"AttributeUpdates":{"leaseOwner":{"Action":"DELETE"},
			"leaseCounter":{"Value":{"N":"1"},"Action":"ADD"}}}`,
			`{"Attributes":{"leaseCounter":{"N":"3"},"leaseOwner":{"S":"you"}}}`,
		},
		// listLeases, getLease
		{
			"Scan", `{"TableName":"leases","FilterExpression":"streamName = :streamName",
			"ExpressionAttributeValues":{":streamName":{"S":"x"}}}`,
			`{"Count":0,"ScannedCount":1,"Items":[]}`,
		},
		{
			"GetItem", `{` + key + `,"ConsistentRead":true}`,
			`{"Item":{"checkpoint":{"S":"TRIM_HORIZON"},"leaseCounter":{"N":"4"},"leaseKey":{"S":"shard"},"ownerSwitchesSinceCheckpoint":{"N":"1"},"throughputKBps":{"N":"1.5"}}}`,
		},
		// the worker metrics' clean-up, with a space before the parenthesis
		{"DeleteItem", `{` + key + `,"ConditionExpression":"#key = :value AND attribute_exists (leaseKey)",
			"ExpressionAttributeNames":{"#key":"leaseCounter"},
			"ExpressionAttributeValues":{":value":{"N":"5"}}}`, "ConditionalCheckFailedException"},
		// the leader's lock
		{"PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"Leader"},"ownerName":{"S":"me"},
			"recordVersionNumber":{"S":"v1"},"leaseDuration":{"S":"120000"}},
			"ConditionExpression":"attribute_not_exists(#pk)",
			"ExpressionAttributeNames":{"#pk":"leaseKey"}}`, `{}`},
		{
			"UpdateItem", `{"TableName":"leases","Key":{"leaseKey":{"S":"Leader"}},
			"UpdateExpression":"SET #ld = :ld, #rvn = :newRvn REMOVE #d",
			"ConditionExpression":"attribute_exists(#pk) AND #rvn = :rvn AND #on = :on",
			"ExpressionAttributeNames":{"#ld":"leaseDuration","#rvn":"recordVersionNumber",
			"#d":"data","#pk":"leaseKey","#on":"ownerName"},
			"ExpressionAttributeValues":{":ld":{"S":"1"},":newRvn":{"S":"v2"},":rvn":{"S":"v1"},
			":on":{"S":"me"}},"ReturnValues":"UPDATED_NEW"}`,
			`{"Attributes":{"leaseDuration":{"S":"1"},"recordVersionNumber":{"S":"v2"}}}`,
		},
		// deleteLease
		{"DeleteItem", `{` + key + `,"ReturnValues":"ALL_OLD"}`, `{"Attributes":{"checkpoint"…`},
		{"DeleteItem", `{` + key + `,"ReturnValues":"ALL_OLD"}`, `{}`},
		{"GetItem", `{` + key + `}`, `{}`},
	})
}
