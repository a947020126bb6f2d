package streamref_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/streamref"
)

// A name and an ARN of the stream name it alike, and each goes into its member of a call.
func TestNameAndTarget(t *testing.T) {
	for text, want := range map[string]string{
		"orders": "orders",
		"arn:aws:kinesis:us-east-1:000000000000:stream/orders":        "orders",
		"arn:aws-cn:kinesis:cn-north-1:111122223333:stream/a.b_c-D":   "a.b_c-D",
		"arn:aws-us-gov:kinesis:us-gov-west-1:111122223333:stream/1":  "1",
		"arn:aws-iso-b:kinesis:us-isob-east-1:111122223333:stream/io": "io",
	} {
		if err := streamref.CheckName(text); err != nil {
			t.Error(err)
		}
		if got := streamref.Name(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
		name, arn := streamref.Target(text)
		if streamref.IsARN(text) != (arn != nil) || (name == nil) == (arn == nil) {
			t.Fatalf("%s: %v, %v", text, name, arn)
		}
		if arn == nil {
			arn = name
		}
		if *arn != text {
			t.Errorf("%s: %s", text, *arn)
		}
	}
}

// A malformed ARN is refused with its fault.
func TestCheck(t *testing.T) {
	for text, fault := range map[string]string{
		"arn:":                                   "too few parts",
		"arn:aws:kinesis:us-east-1:000000000000": "too few parts",
		"arn::kinesis:us-east-1:000000000000:stream/orders":                     `partition is ""`,
		"arn:azure:kinesis:us-east-1:000000000000:stream/orders":                `partition is "azure"`,
		"arn:aws-:kinesis:us-east-1:000000000000:stream/orders":                 `partition is "aws-"`,
		"arn:aws:dynamodb:us-east-1:000000000000:table/orders":                  `service is "dynamodb"`,
		"arn:aws:firehose:us-east-1:000000000000:stream/orders":                 `service is "firehose"`,
		"arn:aws:kinesis::000000000000:stream/orders":                           `region is ""`,
		"arn:aws:kinesis:us-east-1:12345:stream/orders":                         `account is "12345"`,
		"arn:aws:kinesis:us-east-1::stream/orders":                              `account is ""`,
		"arn:aws:kinesis:us-east-1:000000000000:orders":                         `resource is "orders"`,
		"arn:aws:kinesis:us-east-1:000000000000:table/orders":                   `resource is "table/orders"`,
		"arn:aws:kinesis:us-east-1:000000000000:stream/":                        `name is ""`,
		"arn:aws:kinesis:us-east-1:000000000000:stream/a b":                     `name is "a b"`,
		"arn:aws:kinesis:us-east-1:000000000000:stream/a:b":                     `name is "a:b"`,
		"arn:aws:kinesis:us-east-1:000000000000:stream/orders/":                 `name is "orders/"`,
		"arn:aws:kinesis:us-east-1:000000000000:stream/orders/consumer/app:123": "a consumer's",
	} {
		err := streamref.Check(text)
		if !errors.Is(err, streamref.ErrARN) || !strings.Contains(err.Error(), fault) ||
			!strings.Contains(err.Error(), "want arn:aws:kinesis:") {
			t.Errorf("%s: %v, want %s", text, err, fault)
		}
		if streamref.CheckName(text) == nil || streamref.Name(text) != text {
			t.Errorf("%s: a name", text)
		}
	}
	if err := streamref.Check("no name!"); err != nil {
		t.Error(err) // the service's to refuse
	}
	for _, text := range []string{"", "a b", strings.Repeat("x", 129)} {
		if err := streamref.CheckName(text); err == nil || errors.Is(err, streamref.ErrARN) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
