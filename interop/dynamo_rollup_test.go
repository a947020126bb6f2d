package interop

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/dynamolocaltest"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/rollup"
	"github.com/runnel-stream/runnel/sink/rollup/dynamostore"
	"github.com/runnel-stream/runnel/sink/rollup/rolluptest"
)

// TestRollupOnDynamoDBLocal keeps rows in Amazon's DynamoDB Local: the suite of stores, and a
// fleet.
func TestRollupOnDynamoDBLocal(t *testing.T) {
	if os.Getenv("RUNNEL_INTEROP") == "" {
		t.Skip("make interop installs DynamoDB Local and runs this")
	}
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://" + dynamolocaltest.New(t).Addr), Region: "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider(accessKeyID, secretAccessKey, ""),
	})
	var tables atomic.Int64
	rolluptest.Run(t, func(*testing.T) rolluptest.Target {
		return rollupTarget(client, fmt.Sprint("edits", tables.Add(1)))
	})
	t.Run("fleet", func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.WithStream("orders", 2),
			runneltest.WithStreamDelay(-1))
		stream := rolluptest.Stream{Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB()}
		rolluptest.Fleet(t, stream, rollupTarget(client, "edits"))
	})
}

func rollupTarget(client *dynamodb.Client, table string) rolluptest.Target {
	return rolluptest.Target{
		Open: func() (rollup.RowStore, error) {
			return dynamostore.New(dynamostore.Config{DynamoDB: client, Table: table})
		},
		Bad: func(ctx context.Context) (map[string]string, error) {
			bad := map[string]string{}
			pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{
				TableName: aws.String(table + "_bad"),
			})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return nil, err
				}
				for _, item := range page.Items {
					key := item["pk"].(*types.AttributeValueMemberS).Value
					bad[key] = string(item["data"].(*types.AttributeValueMemberB).Value)
				}
			}
			return bad, nil
		},
	}
}
