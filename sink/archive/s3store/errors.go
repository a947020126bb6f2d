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
func isConflict(err error) bool {
	return awserr.Status(err) == http.StatusConflict && awserr.S3.Of(err) == awserr.Passing
}

// isThere reports that the condition of a create did not hold.
func isThere(err error) bool { return awserr.Status(err) == http.StatusPreconditionFailed }

// isNotFound reports that S3 has no object of the name. A status 404 alone may be of a proxy.
func isNotFound(err error) bool { return awserr.Code(err) == awserr.CodeNoSuchKey }

// explain marks answers that another try does not change as archive.ErrStoreRefused, with the
// remedy where it is known, and all other errors as archive.ErrStoreUnavailable.
func explain(err error) error {
	if isOutage(err) {
		return fmt.Errorf("%w: %w", archive.ErrStoreUnavailable, err)
	}
	region, why := regionOf(err), ""
	switch status := awserr.Status(err); {
	case region != "" && (status < 400 || status == http.StatusBadRequest):
		why = fmt.Sprintf("the bucket is in the region %s: name it with --region or AWS_REGION",
			region)
	case awserr.Code(err) == awserr.CodeWrongRegion:
		why = "the bucket is in another region: name it with --region or AWS_REGION"
	case awserr.Code(err) == awserr.CodeNoSuchBucket:
		why = "there is no such bucket: create it, or check its name and the endpoint"
	case strangerOf(err) != "":
		why = fmt.Sprintf("the server at %s has another API: name S3's URL with --s3-endpoint or "+
			"AWS_ENDPOINT_URL_S3", strangerOf(err))
	case status == http.StatusForbidden:
		why = "the role needs s3:GetObject and s3:ListBucket there, and to archive s3:PutObject, " +
			"and the keys must be valid"
	default:
		return fmt.Errorf("%w: %w", archive.ErrStoreRefused, err)
	}
	return fmt.Errorf("%w: %s: %w", archive.ErrStoreRefused, why, err)
}

// isOutage reports whether a later try may not have the error. A token past its time passes, since
// the client gets new ones; so does a 404 that is not of S3.
func isOutage(err error) bool {
	class := awserr.S3.Of(err)
	switch status := awserr.Status(err); {
	case status == http.StatusTemporaryRedirect, class == awserr.Expired:
		return true
	case status >= 300 && status < 400:
		return false
	case status == http.StatusNotFound:
		return class != awserr.Missing
	}
	return awserr.S3.Transient(err)
}

// regionOf returns the bucket's region, where an answer names it.
func regionOf(err error) string {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil {
		return ""
	}
	return answer.Response.Header.Get("X-Amz-Bucket-Region")
}

// strangerOf returns the address of a server that answers as Kinesis and DynamoDB do, or "".
// AWS_ENDPOINT_URL may name one, and is for every API. S3 has another header for its request id.
func strangerOf(err error) string {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.Request == nil {
		return ""
	}
	header := answer.Response.Header
	if header.Get("X-Amzn-Requestid") == "" || header.Get("X-Amz-Request-Id") != "" {
		return ""
	}
	return answer.Response.Request.URL.Host
}
