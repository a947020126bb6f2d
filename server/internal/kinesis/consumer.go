package kinesis

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// consumerName holds the parts of a ConsumerARN.
type consumerName struct {
	world  wire.World
	stream string
	name   string
	second string // of its creation, as in the ARN; "": any
}

// parseConsumerARN parses a ConsumerARN. The model's pattern is wide: a text may match it and still
// name no possible consumer, and ok is false then.
func parseConsumerARN(arn string) (id consumerName, ok bool) {
	id.world, arn = splitARN(arn)
	var stream, rest string
	if stream, rest, ok = strings.Cut(arn, "/consumer/"); !ok {
		return id, false
	}
	id.stream = stream
	id.name, id.second, ok = strings.Cut(rest, ":")
	return id, ok && catalogue.IsName(id.stream) && catalogue.IsName(id.name) && id.second != ""
}

// find returns the consumer with the id's name and creation, or nil.
func (id consumerName) find(st *catalogue.Stream, now moment) *catalogue.Consumer {
	if st == nil {
		return nil
	}
	c := st.Consumer(id.name, now)
	if c == nil || (id.second != "" && id.second != strconv.FormatInt(c.Created/1000, 10)) {
		return nil
	}
	return c
}

// consumerNotFound is AWS's text as moto knows it; consumer is a name or an ARN.
func consumerNotFound(world wire.World, consumer string) *wire.Error {
	return fail(codeNotFound, "Consumer %s, account %s not found.", consumer, world.Account)
}

// consumerNotActive is AWS's text to PutResourcePolicy (seen live: aws-cloudformation's
// cloudformation-coverage-roadmap#2442).
func consumerNotActive(st *catalogue.Stream, c *catalogue.Consumer) *wire.Error {
	return fail(codeInUse, "Consumer %s with creation timestamp %d under stream %s and account %s "+
		"is not in ACTIVE status.", c.Name, c.Created/1000, st.Name, st.World.Account)
}

// viewConsumer returns the present consumer of an ARN and its stream, once both are durable.
func (s *streams) viewConsumer(
	ctx context.Context, world wire.World, arn string,
) (st *catalogue.Stream, c *catalogue.Consumer, now moment, err error) {
	id, ok := parseConsumerARN(arn)
	if !ok || id.world != world {
		return nil, nil, now, consumerNotFound(world, arn)
	}
	if st, now, err = s.view(ctx, world, id.stream); err != nil {
		return nil, nil, now, err
	}
	if c = id.find(st, now); c == nil {
		return nil, nil, now, consumerNotFound(world, arn)
	}
	return st, c, now, nil
}

// changeConsumer lets decide change a copy of the consumer of an ARN, and commits the copy unless
// decide returns an error. After errUnchanged it reports success and writes nothing.
func (s *streams) changeConsumer(
	ctx context.Context, world wire.World, arn string,
	decide func(st *catalogue.Stream, next *catalogue.Consumer, now moment) error,
) error {
	id, ok := parseConsumerARN(arn)
	if !ok || id.world != world {
		return consumerNotFound(world, arn)
	}
	return s.change(ctx, 4096, func(tx *wal.Tx, now moment) error {
		st := s.catalogue.Find(world, id.stream, now)
		c := id.find(st, now)
		if c == nil {
			return consumerNotFound(world, arn)
		}
		next := c.Clone()
		if err := decide(st, next, now); errors.Is(err, errUnchanged) {
			return nil
		} else if err != nil {
			return err
		}
		return s.catalogue.PutConsumer(tx, st, next, now)
	})
}

// errUnchanged is returned by a decide function if there is nothing to change.
var errUnchanged = errors.New("nothing changes")
