package pages

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awsclient"
)

// Limits are the most that the reading of one shard takes in a second. A zero field is no limit.
type Limits struct {
	Calls float64 // of GetRecords
	Bytes float64 // of data and partition keys
}

// AWS is what one shard gives to all its readers together (AWS, "GetRecords").
var AWS = Limits{Calls: 5, Bytes: 2 << 20}

// LimitsOf returns the limits for the shards that a client reads. A rate above 0 is the user's
// number of calls a second. Without one the limits are AWS's, unless the client's endpoint is a
// loopback address: then there are none. A client that does not say its endpoint counts as AWS's.
//
// A rate of AWS's 5 or less leaves the bytes at AWS's limit. A higher one says that the server is
// another one, and raises the bytes in proportion.
func LimitsOf(client KinesisAPI, rate float64) Limits {
	if rate > 0 {
		return Limits{Calls: rate, Bytes: AWS.Bytes * max(1, rate/AWS.Calls)}
	}
	if c, ok := client.(interface{ Options() kinesis.Options }); ok &&
		awsclient.IsLoopback(aws.ToString(c.Options().BaseEndpoint)) {
		return Limits{}
	}
	return AWS
}
