package mongostore

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/runnel-stream/runnel/sink/rollup"
)

// KeepBad implements rollup.RowStore. The document's id is the shard's id and the position, with a
// space between them. It has the fields shard, position, partition_key, arrived, reason and data.
func (s *Store) KeepBad(ctx context.Context, bad rollup.BadRecord) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	record := bad.Record
	position := record.Position.SortText()
	id := string(record.ShardID) + " " + position
	_, err := s.bad.ReplaceOne(ctx, bson.D{{Key: fieldID, Value: id}}, bson.D{
		{Key: fieldID, Value: id},
		{Key: "shard", Value: string(record.ShardID)},
		{Key: "position", Value: position},
		{Key: "partition_key", Value: record.PartitionKey},
		{Key: "arrived", Value: bson.NewDateTimeFromTime(record.ArrivalTime)},
		{Key: "reason", Value: bad.Reason},
		{Key: "data", Value: bson.Binary{Data: record.Data}},
	}, options.Replace().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) { // another worker keeps it at the same moment
		return nil
	}
	return classify(err)
}
