package producer

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The Date of an error counts only if it is the stream's own: the 502 of a load balancer has the
// time of another clock.
func TestDateOfAnError(t *testing.T) {
	const text = "Tue, 03 Feb 2026 12:00:01 GMT"
	want := time.Date(2026, 2, 3, 12, 0, 1, 0, time.UTC)
	answer := func(status int, header http.Header) error {
		return &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: header}},
			Err:      errors.New("an answer"),
		}
	}
	for name, c := range map[string]struct {
		err  error
		want time.Time
	}{
		"its own": {answer(400, http.Header{
			"Date": {text}, "X-Amzn-Requestid": {"1"},
		}), want},
		"of a load balancer": {answer(502, http.Header{"Date": {text}}), time.Time{}},
		"without a date":     {answer(400, http.Header{"X-Amzn-Requestid": {"1"}}), time.Time{}},
		"no answer":          {errors.New("cut"), time.Time{}},
		"a fake's":           {&smithy.GenericAPIError{Code: "AccessDeniedException"}, time.Time{}},
	} {
		if got := dateOf(middleware.Metadata{}, c.err); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
