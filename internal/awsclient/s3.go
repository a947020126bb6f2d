package awsclient

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
)

// S3Options select the endpoint, the region and the credentials of S3. The zero value takes all of
// them from the AWS environment and files.
type S3Options struct {
	// Endpoint is the URL of the S3 API. Default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
	// endpoint_url in the profile; else AWS itself.
	Endpoint string
	// Region is the AWS region. Default: AWS_REGION, the profile's; us-east-1 at an endpoint that
	// is not AWS's.
	Region string
	// Profile is a section of the AWS files. Default: AWS_PROFILE, "default".
	Profile string
}

// ErrNoS3 is wrapped if there is neither an S3 endpoint nor credentials.
var ErrNoS3 = errors.New("neither an S3 endpoint nor AWS credentials: give --s3-endpoint URL or " +
	"AWS_ENDPOINT_URL_S3 for a server that speaks S3, or AWS credentials for AWS itself (aws " +
	"configure, AWS_PROFILE or AWS_ACCESS_KEY_ID)")

// S3 makes an S3 client. At an endpoint that is not AWS's it names buckets in the path, and sends
// checksums only where the API requires them, since other servers may not know either. Errors wrap
// ErrOptions, ErrNoS3 or ErrCredentials.
func S3(ctx context.Context, options S3Options) (*s3.Client, error) {
	if options.Endpoint != "" {
		if err := checkEndpoint(options.Endpoint); err != nil {
			return nil, fmt.Errorf("%w: --s3-endpoint %w", ErrOptions, err)
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(options.Region), config.WithSharedConfigProfile(options.Profile),
		config.WithLogger(logging.Nop{}), config.WithDefaultsMode(aws.DefaultsModeStandard))
	if err != nil {
		return nil, fmt.Errorf("%w: AWS configuration: %w", ErrOptions, err)
	}
	endpoint := options.Endpoint
	if endpoint == "" {
		endpoint = aws.ToString(s3.NewFromConfig(cfg).Options().BaseEndpoint)
	}
	if IsLoopback(endpoint) {
		cfg.Credentials = ownKeys(cfg, options.Profile != "")
	} else {
		cfg.Credentials = aws.NewCredentialsCache(bounded{cfg.Credentials, endpoint})
		if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
			if errors.Is(err, ErrNowhere) {
				err = fmt.Errorf("%w: %w", ErrOptions, ErrNoS3)
			}
			return nil, err
		}
	}
	foreign := endpoint != "" && !isAWS(endpoint)
	switch {
	case cfg.Region == "" && foreign:
		cfg.Region = LocalRegion
	case cfg.Region == "":
		return nil, fmt.Errorf("%w: no AWS region: give --region or AWS_REGION", ErrOptions)
	}
	cfg.HTTPClient = newHTTPClient(transportOf(cfg), nil)
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
		if foreign {
			o.UsePathStyle = true
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	}), nil
}

// isAWS reports whether an endpoint is one of Amazon's own.
func isAWS(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	for _, domain := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}
