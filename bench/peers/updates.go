package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// takeUpdates advances counters by conditional updates, one counter for each worker, and then
// checks the counters' values.
func takeUpdates(ctx context.Context, cfg Config, t turn, p *running, m *measured) error {
	setup := newSDK(p.endpoint)
	defer setup.close()
	if err := createTable(ctx, setup.dynamo); err != nil {
		return err
	}
	for _, c := range t.clients(p) {
		defer c.close()
		for _, r := range []struct {
			row     row
			workers int
		}{{update8, inFlight}, {update64, manyInFlight}} {
			counters, err := newCounters(ctx, setup.dynamo, fmt.Sprint(c.via, r.workers), r.workers)
			if err != nil {
				return err
			}
			rate, _, err := t.rate(ctx, cfg, r.workers,
				func(ctx context.Context, worker int) error {
					counter := &counters[worker]
					err := c.advance(ctx, counter.name, counter.value)
					counter.value++
					return err
				})
			if err == nil && !t.server.bare {
				err = check(ctx, setup.dynamo, counters)
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", r.row, c.via, err)
			}
			m.add(t.server, r.row, c.via, rate)
		}
	}
	return nil
}

// counter is an item with a number attribute.
type counter struct {
	name  string
	value int // the expected value
}

func newCounters(
	ctx context.Context, client *dynamodb.Client, prefix string, n int,
) ([]counter, error) {
	counters := make([]counter, n)
	for i := range counters {
		counters[i].name = fmt.Sprintf("%s-%d", prefix, i)
		item := itemKey(counters[i].name)
		item["n"] = number(0)
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(table), Item: item,
		})
		if err != nil {
			return nil, err
		}
	}
	return counters, nil
}

func check(ctx context.Context, client *dynamodb.Client, counters []counter) error {
	for _, c := range counters {
		out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(table), Key: itemKey(c.name), ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return err
		}
		n, ok := out.Item["n"].(*types.AttributeValueMemberN)
		if !ok || n.Value != fmt.Sprint(c.value) {
			return fmt.Errorf("counter %s is %+v after %d updates", c.name, out.Item["n"], c.value)
		}
	}
	return nil
}

// createTable makes the table and waits until it is ACTIVE.
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
	return waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)},
		process.StartTime)
}
