package kinesis

import (
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// consumerTarget names a consumer in a request: by ConsumerARN, or by StreamARN and ConsumerName,
// or by all three "as long as they don't conflict" (AWS, "DescribeStreamConsumer").
type consumerTarget struct {
	StreamARN    *string
	ConsumerName *string
	ConsumerARN  *string
}

// validate checks that the consumer is named, and named once. The texts are guesses.
func (t *consumerTarget) validate(v *violations) {
	if t.ConsumerARN == nil {
		if t.StreamARN == nil || t.ConsumerName == nil {
			v.fail(invalid("Either ConsumerARN or both StreamARN and ConsumerName must be " +
				"provided."))
		}
		return
	}
	id, ok := parseConsumerARN(*t.ConsumerARN)
	if !ok {
		return // it names nothing, and is not found
	}
	if t.ConsumerName != nil && *t.ConsumerName != id.name {
		v.fail(invalid("ConsumerARN %s and ConsumerName %s do not name the same consumer.",
			*t.ConsumerARN, *t.ConsumerName))
	}
	if stream, _, _ := strings.Cut(*t.ConsumerARN, "/consumer/"); t.StreamARN != nil &&
		*t.StreamARN != stream {
		v.fail(invalid("ConsumerARN %s and StreamARN %s do not name the same stream.",
			*t.ConsumerARN, *t.StreamARN))
	}
}

// identify returns the id of the named consumer.
func (t *consumerTarget) identify(world wire.World) (id consumerName, err error) {
	if t.ConsumerARN != nil {
		var ok bool
		if id, ok = parseConsumerARN(*t.ConsumerARN); !ok || id.world != world {
			return id, consumerNotFound(world, *t.ConsumerARN)
		}
		return id, nil
	}
	id = consumerName{world: world, name: *t.ConsumerName}
	id.stream, err = (&target{StreamARN: t.StreamARN}).name(world)
	return id, err
}

// text returns the consumer's name as in the request, for messages.
func (t *consumerTarget) text() string {
	if t.ConsumerARN != nil {
		return *t.ConsumerARN
	}
	return *t.ConsumerName
}

// find returns the consumer that id means, in its stream as it is now.
func (t *consumerTarget) find(
	id consumerName, st *catalogue.Stream, now moment,
) (*catalogue.Consumer, error) {
	if st == nil && t.ConsumerARN == nil {
		return nil, streamNotFound(id.world, id.stream)
	}
	c := id.find(st, now)
	if c == nil {
		return nil, consumerNotFound(id.world, t.text())
	}
	return c, nil
}
