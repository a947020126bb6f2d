package cloudwatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// input is the input of PutMetricData, after the service model. It lacks the entities to which
// metrics may refer, and the flag for strict validation of those: the service ignores both.
type input struct {
	Namespace        *string
	MetricData       []datum
	EntityMetricData []entityData
}

// entityData holds the metrics of an entity.
type entityData struct{ MetricData []datum }

// datum is a MetricDatum.
type datum struct {
	MetricName        *string
	Dimensions        []dimension
	Timestamp         *instant
	Value             *number
	StatisticValues   *statistics
	Values, Counts    []number
	Unit              *string
	StorageResolution *number // an integer, as the model has it
}

type dimension struct{ Name, Value *string }

// statistics is a StatisticSet.
type statistics struct{ SampleCount, Sum, Minimum, Maximum *number }

// number is a double. JSON writes NaN and the infinities as words (smithy.io, awsJson1_0).
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"NaN"`:
		*n = number(math.NaN())
		return nil
	case `"Infinity"`:
		*n = number(math.Inf(1))
		return nil
	case `"-Infinity"`:
		*n = number(math.Inf(-1))
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// instant is a timestamp: seconds since 1970 in JSON, the same under tag 1 in CBOR, and a date
// by ISO 8601 in the query protocol.
type instant struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (i *instant) UnmarshalJSON(data []byte) error {
	var seconds float64
	if err := json.Unmarshal(data, &seconds); err != nil {
		return err
	}
	return i.set(seconds)
}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (i *instant) UnmarshalCBOR(data []byte) error {
	var tag cbor.RawTag
	if err := strictCBOR.Unmarshal(data, &tag); err == nil {
		if tag.Number != 1 {
			return fmt.Errorf("a timestamp with tag %d: want 1", tag.Number)
		}
		data = tag.Content
	}
	var seconds float64
	if err := strictCBOR.Unmarshal(data, &seconds); err != nil {
		return err
	}
	return i.set(seconds)
}

var errTime = errors.New("a timestamp that is no time")

// set sets the time from seconds. It refuses times beyond the year 9999.
func (i *instant) set(seconds float64) error {
	const last = 253402300799
	if !(math.Abs(seconds) <= last) { // true for NaN, too
		return errTime
	}
	whole, part := math.Modf(seconds)
	i.Time = time.Unix(int64(whole), int64(part*1e9)).UTC()
	return nil
}
