package pages

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/retry"
)

// A Subscription is the second way to the pages of a shard: enhanced fan-out. Each event of
// SubscribeToShard is one page. All else is the Cursor's: the position, the guard against records
// that were removed unread, and what an error means. So a reader can change from one way to the
// other between any two pages.
//
// # Where a subscription begins
//
// A subscription ends after five minutes, or earlier when its connection breaks. Each one begins at
// the last record read (AT_SEQUENCE_NUMBER), as an iterator does. That record comes again and is
// dropped; if it does not come, the guard knows that records were removed. As long as no record
// was read, a subscription begins behind the last event's ContinuationSequenceNumber. Otherwise
// a reader of LATEST would miss the records between two subscriptions.
//
// # When it subscribes
//
// The API refuses a second subscription for five seconds after the start of the first one, and then
// lets it take the place of the first (AWS, "SubscribeToShard"). So a reader waits until the five
// seconds are over, also if its own last subscription broke. Config.Held is asked right before each
// call, since a reader that has lost its shard must not push the new one out.
//
// # Slow and silent
//
// An event is taken from the connection only when Next is called. So a slow caller stops the server
// by the connection's flow control, and the SDK holds at most two events that were not asked for. A
// connection is taken for dead if Next waits for 30 seconds and no event comes: AWS sends one every
// five seconds, also from an idle shard. In between Next returns a page without records every
// Pace.Idle, as polling does, since callers do work by the clock between two pages.
type Subscription struct {
	cfg    Fanout
	cursor *Cursor // has the position and the guard, and polls
	live   *live   // the subscription under way; nil if there is none

	next  string        // the last event's continuation, as long as no record was read
	began time.Time     // when the last subscription was asked for
	due   time.Time     // no attempt at a subscription before
	ahead time.Duration // of the server's clock, at most

	behind time.Duration // of the last page

	failures int       // in a row
	without  time.Time // since when no event has come for lack of a subscription; zero: they come
	refused  time.Time // since when each attempt was refused for another subscription; zero: none
	taken    bool      // another reader took the last subscription's place

	polling bool      // Config.OrPoll: there was no subscription to be had
	again   time.Time // the next attempt at one, while polling
}

var _ Source = (*Subscription)(nil)

// Fanout configures a Subscription beside Config. Subscriber is required.
type Fanout struct {
	Subscriber Subscriber
	// Held returns nil if the caller certainly has the right to read the shard. It is asked before
	// each subscription. taken is true if another reader took the place of the last one. Default:
	// the caller always has it.
	Held func(ctx context.Context, taken bool) error
	// OrPoll makes the source poll while it can have no subscription: after 30 seconds without one,
	// or at once if another attempt would not help. It tries again every minute.
	OrPoll bool
	// OnPolling is called when the source begins to poll, with the reason. Default none.
	OnPolling func(error)
	// OnSubscribed is called when a subscription has begun. Default none.
	OnSubscribed func()
}

// Subscriber subscribes to shards for one registered consumer. Its methods are called by the
// goroutines of all shards.
type Subscriber interface {
	// Ready finds the consumer, or makes it. The error is ErrPending or ErrNoConsumer, or that of a
	// call.
	Ready(context.Context) error
	// Subscribe calls SubscribeToShard with the consumer's ARN. The subscription lives as long as
	// the context.
	Subscribe(context.Context, *kinesis.SubscribeToShardInput) (
		Events, middleware.Metadata, error)
}

// Events is the event stream of one subscription; *kinesis.SubscribeToShardEventStream is one.
type Events interface {
	Events() <-chan types.SubscribeToShardEventStream
	Err() error
	Close() error
}

// ErrPending is returned by Subscriber.Ready while the consumer is being made or deleted.
var ErrPending = errors.New("the consumer is not ready")

// ErrNoConsumer is returned by Subscriber.Ready if the stream has no such consumer, and can get
// none.
var ErrNoConsumer = errors.New("the consumer cannot be had")

var (
	errSilent = fmt.Errorf("no event came for %s: the connection is taken for dead", longestSilence)
	errNoNext = errors.New("an event has no ContinuationSequenceNumber and no ChildShards: " +
		"whether the shard has ended is found out by polling")
	errNotHeld = errors.New("the shard is not held")
	errIdle    = errors.New("no event has come yet")
)

