package s3store

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/sink/archive"
)

// object reads an object. A connection that breaks or falls silent is replaced by one for the rest:
// objects never change.
type object struct {
	store  *Store
	ctx    context.Context //nolint:containedctx // of Get, for the whole reading
	name   string
	at     int64 // bytes that were read
	size   int64 // of the object; -1 if it is not known
	body   io.ReadCloser
	cancel context.CancelFunc
	idle   *time.Timer // cancels a body that brings nothing for the time of a call
}

// resumes are the waits before the rest of an object is asked for; resumeTries is the number of
// failures in a row that a reader accepts.
var resumes = retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

const resumeTries = 5

func (o *object) open(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	o.idle = time.AfterFunc(o.store.cfg.CallTimeout, cancel)
	in := &s3.GetObjectInput{
		Bucket: &o.store.cfg.Bucket, Key: aws.String(o.store.key(o.name)),
	}
	if o.at > 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", o.at))
	}
	out, err := o.store.cfg.S3.GetObject(ctx, in)
	if err == nil {
		if err = o.seek(out); err == nil {
			o.body, o.cancel = out.Body, cancel
			return nil
		}
		_ = out.Body.Close() // only read
	}
	o.idle.Stop()
	cancel()
	switch {
	case o.at > 0 && awserr.Status(err) == http.StatusRequestedRangeNotSatisfiable:
		o.body, o.cancel = http.NoBody, func() {} // it broke behind the last byte
		return nil
	case o.ctx.Err() == nil && isNotFound(err):
		return fmt.Errorf("%w: %s", archive.ErrObjectNotFound, o.where())
	}
	return o.store.wrap("get", o.name, err)
}

// seek leaves the body of an answer at the next byte. A server may send the whole object instead of
// the rest.
func (o *object) seek(out *s3.GetObjectOutput) error {
	if o.at == 0 {
		if o.size = -1; out.ContentLength != nil {
			o.size = *out.ContentLength
		}
		return nil
	}
	if out.ContentRange == nil {
		_, err := io.CopyN(io.Discard, out.Body, o.at)
		return err
	}
	if want := fmt.Sprintf("bytes %d-", o.at); !strings.HasPrefix(*out.ContentRange, want) {
		return fmt.Errorf("the answer has %s of the object, want %s", *out.ContentRange, want)
	}
	return nil
}

func (o *object) where() Place { return Place{o.store.cfg.Bucket, o.store.key(o.name)} }

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	for failures := 0; ; {
		var err error
		if o.body != nil {
			var n int
			o.idle.Reset(o.store.cfg.CallTimeout)
			n, err = o.body.Read(p)
			o.idle.Stop()
			o.at += int64(n)
			switch {
			case err == io.EOF: //nolint:errorlint // io.Reader's own value
				return n, err
			case n > 0 || err == nil:
				return n, nil // an error comes with the next call
			}
			o.drop()
			err = o.store.wrap("get", o.name, err)
			if o.at == o.size {
				return 0, err // all bytes came, and they are not those that S3 has
			}
		} else if err = o.open(o.ctx); err == nil {
			continue
		}
		if failures++; failures > resumeTries || o.ctx.Err() != nil ||
			resumes.Wait(o.ctx, failures) != nil {
			return 0, err
		}
	}
}

func (o *object) drop() {
	if o.body != nil {
		o.idle.Stop()
		_ = o.body.Close() // only read
		o.cancel()
		o.body = nil
	}
}

// Close implements io.Closer.
func (o *object) Close() error {
	o.drop()
	return nil
}
