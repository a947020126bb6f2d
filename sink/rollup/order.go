package rollup

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
)

// Order is a record's place among all records of a stream: by time, and among equal times by
// arrival, shard and position. It decides which record is the last one of a row.
type Order struct {
	// Time is the time at Definition.Time, in UTC; the arrival time if that has no pointer.
	Time time.Time
	// Arrival is the arrival time, in UTC.
	Arrival time.Time
	// Shard is the record's shard. Its id has only letters, digits, "_", "." and "-".
	Shard runnel.ShardID
	// Position is the record's place in the shard.
	Position runnel.Position
}

// Compare returns -1, 0 or 1 if o is before, equal to or after other.
func (o Order) Compare(other Order) int {
	return cmp.Or(
		o.Time.Compare(other.Time),
		o.Arrival.Compare(other.Arrival),
		strings.Compare(string(o.Shard), string(other.Shard)),
		o.Position.Compare(other.Position),
	)
}

const timeLayout = "2006-01-02T15:04:05.000000000Z"

// String returns the order as text. The texts' bytewise order is that of Compare, for times in the
// years 1 to 9999:
//
//	2026-01-02T03:04:05.678000000Z 2026-01-02T03:04:06.000000000Z shardId-000000000000 POSITION
//
// The last part is runnel.Position.SortText. PostgreSQL compares texts by language unless the
// column has COLLATE "C".
func (o Order) String() string {
	return o.Time.UTC().Format(timeLayout) + " " + o.Arrival.UTC().Format(timeLayout) + " " +
		string(o.Shard) + " " + o.Position.SortText()
}

// ErrOrderSyntax is returned for a text other than those of Order.String.
var ErrOrderSyntax = errors.New("not an order of records")

// ParseOrder reads a text of Order.String. For any other text it returns an error that wraps
// ErrOrderSyntax.
func ParseOrder(text string) (Order, error) {
	parts := strings.Split(text, " ")
	if len(parts) == 4 {
		at, err1 := time.Parse(timeLayout, parts[0])
		arrival, err2 := time.Parse(timeLayout, parts[1])
		position, err3 := runnel.ParsePosition(parts[3])
		o := Order{at, arrival, runnel.ShardID(parts[2]), position}
		if err1 == nil && err2 == nil && err3 == nil && o.String() == text {
			return o, nil
		}
	}
	return Order{}, fmt.Errorf("%w: %q", ErrOrderSyntax, text)
}
