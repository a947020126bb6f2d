// Package awsclient makes the AWS SDK clients of the client half, with their endpoint, region,
// credentials and HTTP transport. The commands and runneltest make all their clients with it.
//
// It reads endpoints, regions, profiles and credentials from the environment and the AWS files, as
// the AWS CLI and the SDKs do. It adds three rules:
//
//   - A loopback endpoint needs neither credentials nor a region, and causes no look-up of either.
//   - No call reaches AWS by accident: without an endpoint and without credentials, Load returns
//     ErrNowhere, which names both ways out.
//   - Request bodies are wrapped, so that net/http does not report a stored batch as failed; see
//     HTTPClient.
package awsclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/runnel-stream/runnel/internal/origin"
)

// LocalEndpoint is the default address of `runnel serve`.
const LocalEndpoint = "http://127.0.0.1:4567"

// LocalRegion is the region at a loopback endpoint where none is configured.
const LocalRegion = "us-east-1"

var (
	// ErrOptions is wrapped by errors about invalid options and an invalid AWS configuration.
	ErrOptions = errors.New("cannot connect")
	// ErrNowhere is wrapped if there is neither an endpoint nor credentials.
	ErrNowhere = errors.New("neither an endpoint nor AWS credentials: give --local for a server " +
		"on this machine (runnel serve), or --endpoint URL or AWS_ENDPOINT_URL for another one, " +
		"or AWS credentials for AWS itself (aws configure, AWS_PROFILE or AWS_ACCESS_KEY_ID)")
	// ErrCredentials is wrapped if there are no credentials for an endpoint that is not loopback.
	ErrCredentials = errors.New("no AWS credentials (a runnel server with --auth none takes any, " +
		"as AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any)")
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Options select the endpoints, the region and the credentials. The zero value takes all of them
// from the AWS environment and files.
type Options struct {
	// Endpoint is the URL of every API. Default: AWS_ENDPOINT_URL_KINESIS and its siblings,
	// AWS_ENDPOINT_URL, endpoint_url in the profile; else AWS itself.
	Endpoint string
	// DynamoDBEndpoint is the URL of the DynamoDB API, where it differs. Default: Endpoint.
	DynamoDBEndpoint string
	// Region is the AWS region. Default: AWS_REGION, the profile's; us-east-1 at a loopback
	// endpoint.
	Region string
	// Profile is a section of the AWS files. Default: AWS_PROFILE, "default".
	Profile string
	// Local is short for Endpoint: LocalEndpoint.
	Local bool
	// Dial opens the connections. Default: a net.Dialer with a time-out of 5 s.
	Dial Dial
}

func (o Options) withDefaults() Options {
	if o.Local {
		o.Endpoint = LocalEndpoint
	}
	if o.DynamoDBEndpoint == "" {
		o.DynamoDBEndpoint = o.Endpoint
	}
	return o
}

// Validate reports all faults at once. The errors wrap ErrOptions.
func (o Options) Validate() error {
	var faults []error
	if o.Local && o.Endpoint != "" {
		faults = append(faults, fmt.Errorf("%w: --local and --endpoint %s exclude each other",
			ErrOptions, o.Endpoint))
	}
	for name, endpoint := range map[string]string{
		"--endpoint": o.Endpoint, "--dynamodb-endpoint": o.DynamoDBEndpoint,
	} {
		if err := checkEndpoint(endpoint); endpoint != "" && err != nil {
			faults = append(faults, fmt.Errorf("%w: %s %w", ErrOptions, name, err))
		}
	}
	return errors.Join(faults...)
}

func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%q: want a URL, as %s", endpoint, LocalEndpoint)
	}
	return nil
}

// IsLoopback reports whether an endpoint's URL names this machine by a loopback address:
// 127.0.0.0/8, ::1, localhost or a name under it.
func IsLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	return origin.IsLocal(u.Hostname())
}
