package fanout

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// API is the part of the AWS SDK's Kinesis client that enhanced fan-out needs.
type API interface {
	Describer
	registrar
	subscriber
}

// Describer is the part of API that describes a consumer.
type Describer interface {
	DescribeStreamConsumer(context.Context, *kinesis.DescribeStreamConsumerInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamConsumerOutput, error)
}

type registrar interface {
	RegisterStreamConsumer(context.Context, *kinesis.RegisterStreamConsumerInput,
		...func(*kinesis.Options)) (*kinesis.RegisterStreamConsumerOutput, error)
}

type subscriber interface {
	SubscribeToShard(context.Context, *kinesis.SubscribeToShardInput,
		...func(*kinesis.Options)) (*kinesis.SubscribeToShardOutput, error)
}

// Missing returns the calls of API that a client does not have.
func Missing(client any) []string {
	var missing []string
	if _, ok := client.(Describer); !ok {
		missing = append(missing, "DescribeStreamConsumer")
	}
	if _, ok := client.(registrar); !ok {
		missing = append(missing, "RegisterStreamConsumer")
	}
	if _, ok := client.(subscriber); !ok {
		missing = append(missing, "SubscribeToShard")
	}
	return missing
}
