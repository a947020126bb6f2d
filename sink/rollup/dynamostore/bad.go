package dynamostore

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/sink/rollup"
)

// mostData is the part of a bad record's data that is kept: an item has 400 KB at most (AWS,
// "Constraints in Amazon DynamoDB"), and a record up to 10 MiB.
const mostData = 300 << 10

// KeepBad implements rollup.RowStore. The item's key is the shard's id and the position, with a
// space between them. It has the attributes shard, position, partition_key, arrived, reason, data
// (B, the first 300 KiB) and bytes (N, the size of all data).
func (s *Store) KeepBad(ctx context.Context, bad rollup.BadRecord) error {
	table, record := s.cfg.Table+badSuffix, bad.Record
	position := record.Position.SortText()
	return s.put(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item{
		attrKey:         str(string(record.ShardID) + " " + position),
		"shard":         str(string(record.ShardID)),
		"position":      str(position),
		"partition_key": str(record.PartitionKey),
		"arrived":       str(record.ArrivalTime.UTC().Format(time.RFC3339Nano)),
		"reason":        str(bad.Reason),
		"data": &types.AttributeValueMemberB{
			Value: record.Data[:min(len(record.Data), mostData)],
		},
		"bytes": num(strconv.Itoa(len(record.Data))),
	}})
}
