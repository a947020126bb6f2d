package s3store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// API is the part of the S3 client that a Store calls.
type API interface {
	PutObject(
		context.Context, *s3.PutObjectInput, ...func(*s3.Options),
	) (*s3.PutObjectOutput, error)
	GetObject(
		context.Context, *s3.GetObjectInput, ...func(*s3.Options),
	) (*s3.GetObjectOutput, error)
	ListObjectsV2(
		context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options),
	) (*s3.ListObjectsV2Output, error)
}

var _ API = (*s3.Client)(nil)

// Config is the configuration of a Store. S3 and Bucket are required.
type Config struct {
	// S3 is the client. Its retries may be on, since a create may be sent again.
	S3 API
	// Bucket is the bucket's name; it exists. A directory bucket (…--x-s3) is refused, since its
	// listings have no order.
	Bucket string
	// Prefix is the folder of the archive in the bucket, as a/b; "" for the whole bucket.
	Prefix string
	// Encryption asks for encryption on the server: "AES256", "aws:kms" or "aws:kms:dsse". Default:
	// as the bucket has it.
	Encryption types.ServerSideEncryption
	// KMSKey is the key for aws:kms and aws:kms:dsse. Default: AWS's own key of the account.
	KMSKey string
	// CallTimeout is the time of a call, beside that for the data of a large object. Default 30s.
	CallTimeout time.Duration
}

const defaultCallTimeout = 30 * time.Second

// Place is a place in S3, as s3://BUCKET/PREFIX names it.
type Place struct {
	Bucket string // the bucket's name
	Prefix string // as Config has it
}

// String returns the URL.
func (p Place) String() string { return strings.TrimSuffix("s3://"+p.Bucket+"/"+p.Prefix, "/") }

const scheme = "s3:"

// IsURL reports whether a text is meant as the URL of a place in S3.
func IsURL(text string) bool { return strings.HasPrefix(strings.ToLower(text), scheme) }

// ParseURL reads s3://BUCKET/PREFIX. A slash at the end does not matter.
func ParseURL(text string) (Place, error) {
	if !IsURL(text) || !strings.HasPrefix(text[len(scheme):], "//") {
		return Place{}, fmt.Errorf("%q: want s3://BUCKET/PREFIX", text)
	}
	bucket, prefix, _ := strings.Cut(text[len(scheme)+2:], "/")
	if !buckets().MatchString(bucket) {
		return Place{}, fmt.Errorf("%q: %q cannot name a bucket: want 3 to 63 of a-z, 0-9, "+
			"'-' and '.', as s3://BUCKET/PREFIX", text, bucket)
	}
	if strings.ContainsFunc(prefix, isOdd) || !utf8.ValidString(prefix) {
		return Place{}, fmt.Errorf("%q: the prefix has one of ? # %% * \\, or a character "+
			"that cannot be printed: choose another", text)
	}
	place := Place{Bucket: bucket, Prefix: strings.TrimSuffix(prefix, "/")}
	return place, place.check()
}

// buckets matches the names of general purpose buckets (S3 User Guide, "naming rules").
var buckets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
})

// isOdd reports whether a character of a prefix is more likely a mistake, or needs quoting.
func isOdd(r rune) bool { return strings.ContainsRune("?#%*\\", r) || !unicode.IsPrint(r) }

const directoryBucket = "--x-s3"

func (p Place) check() error {
	if strings.HasSuffix(p.Bucket, directoryBucket) {
		return fmt.Errorf("bucket %s is a directory bucket: its listings have no order, which the "+
			"archive needs; name a general purpose bucket", p.Bucket)
	}
	if p.Prefix == "" {
		return nil
	}
	for part := range strings.SplitSeq(p.Prefix, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("prefix %q: want names with one slash between them", p.Prefix)
		}
	}
	return nil
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("s3store: "+format, args...))
		}
	}
	fault(c.S3 == nil, "S3 is missing: want a client")
	fault(c.Bucket == "", "Bucket is missing")
	if err := (Place{c.Bucket, c.Prefix}).check(); err != nil {
		faults = append(faults, fmt.Errorf("s3store: %w", err))
	}
	switch c.Encryption {
	case "", types.ServerSideEncryptionAes256, types.ServerSideEncryptionAwsKms,
		types.ServerSideEncryptionAwsKmsDsse:
	default:
		fault(true, "Encryption is %q: want AES256, aws:kms or aws:kms:dsse", c.Encryption)
	}
	fault(c.KMSKey != "" && !strings.HasPrefix(string(c.Encryption), "aws:kms"),
		"KMSKey is set and Encryption is %q: want aws:kms or aws:kms:dsse", c.Encryption)
	fault(c.CallTimeout < 0, "CallTimeout is %s: want 0 or more", c.CallTimeout)
	return errors.Join(faults...)
}
