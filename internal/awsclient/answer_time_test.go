package awsclient

import (
	"context"
	"net/http"
	"testing"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The server's time is bounded by the Date header alone, however wrong our clock is. Our clock
// stands in for a missing header.
func TestAnswerTime(t *testing.T) {
	base := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		name             string
		sent, got        int
		date             int
		none             bool
		earliest, latest int
		moment           int
	}{
		{"no header", 100, 120, 0, true, 100, 120, 100},
		{"clocks agree", 100, 120, 0, false, -20, 1000, 0},
		{"a second begins", 990, 1010, 1000, false, 980, 2000, 1000},
		{"ours is ahead", 5000, 5020, 0, false, -20, 1000, 0},
		{"ours is behind", 100, 120, 5000, false, 4980, 6000, 5000},
	} {
		answer := middleware.Metadata{}
		if !c.none {
			answer = withServerTime(t, at(c.date))
		}
		earliest, latest := AnswerTime(at(c.sent), at(c.got), answer)
		if !earliest.Equal(at(c.earliest)) || !latest.Equal(at(c.latest)) {
			t.Errorf("%s: %s to %s", c.name, earliest, latest)
		}
		if moment := Date(at(c.sent), answer); !moment.Equal(at(c.moment)) {
			t.Errorf("%s: at %s", c.name, moment)
		}
	}
}

// withServerTime makes the metadata of an answer with a Date header, as the SDK makes it.
func withServerTime(t *testing.T, date time.Time) middleware.Metadata {
	t.Helper()
	response := &smithyhttp.Response{Response: &http.Response{
		Header: http.Header{"Date": []string{date.Format(http.TimeFormat)}},
	}}
	_, metadata, err := (&awsmiddleware.RecordResponseTiming{}).HandleDeserialize(t.Context(),
		middleware.DeserializeInput{}, middleware.DeserializeHandlerFunc(func(
			context.Context, middleware.DeserializeInput,
		) (middleware.DeserializeOutput, middleware.Metadata, error) {
			return middleware.DeserializeOutput{RawResponse: response}, middleware.Metadata{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return metadata
}