const (
	// takeOverAfter is the time after a subscription's start for which another one is refused; a
	// little more, since the server counts from later than the caller.
	takeOverAfter = 5*time.Second + 50*time.Millisecond
	// refusedWait is the wait after a refusal: AWS allows one call a second for each shard.
	refusedWait = time.Second
	// quietRefusals is the time for which refusals are expected, and not reported.
	quietRefusals = 2 * takeOverAfter
	// longestSilence is six times the distance of the events of an idle shard.
	longestSilence = 30 * time.Second
	// patience is the time without a subscription after which a source polls.
	patience = 30 * time.Second
	// fanoutAgain is the time between two attempts at a subscription while a source polls.
	fanoutAgain = time.Minute
	// probeTimeout limits the time of a call while a source polls.
	probeTimeout = 2 * time.Second
)

// live is a subscription under way.
type live struct {
	events   Events
	cancel   context.CancelFunc
	earliest time.Time     // at which the server can have begun it, by its own clock
	came     bool          // an event
	waited   time.Duration // for the next event
}

// close ends the subscription, and waits until the SDK has let go of it.
func (l *live) close() {
	l.cancel()
	_ = l.events.Close() // the error is that of the reading
	for range l.events.Events() {
		continue
	}
}

// NewSubscription makes a source. It makes no call yet. It tries again after every error but a
// lasting one, so Config.Of is required; Config.Attempts and Checked have no meaning.
func NewSubscription(cfg Config, fanout Fanout) *Subscription {
	cfg.Attempts, cfg.Persist = 0, true
	return &Subscription{cfg: fanout, cursor: New(cfg)}
}

// Close ends the subscription under way. The source can be used again.
func (s *Subscription) Close() error {
	s.drop()
	return nil
}

// Next returns the next event's page. The subscription does not outlive ctx.
func (s *Subscription) Next(ctx context.Context) (Page, error) {
	for s.cursor.end == nil {
		if page, ok, err := s.step(ctx); ok || err != nil {
			return page, err
		}
	}
	return *s.cursor.end, nil
}

// step makes one attempt at the next page, in the way that is now right.
func (s *Subscription) step(ctx context.Context) (page Page, ok bool, err error) {
	if s.live == nil {
		if s.polls() {
			return s.poll(ctx)
		}
		if err := s.begin(ctx); err != nil {
			return s.failed(ctx, err)
		}
	}
	if err := s.room(ctx); err != nil {
		return Page{}, false, err
	}
	event, err := s.receive(ctx)
	switch {
	case errors.Is(err, errIdle):
		return Page{Behind: s.behind, Complete: s.cursor.guard.complete}, true, nil
	case err != nil:
		return s.failed(ctx, err)
	case event == nil:
		s.drop()
		return Page{}, false, nil
	default:
		return s.take(ctx, event)
	}
}

// begin waits until the next subscription is due, and begins it.
func (s *Subscription) begin(ctx context.Context) error {
	c := s.cursor
	if s.without.IsZero() {
		s.without = time.Now()
	}
	if !s.polling {
		if err := retry.Wait(ctx, time.Until(s.due)); err != nil {
			return err
		}
	}
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("enhanced fan-out: %w", err)
	}
	if s.cfg.Held != nil {
		if err := s.cfg.Held(ctx, s.taken); err != nil {
			return fmt.Errorf("%w: %w", errNotHeld, err)
		}
	}
	sent := time.Now()
	live, err := s.subscribe(ctx, sent)
	if err != nil {
		return fmt.Errorf("enhanced fan-out: %w", err)
	}
	s.live = live
	s.began, s.taken, s.polling = sent, false, false
	c.iterator, c.guard.unsure = "", true
	if s.cfg.OnSubscribed != nil {
		s.cfg.OnSubscribed()
	}
	return nil
}

