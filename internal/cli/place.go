package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
	"github.com/runnel-stream/runnel/sink/archive/table"
)

// placeFlags are the flags for the place of an archive in S3.
type placeFlags struct {
	s3  awsclient.S3Options
	sse string
}

// addFlags adds the flags; the region and the profile, too, if the command has none for a stream.
func (f *placeFlags) addFlags(command *cobra.Command, writes, alone bool) {
	flags := command.Flags()
	flags.StringVar(&f.s3.Endpoint, "s3-endpoint", "",
		"URL of the S3 API (default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else AWS)")
	if writes {
		flags.StringVar(&f.sse, "s3-sse", "",
			"encryption in S3: AES256, aws:kms or aws:kms=KEY (default: as the bucket has it)")
	}
	if alone {
		flags.StringVar(&f.s3.Region, "region", "", "AWS region (default: as the AWS CLI)")
		flags.StringVar(&f.s3.Profile, "profile", "", "AWS profile (default: as the AWS CLI)")
	}
}

// like takes the region and the profile that the command's other flags name.
func (f *placeFlags) like(command *cobra.Command) {
	f.s3.Region, _ = command.Flags().GetString("region")
	f.s3.Profile, _ = command.Flags().GetString("profile")
}

// open returns the store of s3://BUCKET/PREFIX.
func (f *placeFlags) open(ctx context.Context, to string) (*s3store.Store, error) {
	place, err := s3store.ParseURL(to)
	if err != nil {
		return nil, exit.Usage("%w", err)
	}
	cfg := s3store.Config{Bucket: place.Bucket, Prefix: place.Prefix}
	encryption, key, _ := strings.Cut(f.sse, "=")
	cfg.Encryption, cfg.KMSKey = types.ServerSideEncryption(encryption), key
	client, err := awsclient.S3(ctx, f.s3)
	switch {
	case errors.Is(err, awsclient.ErrOptions):
		return nil, exit.Usage("%w", err)
	case err != nil:
		return nil, exit.Outside(err)
	}
	cfg.S3 = client
	store, err := s3store.New(cfg)
	if err != nil {
		return nil, exit.Usage("--s3-sse %s: %w", f.sse, err)
	}
	return store, nil
}

// inS3 reports whether a place is a URL of S3, and checks the flags against it.
func (f *placeFlags) inS3(to string) (bool, error) {
	switch {
	case s3store.IsURL(to):
		return true, nil
	case f.s3.Endpoint != "" || f.sse != "":
		return false, exit.Usage("%s is a folder: --s3-endpoint and --s3-sse are for "+
			"s3://BUCKET/PREFIX", to)
	}
	return false, nil
}

// target returns the store of an archive that is written, in a folder or in S3.
func (f *placeFlags) target(ctx context.Context, to string) (table.Store, error) {
	inS3, err := f.inS3(to)
	switch {
	case err != nil:
		return nil, err
	case inS3:
		return f.open(ctx, to)
	}
	store, err := archive.NewDirStore(to)
	if err != nil {
		return nil, exit.Outside(err)
	}
	return store, nil
}

// source returns the store of an archive that is there, in a folder or in S3.
func (f *placeFlags) source(ctx context.Context, from string) (table.Store, error) {
	store, err := f.target(ctx, from)
	if err != nil || s3store.IsURL(from) {
		return store, err
	}
	_, err = archive.Open(from)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid),
		errors.Is(err, syscall.ENOTDIR):
		return nil, exit.Usage("%w", err)
	case err != nil:
		return nil, exit.Outside(err)
	}
	return store, nil
}

// reader opens an archive, in a folder or in S3.
func (f *placeFlags) reader(ctx context.Context, from string) (*archive.Reader, error) {
	store, err := f.source(ctx, from)
	if err != nil {
		return nil, err
	}
	return archive.NewReader(store), nil
}
