package kinesis

import (
	"math"
	"strconv"
)

// integer is the model's integer: a whole number of 32 bits.
type integer int64

// timestamp is a point in time, in ms since 1970. In JSON it is in seconds, with a fraction; in
// CBOR a whole number of milliseconds.
type timestamp int64

// UnmarshalJSON implements json.Unmarshaler, for the service's own output.
func (t *timestamp) UnmarshalJSON(data []byte) error {
	seconds, err := strconv.ParseFloat(string(data), 64)
	if err == nil {
		*t = timestamp(math.Round(seconds * 1000))
	}
	return err
}

// MarshalJSON implements json.Marshaler: seconds with three decimals, never an exponent.
func (t timestamp) MarshalJSON() ([]byte, error) { return appendSeconds(nil, int64(t)), nil }

// MarshalCBOR implements cbor.Marshaler.
func (t timestamp) MarshalCBOR() ([]byte, error) { return appendCBORTime(nil, int64(t)), nil }
