package awsclient

import (
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/logging"
)

// Load makes the configuration for Kinesis, DynamoDB and CloudWatch clients, for this package's
// constructors and the SDK's. It reads the AWS environment and files. Unless the Kinesis endpoint
// is loopback, it fetches credentials once, for at most credentialsTimeout.
//
// Errors wrap ErrOptions, ErrNowhere or ErrCredentials. Load checks Kinesis' credentials alone: if
// only those of DynamoDB or CloudWatch are missing, calls of their clients return the error.
func Load(ctx context.Context, options Options) (aws.Config, error) {
	if err := options.Validate(); err != nil {
		return aws.Config{}, err
	}
	options = options.withDefaults()
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(options.Region), config.WithSharedConfigProfile(options.Profile),
		config.WithLogger(logging.Nop{}), config.WithDefaultsMode(aws.DefaultsModeStandard))
	if err != nil {
		return aws.Config{}, fmt.Errorf("%w: AWS configuration: %w", ErrOptions, err)
	}
	own, chain := ownKeys(cfg, options.Profile != ""), cfg.Credentials
	where := places{
		kinesis:  place{endpoint: kinesisEndpoint(cfg, options.Endpoint)},
		dynamodb: place{endpoint: dynamoDBEndpoint(cfg, options.DynamoDBEndpoint)},
	}
	where.cloudwatch.endpoint = cloudWatchEndpoint(cfg, options.Endpoint, where.kinesis.endpoint)
	for _, p := range []*place{&where.kinesis, &where.dynamodb, &where.cloudwatch} {
		p.region, p.credentials = cfg.Region, own
		if !IsLoopback(p.endpoint) {
			p.credentials = aws.NewCredentialsCache(bounded{chain, p.endpoint})
		} else if p.region == "" {
			p.region = LocalRegion
		}
	}
	cfg.HTTPClient = newHTTPClient(transportOf(cfg), options.Dial)
	cfg.Region, cfg.Credentials = where.kinesis.region, where.kinesis.credentials
	if options.Endpoint != "" { // so that clients of other APIs do not call AWS either
		cfg.BaseEndpoint = aws.String(options.Endpoint)
	}
	cfg.ServiceOptions = append(cfg.ServiceOptions, where.serviceOptions)
	if IsLoopback(where.kinesis.endpoint) {
		return cfg, nil
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return aws.Config{}, err
	}
	if cfg.Region == "" {
		return aws.Config{}, fmt.Errorf("%w: no AWS region: give --region or AWS_REGION",
			ErrOptions)
	}
	return cfg, nil
}

// transportOf returns the transport that the SDK has configured, for instance by AWS_CA_BUNDLE.
func transportOf(cfg aws.Config) *http.Transport {
	if buildable, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		return buildable.GetTransport()
	}
	return nil
}

// kinesisEndpoint returns the explicit endpoint, or else the one that the SDK finds in the
// environment and the AWS files.
func kinesisEndpoint(cfg aws.Config, explicit string) string {
	if explicit != "" {
		return explicit
	}
	return aws.ToString(kinesis.NewFromConfig(cfg).Options().BaseEndpoint)
}

func dynamoDBEndpoint(cfg aws.Config, explicit string) string {
	if explicit != "" {
		return explicit
	}
	return aws.ToString(dynamodb.NewFromConfig(cfg).Options().BaseEndpoint)
}

// cloudWatchEndpoint returns the endpoint of CloudWatch. Beside a Kinesis endpoint on this machine
// it is there, too, unless another one is configured: metrics must not reach AWS by accident.
func cloudWatchEndpoint(cfg aws.Config, explicit, ofKinesis string) string {
	if explicit != "" {
		return explicit
	}
	configured := aws.ToString(cloudwatch.NewFromConfig(cfg).Options().BaseEndpoint)
	if configured == "" && IsLoopback(ofKinesis) {
		return ofKinesis
	}
	return configured
}

// noValue signs requests to servers that do not check signatures.
var noValue = credentials.NewStaticCredentialsProvider("runnel", "runnel", "")
