package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
)

// connection holds the flags for the endpoint: the user's own, or AWS.
type connection struct {
	options awsclient.Options
}

func (c *connection) addFlags(command *cobra.Command, withDynamoDB bool) {
	flags := command.Flags()
	flags.StringVar(&c.options.Endpoint, "endpoint", "",
		"URL of the Kinesis API (default: AWS_ENDPOINT_URL_KINESIS, AWS_ENDPOINT_URL, else AWS)")
	flags.StringVar(&c.options.Region, "region", "", "AWS region (default: as the AWS CLI)")
	flags.StringVar(&c.options.Profile, "profile", "", "AWS profile (default: as the AWS CLI)")
	flags.BoolVar(&c.options.Local, "local", false,
		"the server on this machine, at "+awsclient.LocalEndpoint)
	if withDynamoDB {
		flags.StringVar(&c.options.DynamoDBEndpoint, "dynamodb-endpoint", "",
			"URL of the DynamoDB API, where it differs from --endpoint")
	}
}

// hint adds a remedy to the error of a stream that does not exist.
func hint(err error, stream string) error {
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return fmt.Errorf("%w; see runnel streams list, create it (runnel streams create %s), or "+
			"check the region and the access key: each has streams of its own", err, stream)
	}
	return err
}

// startHint adds a remedy to the error of a server on this machine that is not running.
func startHint(err error) error {
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

// load makes the SDK's configuration. If there is neither an endpoint nor credentials, the error
// has the status of wrong usage. Any other error has the status of a failure outside.
func (c *connection) load(ctx context.Context) (aws.Config, error) {
	cfg, err := awsclient.Load(ctx, c.options)
	switch {
	case errors.Is(err, awsclient.ErrNowhere), errors.Is(err, awsclient.ErrOptions):
		return cfg, usageError("%w", err)
	case err != nil:
		return cfg, outsideError(err)
	}
	return cfg, nil
}
