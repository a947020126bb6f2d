package endpoint

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/streamref"
)

// Flags are the flags for the endpoint: the user's own, or AWS.
type Flags struct {
	options awsclient.Options
}

// AddFlags adds the flags to a command, with --dynamodb-endpoint if it uses lease or key tables.
func (f *Flags) AddFlags(command *cobra.Command, withDynamoDB bool) {
	flags := command.Flags()
	flags.StringVar(&f.options.Endpoint, "endpoint", "",
		"URL of the Kinesis API (default: AWS_ENDPOINT_URL_KINESIS, AWS_ENDPOINT_URL, else AWS)")
	flags.StringVar(&f.options.Region, "region", "", "AWS region (default: as the AWS CLI)")
	flags.StringVar(&f.options.Profile, "profile", "", "AWS profile (default: as the AWS CLI)")
	flags.BoolVar(&f.options.Local, "local", false,
		"the server on this machine, at "+awsclient.LocalEndpoint)
	if withDynamoDB {
		flags.StringVar(&f.options.DynamoDBEndpoint, "dynamodb-endpoint", "",
			"URL of the DynamoDB API, where it differs from --endpoint")
	}
}

// Hint adds a remedy to the error of a stream that does not exist.
func Hint(err error, stream string) error {
	if awserr.Kinesis.Of(err) == awserr.Missing {
		return fmt.Errorf("%w; see runnel streams list, create it (runnel streams create %s), or "+
			"check the region and the access key: each has streams of its own", err,
			streamref.Name(stream))
	}
	return err
}

// StartHint adds a remedy to the error of a server on this machine that is not running, of an
// access key that is not accepted, and of a certificate of an unknown authority.
func StartHint(err error) error {
	if awserr.IsKeyFault(err) {
		return fmt.Errorf("%w; the endpoint does not accept the access key: check "+
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or --profile", err)
	}
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return fmt.Errorf("%w; name the server's authority with AWS_CA_BUNDLE, as "+
			"AWS_CA_BUNDLE=runnel-data/tls/ca.pem", err)
	}
	var refused *net.OpError
	if !errors.As(err, &refused) || !errors.Is(refused, syscall.ECONNREFUSED) {
		return err
	}
	if to, ok := refused.Addr.(*net.TCPAddr); !ok || !to.IP.IsLoopback() {
		return err
	}
	return fmt.Errorf("%w; no server listens at %s: start one, as runnel serve, or name another "+
		"with --endpoint", err, refused.Addr)
}

// Load makes the SDK's configuration. If there is neither an endpoint nor credentials, the error
// has the status of wrong usage. Any other error has the status of a failure outside.
func (f *Flags) Load(ctx context.Context) (aws.Config, error) {
	cfg, err := awsclient.Load(ctx, f.options)
	switch {
	case errors.Is(err, awsclient.ErrNowhere), errors.Is(err, awsclient.ErrOptions):
		return cfg, exit.Usage("%w", err)
	case err != nil:
		return cfg, exit.Outside(err)
	}
	return cfg, nil
}
