package consumer_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// loopback makes a fake a client of a server on this machine, for which the worker has no limits.
type loopback struct{}

func (loopback) Options() kinesis.Options {
	return kinesis.Options{BaseEndpoint: aws.String("http://127.0.0.1:4566")}
}
