package kinesis

import (
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
)

// target names the stream in most requests: by StreamName, StreamARN or both. The member StreamId
// is "reserved for future use" in the model and ignored.
type target struct {
	StreamName *string
	StreamARN  *string
}

// validate checks that one of the members is there, and that they agree.
func (t *target) validate(v *violations) {
	t.validateOptional(v)
	if t.StreamName == nil && t.StreamARN == nil {
		v.fail(invalid("Either StreamName or StreamARN must be provided."))
	}
}

func (t *target) validateOptional(v *violations) {
	if t.StreamName == nil || t.StreamARN == nil {
		return
	}
	if _, name := splitARN(*t.StreamARN); name != *t.StreamName {
		v.fail(invalid("StreamARN %s and StreamName %s do not name the same stream.",
			*t.StreamARN, *t.StreamName))
	}
}

// name returns the stream's name. An ARN of another world names a missing stream.
func (t *target) name(world wire.World) (string, error) {
	if t.StreamARN == nil {
		return *t.StreamName, nil
	}
	there, name := splitARN(*t.StreamARN)
	if there != world {
		return "", streamNotFound(there, name)
	}
	return name, nil
}

// splitARN splits an ARN that matches the model's pattern. The pattern is wide: a text that is no
// ARN after all gives the zero World.
func splitARN(arn string) (wire.World, string) {
	head, name, _ := strings.Cut(arn, ":stream/")
	parts := strings.Split(head, ":") // arn, partition, kinesis, region, account
	if len(parts) != 5 {
		return wire.World{}, name
	}
	return wire.World{Region: parts[3], Account: parts[4]}, name
}
