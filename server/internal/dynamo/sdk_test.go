package dynamo_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/runneltest"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// TestWithTheSDK creates an index, queries it in pages, and makes transactions through Amazon's
// client and a real connection.
func TestWithTheSDK(t *testing.T) {
	ctx := t.Context()
	client := runneltest.NewServer(t).DynamoDB()
	table := aws.String("leases")
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("leaseKey"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("leaseKey"), KeyType: types.KeyTypeHash},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var items []types.TransactWriteItem
	for i := range 10 {
		items = append(items, types.TransactWriteItem{Put: &types.Put{
			TableName: table, ConditionExpression: aws.String("attribute_not_exists(leaseKey)"),
			Item: map[string]types.AttributeValue{
				"leaseKey": text(fmt.Sprint("k", i)), "leaseOwner": text(fmt.Sprint("w", i%2)),
			},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}})
	}
	used, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: items, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil || len(used.ConsumedCapacity) != 1 || aws.ToFloat64(used.ConsumedCapacity[0].CapacityUnits) != 20 {
		t.Fatalf("%+v, %v", used, err)
	}
	items[0].Put.Item["leaseKey"] = text("k10")
	_, err = client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items[:2]})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 2 {
		t.Fatal(err)
	}
	reasons := cancelled.CancellationReasons
	if aws.ToString(reasons[0].Code) != "None" || aws.ToString(reasons[1].Code) != "ConditionalCheckFailed" ||
		len(reasons[1].Item) != 2 || cancelled.ErrorMessage() == "" {
		t.Errorf("%+v", reasons)
	}
	index := aws.String("LeaseOwnerToLeaseKeyIndex")
	updated, err := client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: table,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("leaseOwner"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("leaseKey"), AttributeType: types.ScalarAttributeTypeS},
		},
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
			Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName:  index,
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
				KeySchema: []types.KeySchemaElement{
					{AttributeName: aws.String("leaseOwner"), KeyType: types.KeyTypeHash},
					{AttributeName: aws.String("leaseKey"), KeyType: types.KeyTypeRange},
				},
			},
		}},
	})
	if err != nil || updated.TableDescription.GlobalSecondaryIndexes[0].IndexStatus != types.IndexStatusCreating {
		t.Fatalf("%+v, %v", updated, err)
	}
	described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: table})
	if err != nil || described.Table.GlobalSecondaryIndexes[0].IndexStatus != types.IndexStatusActive ||
		aws.ToInt64(described.Table.GlobalSecondaryIndexes[0].ItemCount) != 10 {
		t.Errorf("%+v, %v", described, err)
	}
	pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
		TableName: table, IndexName: index, Limit: aws.Int32(2), ScanIndexForward: aws.Bool(false),
		KeyConditionExpression:    aws.String("leaseOwner = :leaseOwner"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":leaseOwner": text("w1")},
	})
	var keys []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			keys = append(keys, item["leaseKey"].(*types.AttributeValueMemberS).Value)
		}
	}
	if got := fmt.Sprint(keys); got != "[k9 k7 k5 k3 k1]" {
		t.Error(got)
	}
	backups, err := client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName: table,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: aws.Bool(true),
		},
	})
	if err != nil || backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus !=
		types.PointInTimeRecoveryStatusEnabled {
		t.Errorf("%+v, %v", backups, err)
	}
}
