package lease

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Stats are the measurements of a holder at its write of a row (runnelStats), for people and tools.
// No worker decides by them.
type Stats struct {
	At     time.Time     // the time of the write, by the holder's clock, in milliseconds
	Behind time.Duration // the distance to the tip of the stream, in milliseconds

	// These are moving averages, over about four times the failover time.
	//
	// Rate is the bytes of data that the holder processed a second. Busy is the share of the time
	// in which a handler of the holder ran, for any of its shards: from 0 to 1, in steps of a
	// thousandth. Ingest is the bytes of data a second that arrived in the shard, at the time when
	// the records at its position did; 0 if none did or it is not known.
	Rate   int64
	Busy   float64
	Ingest int64
}

// String returns the attribute's value: the fields as integers.
func (s Stats) String() string {
	return fmt.Sprintf("%d %d %d %d %d", s.At.UnixMilli(), s.Behind.Milliseconds(), s.Rate,
		int64(math.Round(s.Busy*1000)), s.Ingest)
}

// parseStats reads an attribute; the zero Stats for a value of another shape. An older version
// wrote the first three numbers alone.
func parseStats(value string) Stats {
	var numbers [5]int64
	parts := strings.Split(value, " ")
	if len(parts) != 3 && len(parts) != len(numbers) {
		return Stats{}
	}
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return Stats{}
		}
		numbers[i] = n
	}
	const year = 366 * 24 * time.Hour // the longest retention period
	return Stats{
		At:     time.UnixMilli(numbers[0]).UTC(),
		Behind: time.Duration(min(numbers[1], year.Milliseconds())) * time.Millisecond,
		Rate:   numbers[2], Busy: float64(min(numbers[3], 1000)) / 1000, Ingest: numbers[4],
	}
}

// readThroughput reads throughputKBps; 0 for a value that is no throughput.
func readThroughput(row item) float64 {
	value, ok := row[attrThroughput].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseFloat(value.Value, 64)
	if err != nil || !(n >= 0 && n < 1e12) {
		return 0
	}
	return n
}

// throughput is an attribute's value with six decimals, as the KCL writes it.
func throughput(n float64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatFloat(n, 'f', 6, 64)}
}
