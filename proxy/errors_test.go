package proxy

import (
	"net/http"
	"testing"

	"github.com/runnel-stream/runnel/producer"
)

// A record over a limit gets upstream's answer if none of its attempts can have stored it.
func TestThrottledRecordGetsUpstreamsAnswer(t *testing.T) {
	for _, c := range []struct {
		code    string
		unknown int // attempts without an answer
		want    string
	}{
		{"ProvisionedThroughputExceededException", 0, "ProvisionedThroughputExceededException"},
		{"KMSThrottlingException", 0, "KMSThrottlingException"},
		{"ThrottlingException", 0, "ThrottlingException"},
		{"RequestLimitExceeded", 0, "RequestLimitExceeded"},
		{"ThrottlingException", 1, "InternalFailure"},
		{"InternalFailure", 0, "InternalFailure"},
		{"SomethingNewException", 0, "InternalFailure"},
	} {
		got := errorOf(&producer.UndeliveredError{
			Stream: "orders", Reason: producer.ErrGivenUp, Attempts: 3, Unknown: c.unknown,
			Cause: &producer.RecordError{Code: c.code, Message: "why"},
		})
		wantStatus := 0 // of a record's error: the default
		if c.want == "InternalFailure" {
			wantStatus = http.StatusInternalServerError
		}
		if got.Code != c.want || got.Status != wantStatus {
			t.Errorf("%s with %d unknown: %s %d", c.code, c.unknown, got.Code, got.Status)
		}
	}
}
