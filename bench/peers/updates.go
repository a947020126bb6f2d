package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// takeUpdates advances counters, each of one worker, by conditional updates, and then looks
// whether the counters stand where they must.
func takeUpdates(ctx context.Context, cfg Config, t turn, p *process, m *measured) error {
	setup := newSDK(p.endpoint)
	defer setup.close()
	if err := createTable(ctx, setup.dynamo); err != nil {
		return err
	}
	for _, c := range t.clients(p) {
		defer c.close()
		names, values := make([]string, inFlight), make([]int, inFlight)
		for i := range names {
			names[i] = fmt.Sprintf("%s-%d", c.via, i)
			item := itemKey(names[i])
			item["n"] = number(0)
			_, err := setup.dynamo.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: aws.String(table), Item: item,
			})
			if err != nil {
				return err
			}
		}
		advance := func(ctx context.Context, worker int) error {
			err := c.advance(ctx, names[worker], values[worker])
			values[worker]++
			return err
		}
		rate, _, err := t.rate(ctx, cfg, inFlight, advance)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", update, c.via, err)
		}
		if err := checkCounters(ctx, setup.dynamo, names, values); err != nil {
			return err
		}
		m.add(t.server, update, c.via, rate)
	}
	return nil
}

func checkCounters(
	ctx context.Context, client *dynamodb.Client, names []string, want []int,
) error {
	for i, name := range names {
		out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(table), Key: itemKey(name), ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return err
		}
		n, ok := out.Item["n"].(*types.AttributeValueMemberN)
		if !ok || n.Value != fmt.Sprint(want[i]) {
			return fmt.Errorf("counter %s is %+v after %d updates", name, out.Item["n"], want[i])
		}
	}
	return nil
}

// createTable returns when the table is ACTIVE.
func createTable(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   aws.String(table),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash},
		},
	})
	if err != nil {
		return err
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second
	})
	return waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)}, startTime)
}