func (s *Subscription) ready(ctx context.Context) error {
	if limit := s.callTimeout(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return s.cfg.Subscriber.Ready(ctx)
}

// callTimeout limits the time of a call. A source that polls reads nothing meanwhile.
func (s *Subscription) callTimeout() time.Duration {
	limit := s.cursor.cfg.CallTimeout
	if s.polling && (limit == 0 || limit > probeTimeout) {
		return probeTimeout
	}
	return limit
}

// subscribe makes the call. Its time is limited, and that of the subscription is not.
func (s *Subscription) subscribe(ctx context.Context, sent time.Time) (*live, error) {
	c := s.cursor
	ctx, cancel := context.WithCancel(ctx)
	inTime := func() bool { return true }
	if limit := s.callTimeout(); limit > 0 {
		limited, done := context.WithTimeout(ctx, limit)
		defer done()
		inTime = context.AfterFunc(limited, cancel)
	}
	events, metadata, err := s.cfg.Subscriber.Subscribe(ctx, &kinesis.SubscribeToShardInput{
		ShardId: aws.String(string(c.cfg.Shard)), StartingPosition: s.position(),
	})
	if !inTime() {
		if err == nil {
			(&live{events: events, cancel: cancel}).close()
		}
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, err
	}
	got := time.Now()
	earliest, latest := awsclient.AnswerTime(sent, got, metadata)
	s.ahead = latest.Sub(got)
	// If the subscription breaks before its first event, the next one begins at the same moment.
	c.from = c.from.Pin(awsclient.Date(sent, metadata))
	return &live{events: events, cancel: cancel, earliest: earliest}, nil
}

func (s *Subscription) position() *types.StartingPosition {
	c := s.cursor
	switch {
	case c.at != "":
		return &types.StartingPosition{
			Type:           types.ShardIteratorTypeAtSequenceNumber,
			SequenceNumber: aws.String(string(c.at)),
		}
	case s.next != "":
		return &types.StartingPosition{
			Type: types.ShardIteratorTypeAfterSequenceNumber, SequenceNumber: aws.String(s.next),
		}
	case !c.from.Time().IsZero():
		return &types.StartingPosition{
			Type: types.ShardIteratorTypeAtTimestamp, Timestamp: aws.Time(c.from.Time()),
		}
	default:
		return &types.StartingPosition{Type: types.ShardIteratorType(c.from.Word())}
	}
}

// receive waits for the next event. It returns nil at the end of the subscription: after its five
// minutes, or if its connection broke after an event. A break before the first event is an error,
// so that attempts that fail again and again are reported. The error is errIdle if it is time for
// a page without records.
func (s *Subscription) receive(ctx context.Context) (*types.SubscribeToShardEvent, error) {
	l, began := s.live, time.Now()
	wait, why := longestSilence-l.waited, errSilent
	if idle := s.cursor.cfg.Pace.Idle; l.came && idle > 0 && idle < wait {
		wait, why = idle, errIdle
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, why)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			l.waited += time.Since(began)
			return nil, context.Cause(ctx)
		case event, ok := <-l.events.Events():
			if !ok {
				return nil, l.broken()
			}
			known, ok := event.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
			if !ok {
				continue // an event of a later version of the API
			}
			l.came, l.waited = true, 0
			return &known.Value, nil
		}
	}
}

// room waits until an event has room. It reserves none, since an idle shard may wait for long.
func (s *Subscription) room(ctx context.Context) error {
	if s.cursor.cfg.Room == nil {
		return nil
	}
	_, err := s.cursor.cfg.Room(ctx)
	if s.cursor.cfg.Unused != nil {
		s.cursor.cfg.Unused()
	}
	return err
}

// take makes the page of an event. After an error the subscription is dropped, so that the event
// comes again.
func (s *Subscription) take(
	ctx context.Context, event *types.SubscribeToShardEvent,
) (Page, bool, error) {
	c, next := s.cursor, aws.ToString(event.ContinuationSequenceNumber)
	if next == "" && len(event.ChildShards) == 0 {
		// KCL takes this for the shard's end. If that is wrong, the rest of the shard is lost.
		s.drop()
		s.beginPolling(errNoNext)
		return Page{}, false, nil
	}
	got := s.answer(event)
	if c.cfg.Gaps {
		overtaken, err := c.guard.overtakes(ctx, &got)
		switch {
		case err != nil:
			return s.failed(ctx, err)
		case overtaken:
			s.drop() // the event may leave records out
			return Page{}, false, nil
		}
	}
	page, err := c.accept(ctx, &got)
	if err != nil {
		return s.failed(ctx, err)
	}
	c.iterator = "" // accept has taken over a placeholder
	s.behind = page.Behind
	s.next, s.failures, s.without, s.refused = next, 0, time.Time{}, time.Time{}
	if page.Ended {
		s.drop()
		end := page
		end.Records, end.Gap, end.First = nil, false, ""
		c.end = &end
	}
	return page, true, nil
}

// answer is an event as the guard and the cursor know it: an answer of GetRecords. The server may
// have made it at any time since the subscription began, since it may have waited on the way.
func (s *Subscription) answer(event *types.SubscribeToShardEvent) answer {
	out := &kinesis.GetRecordsOutput{
		Records: event.Records, MillisBehindLatest: event.MillisBehindLatest,
		ChildShards: event.ChildShards,
	}
	if len(event.ChildShards) == 0 {
		out.NextShardIterator = event.ContinuationSequenceNumber
	}
	return newAnswer(out, s.live.earliest, s.now())
}

// now returns the latest time that it can be by the server's clock.
func (s *Subscription) now() time.Time { return time.Now().Add(s.ahead) }

// drop ends the subscription under way. The next one is not due before the API allows it.
func (s *Subscription) drop() {
	if s.live == nil {
		return
	}
	s.live.close()
	s.live, s.due = nil, s.began.Add(takeOverAfter)
}
