package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/bench/internal/plainbody"
)

// sdk is a program with the AWS SDK for Go.
type sdk struct {
	transport *http.Transport
	kinesis   *kinesis.Client
	dynamo    *dynamodb.Client
}

func newSDK(endpoint string) *sdk {
	s := &sdk{transport: newTransport()}
	sender := &http.Client{Transport: plainbody.Transport{Next: s.transport}}
	keys := credentials.NewStaticCredentialsProvider("bench", "bench", "")
	s.kinesis = kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: keys, HTTPClient: sender,
		Retryer: aws.NopRetryer{},
	})
	s.dynamo = dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: keys, HTTPClient: sender,
		Retryer: aws.NopRetryer{},
	})
	return s
}

// newTransport keeps a connection for each call in flight.
func newTransport() *http.Transport {
	return &http.Transport{MaxIdleConns: mostInFlight, MaxIdleConnsPerHost: mostInFlight}
}

func (s *sdk) close() { s.transport.CloseIdleConnections() }

func (s *sdk) putBatch(ctx context.Context, p *payload) error {
	out, err := s.kinesis.PutRecords(ctx, p.batch)
	if err != nil {
		return err
	}
	if failed := aws.ToInt32(out.FailedRecordCount); failed != 0 {
		return fmt.Errorf("PutRecords: %d records failed", failed)
	}
	return nil
}

func (s *sdk) putSingle(ctx context.Context, p *payload, i int) error {
	_, err := s.kinesis.PutRecord(ctx, p.single[i%len(p.single)])
	return err
}

func (s *sdk) iterator(ctx context.Context, shard int) (string, error) {
	out, err := s.kinesis.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{
		StreamName: aws.String(stream), ShardId: aws.String(shardID(shard)),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ShardIterator), nil
}

func (s *sdk) read(ctx context.Context, iterator string) (int, string, error) {
	out, err := s.kinesis.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: &iterator})
	if err != nil {
		return 0, "", err
	}
	return len(out.Records), aws.ToString(out.NextShardIterator), nil
}

func (s *sdk) advance(ctx context.Context, counter string, old int) error {
	_, err := s.dynamo.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(table),
		Key:                 itemKey(counter),
		UpdateExpression:    aws.String("SET n = :new"),
		ConditionExpression: aws.String("n = :old"),
		ExpressionAttributeValues: map[string]dynamotypes.AttributeValue{
			":new": number(old + 1), ":old": number(old),
		},
	})
	return err
}

func itemKey(counter string) map[string]dynamotypes.AttributeValue {
	return map[string]dynamotypes.AttributeValue{
		"id": &dynamotypes.AttributeValueMemberS{Value: counter},
	}
}

func number(n int) dynamotypes.AttributeValue {
	return &dynamotypes.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

func shardID(shard int) string { return fmt.Sprintf("shardId-%012d", shard) }
