package s3store

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel/sink/archive"
)

// Codes of the S3 API (API Reference, "Error responses").
const (
	conflict           = "ConditionalRequestConflict"
	preconditionFailed = "PreconditionFailed"
	noSuchKey          = "NoSuchKey"
	noSuchBucket       = "NoSuchBucket"
)

// passing are codes with a status of a refusal that another try may pass: the clock and the
// credentials are renewed between tries.
var passing = []string{
	"ExpiredToken", "RequestTimeTooSkewed", "RequestTimeout", "SlowDown", "Throttling",
	"TooManyRequests", "OperationAborted", conflict,
}

// code returns the code of S3's error answer, and its status; "" and 0 without an answer.
func code(err error) (string, int) {
	var answer *awshttp.ResponseError
	status := 0
	if errors.As(err, &answer) && answer.Response != nil {
		status = answer.HTTPStatusCode()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode(), status
	}
	return "", status
}

// is reports whether err is S3's answer with a code. Some stores answer the two conditions with the
// status alone.
func is(err error, want string) bool {
	got, status := code(err)
	switch want {
	case conflict:
		return got == want || status == http.StatusConflict
	case preconditionFailed:
		return got == want || status == http.StatusPreconditionFailed
	}
	return got == want
}

func isNotFound(err error) bool {
	got, status := code(err)
	return got == noSuchKey || status == http.StatusNotFound && got != noSuchBucket
}

const regionHeader = "X-Amz-Bucket-Region"

// explain marks answers that another try does not change as archive.ErrStoreRefused, with the
// remedy where it is known, and all other errors as archive.ErrStoreUnavailable.
func explain(err error) error {
	got, status := code(err)
	if status < 300 || status >= 500 || slices.Contains(passing, got) ||
		status == http.StatusRequestTimeout || status == http.StatusTooManyRequests {
		return fmt.Errorf("%w: %w", archive.ErrStoreUnavailable, err)
	}
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil {
		region := answer.Response.Header.Get(regionHeader)
		if region != "" && (status == http.StatusMovedPermanently ||
			status == http.StatusTemporaryRedirect || status == http.StatusBadRequest) {
			return fmt.Errorf("%w: the bucket is in the region %s: name it with --region or "+
				"AWS_REGION: %w", archive.ErrStoreRefused, region, err)
		}
	}
	switch {
	case got == noSuchBucket:
		return fmt.Errorf("%w: there is no such bucket: create it, or check its name and the "+
			"endpoint: %w", archive.ErrStoreRefused, err)
	case status == http.StatusForbidden:
		return fmt.Errorf("%w: the role needs s3:PutObject, s3:GetObject and s3:ListBucket there, "+
			"and the keys must be valid: %w", archive.ErrStoreRefused, err)
	}
	return fmt.Errorf("%w: %w", archive.ErrStoreRefused, err)
}
