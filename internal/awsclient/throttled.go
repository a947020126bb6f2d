package awsclient

import (
	"errors"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Throttled reports whether a call was refused because there were too many, or too much: it may
// be made again later.
func Throttled(err error) bool {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.ErrorCode() {
	case "ProvisionedThroughputExceededException", "LimitExceededException",
		"ThrottlingException", "RequestLimitExceeded", "KMSThrottlingException":
		return true
	}
	return false
}

// Refused reports whether an answer says no, and would say so again. Its status decides: most
// refusals of keys and signatures are not in the API's model, so that the SDK calls their fault
// unknown.
func Refused(err error) bool {
	var answer *smithyhttp.ResponseError
	if Throttled(err) || !errors.As(err, &answer) {
		return false
	}
	switch status := answer.HTTPStatusCode(); status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return status >= 400 && status < 500
	}
}
