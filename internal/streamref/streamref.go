// Package streamref reads how a user names a stream: by its name, or by its ARN. A call for a
// stream of another account needs the ARN. Stamps, folders, labels and other text
// that stays have the name in both cases.
package streamref

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// ErrARN is wrapped by the errors of Check.
var ErrARN = errors.New("not a stream's ARN")

// form is the form of a stream's ARN. Partitions are aws, aws-cn, aws-us-gov and others like them.
const form = "arn:aws:kinesis:REGION:ACCOUNT:stream/NAME"

var (
	partition = pattern(`^aws(-[a-z]+)*$`)
	region    = pattern(`^[a-z0-9-]+$`)
	account   = pattern(`^\d{12}$`)
	name      = pattern(`^[a-zA-Z0-9_.-]{1,128}$`)
)

// pattern returns an expression that is compiled at its first use: commands that name no stream
// do not pay for it at their start.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// IsARN reports whether a text is an ARN, or meant as one. A name has no colon.
func IsARN(stream string) bool { return strings.HasPrefix(stream, "arn:") }

// Check returns an error for a text that is meant as an ARN and is not a stream's. It does not
// check names: the service does.
func Check(stream string) error {
	if !IsARN(stream) {
		return nil
	}
	fault := func(what string) error {
		return fmt.Errorf("%w, since %s: want %s", ErrARN, what, form)
	}
	parts := strings.SplitN(stream, ":", 6)
	if len(parts) < 6 {
		return fault("it has too few parts")
	}
	resource, is := strings.CutPrefix(parts[5], "stream/")
	inside, _, more := strings.Cut(resource, "/consumer/")
	switch {
	case !partition().MatchString(parts[1]):
		return fault(fmt.Sprintf("its partition is %q", parts[1]))
	case parts[2] != "kinesis":
		return fault(fmt.Sprintf("its service is %q", parts[2]))
	case !region().MatchString(parts[3]):
		return fault(fmt.Sprintf("its region is %q", parts[3]))
	case !account().MatchString(parts[4]):
		return fault(fmt.Sprintf("its account is %q", parts[4]))
	case !is:
		return fault(fmt.Sprintf("its resource is %q", parts[5]))
	case more && name().MatchString(inside):
		return fault("it is a consumer's")
	case !name().MatchString(resource):
		return fault(fmt.Sprintf("its stream's name is %q", resource))
	}
	return nil
}

var errName = errors.New("no stream's name: want 1 to 128 of a-z, A-Z, 0-9, '_', '.', '-', or " +
	"the stream's ARN")

// CheckName returns an error for a text that is neither a name nor a stream's ARN.
func CheckName(stream string) error {
	if !IsARN(stream) && !name().MatchString(stream) {
		return errName
	}
	return Check(stream)
}

// Name returns the stream's name. A malformed ARN is returned as it is.
func Name(stream string) string {
	if !IsARN(stream) || Check(stream) != nil {
		return stream
	}
	return stream[strings.LastIndexByte(stream, '/')+1:]
}

// Target returns the members StreamName and StreamARN of a call's input. One of them is nil.
func Target(stream string) (name, arn *string) {
	if IsARN(stream) {
		return nil, &stream
	}
	return &stream, nil
}

// Describe returns the input of a call that describes the stream.
func Describe(stream string) *kinesis.DescribeStreamSummaryInput {
	in := &kinesis.DescribeStreamSummaryInput{}
	in.StreamName, in.StreamARN = Target(stream)
	return in
}
