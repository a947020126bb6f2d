package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Consumer is a consumer that is registered with a stream, for enhanced fan-out. A published
// value never changes: a change replaces it by a changed copy.
type Consumer struct {
	Name string `json:"name"`
	// Created is in ms since 1970. The ARN holds its second. No two consumers that a stream had
	// under one name share that second, so Created may be a little ahead of the clock.
	Created int64 `json:"created"`
	// Phase is a state that passes at Until (elapsed ms): CREATING into ACTIVE, DELETING
	// into nothing. Empty: ACTIVE.
	Phase  string            `json:"phase,omitempty"`
	Until  int64             `json:"until,omitempty"`
	Tags   map[string]string `json:"tags,omitempty"`
	Policy string            `json:"policy,omitempty"` // JSON; "": none
}

// gone reports whether the consumer's deletion has come to its end.
func (c *Consumer) gone(now serverclock.Moment) bool {
	return c.Phase == StatusDeleting && now.Elapsed >= c.Until
}

// Status returns the ConsumerStatus at a time.
func (c *Consumer) Status(now serverclock.Moment) string {
	if c.Phase == StatusDeleting || (c.Phase != "" && now.Elapsed < c.Until) {
		return c.Phase
	}
	return StatusActive
}

// ConsumerStatus returns the ConsumerStatus of one of the stream's consumers. The deletion of a
// stream deletes its consumers.
func (st *Stream) ConsumerStatus(c *Consumer, now serverclock.Moment) string {
	if st.Status(now) == StatusDeleting {
		return StatusDeleting
	}
	return c.Status(now)
}

// Clone returns a copy that can be changed.
func (c *Consumer) Clone() *Consumer {
	other := *c
	other.Tags = maps.Clone(c.Tags)
	return &other
}

// ARN returns the consumer's Amazon resource name: the stream's and "/consumer/NAME:SECOND".
func (c *Consumer) ARN(st *Stream) string {
	return st.ARN() + "/consumer/" + c.Name + ":" + strconv.FormatInt(c.Created/1000, 10)
}

// ConsumersAt returns the stream's consumers at a time, by name.
func (st *Stream) ConsumersAt(now serverclock.Moment) []*Consumer {
	there := make([]*Consumer, 0, len(st.Consumers))
	for _, c := range st.Consumers {
		if !c.gone(now) {
			there = append(there, c)
		}
	}
	return there
}

// Consumer returns the consumer of a name at that time, or nil.
func (st *Stream) Consumer(name string, now serverclock.Moment) *Consumer {
	at, found := slices.BinarySearchFunc(st.Consumers, name, compareConsumer)
	if !found || st.Consumers[at].gone(now) {
		return nil
	}
	return st.Consumers[at]
}

func compareConsumer(c *Consumer, name string) int { return cmp.Compare(c.Name, name) }

// applyConsumer replaces the consumer of the same name, or adds a new one. It also removes deleted
// consumers, once the second of their creation is over.
func (c *Catalogue) applyConsumer(st *Stream, ch *Change) error {
	if ch.Consumer == nil || !IsName(ch.Consumer.Name) {
		return fmt.Errorf("%w: no consumer", errChange)
	}
	elapsed := cmp.Or(ch.Elapsed, ch.At)
	next := st.copy()
	next.Consumers = make([]*Consumer, 0, len(st.Consumers)+1)
	for _, old := range st.Consumers {
		forgotten := old.gone(serverclock.Moment{Elapsed: elapsed}) &&
			old.Created/1000 < ch.At/1000
		if old.Name != ch.Consumer.Name && !forgotten {
			next.Consumers = append(next.Consumers, old)
		}
	}
	at, _ := slices.BinarySearchFunc(next.Consumers, ch.Consumer.Name, compareConsumer)
	next.Consumers = slices.Insert(next.Consumers, at, ch.Consumer.Clone())
	c.streams[st.Key()] = next
	return nil
}

// checkConsumers returns an error unless the consumers are in the order of their names.
func checkConsumers(consumers []*Consumer) error {
	for i, c := range consumers {
		if c == nil || !IsName(c.Name) || (i > 0 && c.Name <= consumers[i-1].Name) {
			return fmt.Errorf("%w: consumer %d of %d is misplaced", errChange, i, len(consumers))
		}
	}
	return nil
}

// ConsumerCreated returns the creation time, in ms, of a consumer that is registered now. After a
// deleted one of the same name, it returns a later second, so that the ARNs differ.
func (st *Stream) ConsumerCreated(name string, now serverclock.Moment) int64 {
	at, found := slices.BinarySearchFunc(st.Consumers, name, compareConsumer)
	if !found {
		return now.Stamp
	}
	return max(now.Stamp, (st.Consumers[at].Created/1000+1)*1000)
}

// PutConsumer makes next the stream's consumer of its name.
func (c *Catalogue) PutConsumer(
	tx *wal.Tx, st *Stream, next *Consumer, now serverclock.Moment,
) error {
	return c.Commit(tx, &Change{
		Op: ChangeConsumer, At: now.Stamp, Elapsed: now.Elapsed, World: &st.World, Name: st.Name,
		Consumer: next,
	})
}
