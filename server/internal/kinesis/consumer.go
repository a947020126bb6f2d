package kinesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// streamConsumer is a consumer that is registered with a stream, for enhanced fan-out. A published
// value never changes: a change replaces it by a changed copy.
type streamConsumer struct {
	Name string `json:"name"`
	// Created is in ms since 1970. The ARN holds its second. No two consumers that a stream had
	// under one name share that second, so Created may be a little ahead of the clock.
	Created int64 `json:"created"`
	// Phase is a state that passes at Until (ms since 1970): CREATING into ACTIVE, DELETING
	// into nothing. Empty: ACTIVE.
	Phase  string            `json:"phase,omitempty"`
	Until  int64             `json:"until,omitempty"`
	Tags   map[string]string `json:"tags,omitempty"`
	Policy string            `json:"policy,omitempty"` // JSON; "": none
}

// gone reports whether the consumer's deletion has come to its end.
func (c *streamConsumer) gone(now int64) bool { return c.Phase == statusDeleting && now >= c.Until }

// status returns the ConsumerStatus at a time.
func (c *streamConsumer) status(now int64) string {
	if c.Phase == statusDeleting || (c.Phase != "" && now < c.Until) {
		return c.Phase
	}
	return statusActive
}

// consumerStatus returns the ConsumerStatus of one of the stream's consumers. The deletion of a
// stream deletes its consumers.
func (st *stream) consumerStatus(c *streamConsumer, now int64) string {
	if st.status(now) == statusDeleting {
		return statusDeleting
	}
	return c.status(now)
}

// clone returns a copy that can be changed.
func (c *streamConsumer) clone() *streamConsumer {
	other := *c
	other.Tags = maps.Clone(c.Tags)
	return &other
}

// arn returns the consumer's Amazon resource name: the stream's and "/consumer/NAME:SECOND".
func (c *streamConsumer) arn(st *stream) string {
	return st.arn() + "/consumer/" + c.Name + ":" + strconv.FormatInt(c.Created/1000, 10)
}

// consumers returns the stream's consumers at a time, by name.
func (st *stream) consumers(now int64) []*streamConsumer {
	there := make([]*streamConsumer, 0, len(st.Consumers))
	for _, c := range st.Consumers {
		if !c.gone(now) {
			there = append(there, c)
		}
	}
	return there
}

// consumer returns the consumer of a name at that time, or nil.
func (st *stream) consumer(name string, now int64) *streamConsumer {
	at, found := slices.BinarySearchFunc(st.Consumers, name, compareConsumer)
	if !found || st.Consumers[at].gone(now) {
		return nil
	}
	return st.Consumers[at]
}

func compareConsumer(c *streamConsumer, name string) int { return cmp.Compare(c.Name, name) }

// applyConsumer replaces the consumer of the same name, or adds a new one. It also removes deleted
// consumers, once the second of their creation is over.
func (c *catalogue) applyConsumer(st *stream, ch *change) error {
	if ch.Consumer == nil || !isName(ch.Consumer.Name) {
		return fmt.Errorf("%w: no consumer", errChange)
	}
	next := st.copy()
	next.Consumers = make([]*streamConsumer, 0, len(st.Consumers)+1)
	for _, old := range st.Consumers {
		forgotten := old.gone(ch.At) && old.Created/1000 < ch.At/1000
		if old.Name != ch.Consumer.Name && !forgotten {
			next.Consumers = append(next.Consumers, old)
		}
	}
	at, _ := slices.BinarySearchFunc(next.Consumers, ch.Consumer.Name, compareConsumer)
	next.Consumers = slices.Insert(next.Consumers, at, ch.Consumer.clone())
	c.streams[st.key()] = next
	return nil
}

// checkConsumers returns an error unless the consumers are in the order of their names.
func checkConsumers(consumers []*streamConsumer) error {
	for i, c := range consumers {
		if c == nil || !isName(c.Name) || (i > 0 && c.Name <= consumers[i-1].Name) {
			return fmt.Errorf("%w: consumer %d of %d is misplaced", errChange, i, len(consumers))
		}
	}
	return nil
}

// consumerCreated returns the creation time, in ms, of a consumer that is registered now. After a
// deleted one of the same name, it returns a later second, so that the ARNs differ.
func (st *stream) consumerCreated(name string, now int64) int64 {
	at, found := slices.BinarySearchFunc(st.Consumers, name, compareConsumer)
	if !found {
		return now
	}
	return max(now, (st.Consumers[at].Created/1000+1)*1000)
}

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
	return id, ok && isName(id.stream) && isName(id.name) && id.second != ""
}

// find returns the consumer with the id's name and creation, or nil.
func (id consumerName) find(st *stream, now int64) *streamConsumer {
	if st == nil {
		return nil
	}
	c := st.consumer(id.name, now)
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
func consumerNotActive(st *stream, c *streamConsumer) *wire.Error {
	return fail(codeInUse, "Consumer %s with creation timestamp %d under stream %s and account %s "+
		"is not in ACTIVE status.", c.Name, c.Created/1000, st.Name, st.World.Account)
}

// viewConsumer returns the present consumer of an ARN and its stream, once both are durable.
func (s *Service) viewConsumer(
	ctx context.Context, world wire.World, arn string,
) (st *stream, c *streamConsumer, now int64, err error) {
	id, ok := parseConsumerARN(arn)
	if !ok || id.world != world {
		return nil, nil, 0, consumerNotFound(world, arn)
	}
	if st, now, err = s.view(ctx, world, id.stream); err != nil {
		return nil, nil, 0, err
	}
	if c = id.find(st, now); c == nil {
		return nil, nil, 0, consumerNotFound(world, arn)
	}
	return st, c, now, nil
}

// changeConsumer lets decide change a copy of the consumer of an ARN, and commits the copy unless
// decide returns an error. After errUnchanged it reports success and writes nothing.
func (s *Service) changeConsumer(
	ctx context.Context, world wire.World, arn string,
	decide func(st *stream, next *streamConsumer, now int64) error,
) error {
	id, ok := parseConsumerARN(arn)
	if !ok || id.world != world {
		return consumerNotFound(world, arn)
	}
	return s.change(ctx, 4096, func(tx *wal.Tx, now int64) error {
		st := s.catalogue.find(world, id.stream, now)
		c := id.find(st, now)
		if c == nil {
			return consumerNotFound(world, arn)
		}
		next := c.clone()
		if err := decide(st, next, now); errors.Is(err, errUnchanged) {
			return nil
		} else if err != nil {
			return err
		}
		return s.catalogue.putConsumer(tx, st, next, now)
	})
}

// errUnchanged is returned by a decide function if there is nothing to change.
var errUnchanged = errors.New("nothing changes")

// putConsumer makes next the stream's consumer of its name.
func (c *catalogue) putConsumer(tx *wal.Tx, st *stream, next *streamConsumer, now int64) error {
	return c.commit(tx, &change{
		Op: changeConsumer, At: now, World: &st.World, Name: st.Name, Consumer: next,
	})
}
