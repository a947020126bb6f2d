package s3store

import (
	"context"
	"fmt"
	"io"
	"net/http"
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
	if err != nil {
		o.idle.Stop()
		cancel()
		if o.at > 0 && awserr.Status(err) == http.StatusRequestedRangeNotSatisfiable {
			o.body, o.cancel = http.NoBody, func() {} // it broke behind the last byte
			return nil
		}
		if o.ctx.Err() == nil && isNotFound(err) {
			return fmt.Errorf("%w: %s", archive.ErrObjectNotFound, o.where())
		}
		return o.store.wrap("get", o.name, err)
	}
	o.body, o.cancel = out.Body, cancel
	return nil
}

func (o *object) where() Place { return Place{o.store.cfg.Bucket, o.store.key(o.name)} }

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	for failures := 0; ; {
		var n int
		var err error
		if o.body != nil {
			o.idle.Reset(o.store.cfg.CallTimeout)
			n, err = o.body.Read(p)
			o.idle.Stop()
			o.at += int64(n)
			if n > 0 || err == nil || err == io.EOF { //nolint:errorlint // io.Reader's own value
				if err != io.EOF { //nolint:errorlint // the same
					err = nil // another one comes with the next call
				}
				return n, err
			}
			o.drop()
		} else if err = o.open(o.ctx); err == nil {
			continue
		}
		if failures++; failures > resumeTries || o.ctx.Err() != nil {
			return 0, o.store.wrap("get", o.name, err)
		}
		if err := resumes.Wait(o.ctx, failures); err != nil {
			return 0, o.store.wrap("get", o.name, err)
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
