package s3store

import (
	"errors"
	"fmt"
	"net/http"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/sink/archive"
)

// isConflict reports that another create of the name was under way.
func isConflict(err error) bool { return awserr.Status(err) == http.StatusConflict }

// isThere reports that the condition of a create did not hold.
func isThere(err error) bool { return awserr.Status(err) == http.StatusPreconditionFailed }

func isNotFound(err error) bool {
	return awserr.Status(err) == http.StatusNotFound && awserr.Code(err) != awserr.CodeNoSuchBucket
}

// explain marks answers that another try does not change as archive.ErrStoreRefused, with the
// remedy where it is known, and all other errors as archive.ErrStoreUnavailable: also a token past
// its time, since the client gets new ones.
func explain(err error) error {
	status := awserr.Status(err)
	moved := status >= 300 && status < 400
	class := awserr.S3.Of(err)
	if !moved && (class == awserr.Expired || awserr.S3.Transient(err)) {
		return fmt.Errorf("%w: %w", archive.ErrStoreUnavailable, err)
	}
	region := regionOf(err)
	switch {
	case region != "" && (moved || status == http.StatusBadRequest):
		return fmt.Errorf("%w: the bucket is in the region %s: name it with --region or "+
			"AWS_REGION: %w", archive.ErrStoreRefused, region, err)
	case awserr.Code(err) == awserr.CodeNoSuchBucket:
		return fmt.Errorf("%w: there is no such bucket: create it, or check its name and the "+
			"endpoint: %w", archive.ErrStoreRefused, err)
	case status == http.StatusForbidden:
		return fmt.Errorf("%w: the role needs s3:PutObject, s3:GetObject and s3:ListBucket there, "+
			"and the keys must be valid: %w", archive.ErrStoreRefused, err)
	}
	return fmt.Errorf("%w: %w", archive.ErrStoreRefused, err)
}

// regionOf returns the bucket's region, where an answer names it.
func regionOf(err error) string {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil {
		return ""
	}
	return answer.Response.Header.Get("X-Amz-Bucket-Region")
}
