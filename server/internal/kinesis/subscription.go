package kinesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// subscription is a consumer's subscription to a shard: the event stream of SubscribeToShard.
//
// # Events
//
// The first event comes at once, with the records from the starting position on, even if there are
// none (a guess: AWS's first event is not documented; without one, a subscriber from LATEST would
// not know its position if its connection broke). From then on an event comes as soon as there are
// records, and an empty one after 5 seconds without any (observed on AWS by the authors of
// LocalStack). After 5 minutes the stream ends, even if records are left (AWS, "SubscribeToShard").
//
// MillisBehindLatest is 0 at the tip, if no record of the shard is on its way to the disk.
// Otherwise it is the age of the event's last record, or 1 if the event has none.
//
// # ContinuationSequenceNumber
//
// It is the subscription's position, from which the next one goes on. KCL and Flink use it with
// AFTER_SEQUENCE_NUMBER, AWS's page allows AT_SEQUENCE_NUMBER as well. Here it is a number between
// that of the last record before the position and that of the first one after it: see
// shard.continuation. So neither type loses a record or gives one twice, wherever the subscription
// began:
//
//   - TRIM_HORIZON of a shard without records: the number is below that of the first record.
//   - LATEST: it is above that of the newest record at the time of the call. Going on from it
//     gives the records that came in between; LATEST again would not.
//   - AT_TIMESTAMP with no record at or after the time: the position is the tip. Later records
//     have later arrivals, so none of them is before the time.
//   - A position with trimmed records: the number is below that of the oldest record left.
//
// AWS's is at times the number of the last record itself (awslabs/amazon-kinesis-client#371),
// which gives that record again with AT_SEQUENCE_NUMBER.
//
// # The end of the shard
//
// When a closed shard has no more records, one more event comes, without records, with ChildShards
// and without ContinuationSequenceNumber, and the stream ends. The model calls the number required,
// but AWS leaves it out there, and KCL and Flink recognise the end by that
// (awslabs/amazon-kinesis-client#1744, apache/flink-connector-aws#243). A subscription that begins
// at the end, as from LATEST, gets that event alone.
//
// # Other ends
//
// An exception event is the last one. ResourceInUseException: the consumer has subscribed to
// the shard again, 5 seconds or more after this subscription began, and that one goes on (the
// page of SubscribeToShard says "expires or fails with"). ResourceNotFoundException: the stream
// is gone, the shard's data has expired, or the consumer is being deregistered ("a consumer
// can't read data while in the CREATING or DELETING states", model's ConsumerStatus).
//
// # Cost
//
// A subscription waits for its shard and holds one event, nothing else: a subscriber that does
// not read is no burden to the others. The records are read when the subscriber asks.
type subscription struct {
	streams  *streams
	limits   *limiter
	fanOut   *fanOut
	consumer string // its ARN
	key      fanOutKey
	fan      *shardFan
	bell     bell

	// The state of the reader, of which there is one.
	stream  *catalogue.Stream // as it was when it was last looked at
	shard   *catalogue.Shard
	records *shardlog.Shard
	next    uint64      // the index of the next record
	ends    time.Time   // the end of the five minutes; zero before the first event
	due     time.Time   // the next event, with or without records
	resume  time.Time   // no event with records before: see pace
	over    bool        // the last event was given
	space   []byte      // the last event's payload, to be used again
	facts   *wire.Facts // of the call; nil: it is not logged
}

var _ wire.Events = (*subscription)(nil)

const (
	subscriptionLife  = 5 * time.Minute // AWS, "SubscribeToShard"
	subscriptionPulse = 5 * time.Second // the longest time without an event
	// The most data and keys of an event in bytes, and the most records. The first is a guess; but
	// a record is never cut in two.
	maxEventBytes   = 1 << 20
	maxEventRecords = maxGetRecords
	// maxSpace is the largest space that a subscription keeps while it waits.
	maxSpace = 64 << 10
)

// Next is part of wire.Events.
func (u *subscription) Next(ctx context.Context) (wire.Event, error) {
	if u.ends.IsZero() {
		u.due = time.Now()
		u.ends = u.due.Add(subscriptionLife)
	}
	for !u.over && time.Now().Before(u.ends) {
		there := u.there() // before the signals: it then reflects every change that they report
		told := u.signalled()
		if told.closing {
			break
		}
		if told.takenOver {
			return u.exception(u.inUse())
		}
		wake, err := u.look(ctx, told.changed || (there.sealed && u.shard.IsOpen()))
		if err != nil {
			return u.failed(err)
		}
		event, found, err := u.event(ctx, there)
		if found || err != nil {
			return event, err
		}
		if err := u.wait(ctx, wake); err != nil {
			return u.failed(err)
		}
	}
	u.over = true
	return wire.Event{}, io.EOF
}

// Close is part of wire.Events.
func (u *subscription) Close() { u.fanOut.end(u) }

// failed ends the stream with an error: as an exception event if the API has one for it, properly
// if the service ends, otherwise by breaking off.
func (u *subscription) failed(err error) (wire.Event, error) {
	var known *wire.Error
	switch {
	case errors.As(err, &known):
		return u.exception(known)
	case errors.Is(err, shardlog.ErrClosed):
		err = io.EOF
	}
	u.over = true
	return wire.Event{}, err
}

// look refreshes the subscription's view of its stream if necessary. It returns the latest time of
// the next look: for the next event, or for the end of the five minutes or of the stream.
func (u *subscription) look(ctx context.Context, changed bool) (wake time.Time, err error) {
	wake = u.due
	if u.ends.Before(wake) {
		wake = u.ends
	}
	if !changed && u.stream.Phase != catalogue.StatusDeleting {
		return wake, nil
	}
	world, name := u.key.stream.World, u.key.stream.Name
	st, now, err := u.streams.view(ctx, world, name)
	if err != nil {
		return wake, fmt.Errorf("subscription to stream %s, %s: %w", name, u.shard.ID(), err)
	}
	if st == nil || st.Created != u.key.streamCreated {
		return wake, streamNotFound(world, name)
	}
	c := st.Consumer(u.key.consumer, now)
	if c == nil || c.Created != u.key.consumerCreated || c.Phase == catalogue.StatusDeleting {
		return wake, consumerNotFound(world, u.consumer)
	}
	sh := st.Shard(u.key.shard, now)
	if sh == nil {
		return wake, shardMissing(world, name, shardid.Of(u.key.shard))
	}
	u.stream, u.shard = st, sh
	if st.Phase == catalogue.StatusDeleting {
		gone := time.Now().Add(time.Duration(st.Until-now.Elapsed) * time.Millisecond)
		if gone.Before(wake) {
			wake = gone
		}
	}
	return wake, nil
}
