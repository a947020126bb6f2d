package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/sink/archive"
)

// Store is an archive.Store below a prefix of a bucket. It is safe for concurrent use.
type Store struct {
	cfg  Config
	page *int32 // names of a call of After; nil for as many as S3 returns, 1,000
}

var _ archive.Store = (*Store)(nil)

// New returns the store of a configuration. It makes no call.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = defaultCallTimeout
	}
	return &Store{cfg: cfg}, nil
}

func (s *Store) place() Place { return Place{s.cfg.Bucket, s.cfg.Prefix} }

func (s *Store) key(name string) string { return path.Join(s.cfg.Prefix, name) }

// slowest is the rate, in bytes a second, below which the upload of an object is given up.
const slowest = 128 << 10

// call bounds a call that sends or receives some bytes.
func (s *Store) call(ctx context.Context, size int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.CallTimeout+time.Duration(size)*time.Second/slowest)
}

// conflicts are the waits between creates that S3 has answered with 409, because another one of the
// same name was under way.
var conflicts = retry.Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second}

// conflictTries is the number of creates after which a conflict counts as an outage.
const conflictTries = 6

// PutIfAbsent implements archive.Store: one PutObject with If-None-Match: *, and again some times
// while the answer is 409.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	for failures := 1; ; failures++ {
		err := s.put(ctx, name, data, aws.String("*"))
		switch {
		case err == nil:
			return nil
		case isConflict(err) && failures < conflictTries:
			if err := conflicts.Wait(ctx, failures); err != nil {
				return s.wrap("put", name, err)
			}
		case isThere(err):
			return archive.ErrObjectExists
		default:
			return s.wrap("put", name, err)
		}
	}
}

// Put creates an object, or replaces it as a whole.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	if err := s.put(ctx, name, data, nil); err != nil {
		return s.wrap("put", name, err)
	}
	return nil
}

func (s *Store) put(ctx context.Context, name string, data []byte, ifNoneMatch *string) error {
	ctx, cancel := s.call(ctx, len(data))
	defer cancel()
	in := &s3.PutObjectInput{
		Bucket: &s.cfg.Bucket, Key: aws.String(s.key(name)), IfNoneMatch: ifNoneMatch,
		Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		ServerSideEncryption: s.cfg.Encryption,
	}
	if s.cfg.KMSKey != "" {
		in.SSEKMSKeyId = &s.cfg.KMSKey
	}
	_, err := s.cfg.S3.PutObject(ctx, in)
	return err
}

// Get implements archive.Store. If the connection breaks, the reader asks for the rest.
func (s *Store) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	o := &object{store: s, ctx: ctx, name: name}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	return o, nil
}

// List implements archive.Store.
func (s *Store) List(ctx context.Context, folder string) (archive.Listing, error) {
	var listing archive.Listing
	in := &s3.ListObjectsV2Input{
		Bucket: &s.cfg.Bucket, Prefix: aws.String(s.below(folder)), Delimiter: aws.String("/"),
	}
	for {
		out, err := s.list(ctx, in)
		if err != nil {
			return archive.Listing{}, s.wrap("list", folder, err)
		}
		for _, p := range out.CommonPrefixes {
			base := strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), *in.Prefix), "/")
			listing.Folders = appendVisible(listing.Folders, base)
		}
		for _, o := range out.Contents {
			base := strings.TrimPrefix(aws.ToString(o.Key), *in.Prefix)
			listing.Objects = appendVisible(listing.Objects, base)
		}
		if !aws.ToBool(out.IsTruncated) {
			break
		}
		if in.ContinuationToken = out.NextContinuationToken; in.ContinuationToken == nil {
			return archive.Listing{}, s.wrap("list", folder, errNoPage)
		}
	}
	slices.Sort(listing.Folders)
	slices.Sort(listing.Objects)
	return listing, nil
}

var errNoPage = errors.New("the answer says that more names follow, and not how to get them")

// appendVisible leaves out names that begin with a dot, and the empty one: some programs mark a
// folder by an object of that name.
func appendVisible(names []string, base string) []string {
	if base == "" || strings.HasPrefix(base, ".") {
		return names
	}
	return append(names, base)
}

func (s *Store) list(
	ctx context.Context, in *s3.ListObjectsV2Input,
) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := s.call(ctx, 0)
	defer cancel()
	return s.cfg.S3.ListObjectsV2(ctx, in)
}

// below returns the prefix of the objects in a folder.
func (s *Store) below(folder string) string {
	if prefix := s.key(folder); prefix != "" {
		return prefix + "/"
	}
	return ""
}

// After implements archive.Store, with one call.
func (s *Store) After(
	ctx context.Context, folder, name string,
) (names []string, more bool, err error) {
	prefix := s.below(folder)
	in := &s3.ListObjectsV2Input{
		Bucket: &s.cfg.Bucket, Prefix: &prefix, Delimiter: aws.String("/"), MaxKeys: s.page,
	}
	if after := prefix + name; after != "" {
		in.StartAfter = &after
	}
	out, err := s.list(ctx, in)
	if err != nil {
		return nil, false, s.wrap("list", folder, err)
	}
	for _, o := range out.Contents {
		names = appendVisible(names, strings.TrimPrefix(aws.ToString(o.Key), prefix))
	}
	slices.Sort(names)
	return names, aws.ToBool(out.IsTruncated), nil
}

// Settle implements archive.Store: S3 returns durable objects only.
func (s *Store) Settle(context.Context, string) error { return nil }

// Sweep implements archive.Store: S3 keeps nothing of an unfinished put.
func (s *Store) Sweep(context.Context, string) error { return nil }

func (s *Store) wrap(doing, name string, err error) error {
	return fmt.Errorf("%s %s: %w", doing, Place{s.cfg.Bucket, s.key(name)}, explain(err))
}
