package producer

import (
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// EncodeUnit returns FrozenUnit.Data of a unit with this identity and these records, in order: the
// bytes that the producer has made, in OrderKey and OrderShard. So a Journal over a store that has
// the records may keep their names alone, and make the unit again for Config.Resume. It returns an
// error for records that are not of one key, and for those that no aggregate holds.
func EncodeUnit(unit aggregate.Unit, records []runnel.Record) ([]byte, error) {
	if len(records) == 0 || unit.Number == 0 {
		return nil, errors.New("encode a unit: it has no record or no number")
	}
	var encoder aggregate.Encoder
	for i, r := range records {
		part := aggregate.Record{
			PartitionKey: r.PartitionKey, ExplicitHashKey: r.ExplicitHashKey, Data: r.Data,
		}
		if i == 0 {
			part.Tags = unit.AppendTo(nil)
		} else if r.PartitionKey != records[0].PartitionKey ||
			r.ExplicitHashKey != records[0].ExplicitHashKey {
			return nil, fmt.Errorf("encode unit %d: record %d has another key", unit.Number, i)
		}
		if err := encoder.Add(part); err != nil {
			return nil, fmt.Errorf("encode unit %d: record %d: %w", unit.Number, i, err)
		}
	}
	return encoder.Seal(make([]byte, 0, encoder.Size())), nil
}
