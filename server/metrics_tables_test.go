package server_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// useTable makes a table, writes an item of 3 KB, and reads it in both ways.
func useTable(t *testing.T, c *dynamodb.Client) {
	t.Helper()
	name, id := aws.String("leases"), aws.String("leaseKey")
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: id, AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: id, KeyType: "HASH"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	item := map[string]types.AttributeValue{
		"leaseKey": &types.AttributeValueMemberS{Value: "a"},
		"data":     &types.AttributeValueMemberB{Value: make([]byte, 3000)},
	}
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: name, Item: item})
	if err != nil {
		t.Fatal(err)
	}
	delete(item, "data")
	for _, consistent := range []bool{false, true} {
		_, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: name, Key: item, ConsistentRead: &consistent,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
