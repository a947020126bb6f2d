package awsclient

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// Option changes a client.
type Option func(*settings)

type settings struct{ once bool }

// WithoutRetries makes a client that sends every call once. It is for callers with retries of their
// own: they must not send a call with an unknown outcome again blindly.
func WithoutRetries() Option { return func(s *settings) { s.once = true } }

func apply(options []Option) settings {
	var s settings
	for _, option := range options {
		option(&s)
	}
	return s
}

// Kinesis makes a Kinesis client of a configuration that Load or ForServer made. The SDK's
// standard retries are on unless WithoutRetries.
func Kinesis(cfg aws.Config, options ...Option) *kinesis.Client {
	s := apply(options)
	return kinesis.NewFromConfig(cfg, func(o *kinesis.Options) {
		if s.once {
			o.Retryer = aws.NopRetryer{}
		}
	})
}

// DynamoDB makes a DynamoDB client, as Kinesis does.
func DynamoDB(cfg aws.Config, options ...Option) *dynamodb.Client {
	s := apply(options)
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if s.once {
			o.Retryer = aws.NopRetryer{}
		}
	})
}

// CloudWatch makes a CloudWatch client, as Kinesis does.
func CloudWatch(cfg aws.Config, options ...Option) *cloudwatch.Client {
	s := apply(options)
	return cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) {
		if s.once {
			o.Retryer = aws.NopRetryer{}
		}
	})
}

// place is the destination of one API's clients.
type place struct {
	endpoint    string // "": AWS itself
	region      string
	credentials aws.CredentialsProvider
}

// places is part of the configuration, so that clients of the SDK's own constructors follow it too.
type places struct{ kinesis, dynamodb, cloudwatch place }

func (p *places) serviceOptions(_ string, options any) {
	switch o := options.(type) {
	case *kinesis.Options:
		o.BaseEndpoint, o.Region, o.Credentials = p.kinesis.get()
	case *dynamodb.Options:
		o.BaseEndpoint, o.Region, o.Credentials = p.dynamodb.get()
	case *cloudwatch.Options:
		o.BaseEndpoint, o.Region, o.Credentials = p.cloudwatch.get()
	}
}

func (p place) get() (*string, string, aws.CredentialsProvider) {
	if p.endpoint == "" {
		return nil, p.region, p.credentials
	}
	return aws.String(p.endpoint), p.region, p.credentials
}
