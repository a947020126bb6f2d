package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// event is one message of an event stream. The last event has kind "end" after a regular end of
// the stream, and "broken" after an error.
type event struct {
	kind        string // of :message-type: event, exception
	name        string // of :event-type or :exception-type
	contentType string
	value       object
	err         error
}

// subscription is a running SubscribeToShard.
type subscription struct {
	header http.Header
	events chan event
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// subscribe calls SubscribeToShard, which must succeed; the caller closes it.
func (c *check) subscribe(in object) *subscription {
	sub, refusal := c.trySubscribe(in)
	if refusal != nil {
		c.want(false, "SubscribeToShard succeeds", refusal.String())
	}
	return sub
}

// trySubscribe calls SubscribeToShard. One of the two results is nil.
func (c *check) trySubscribe(in object) (*subscription, *answer) {
	ctx, stop := context.WithCancel(c.ctx)
	response, err := c.do(ctx, jsonRequest("SubscribeToShard", in))
	if err != nil {
		stop()
		panic(broken{err})
	}
	if response.StatusCode != http.StatusOK {
		defer stop()
		defer func() { _ = response.Body.Close() }()
		a := &answer{status: response.StatusCode, header: response.Header}
		if a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
			panic(broken{fmt.Errorf("%w: %w", errAnswer, err)})
		}
		a.value, _ = parseObject(a.body)
		return nil, a
	}
	sub := &subscription{header: response.Header, events: make(chan event, 1), stop: stop}
	sub.done.Go(func() {
		defer func() { _ = response.Body.Close() }()
		sub.read(ctx, response.Body)
	})
	return sub, nil
}

// read decodes messages until the stream ends.
func (s *subscription) read(ctx context.Context, body io.Reader) {
	decoder := eventstream.NewDecoder()
	for {
		message, err := decoder.Decode(body, nil)
		e := event{kind: "end"}
		switch {
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		case err != nil:
			e = event{kind: "broken", err: err}
		default:
			e = event{kind: header(message, ":message-type")}
			e.contentType = header(message, ":content-type")
			if e.name = header(message, ":event-type"); e.name == "" {
				e.name = header(message, ":exception-type")
			}
			e.value, _ = parseObject(message.Payload)
		}
		select {
		case s.events <- e:
		case <-ctx.Done():
			return
		}
		if e.kind == "end" || e.kind == "broken" {
			return
		}
	}
}

func header(message eventstream.Message, name string) string {
	value := message.Headers.Get(name)
	if value == nil {
		return ""
	}
	return value.String()
}

// close ends the subscription and waits for its goroutine.
func (s *subscription) close() {
	s.stop()
	s.done.Wait()
}

// next returns the next message. The check fails if none comes within that time.
func (c *check) next(s *subscription, within time.Duration) event {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case e := <-s.events:
		return e
	case <-timer.C:
		c.want(false, "an event within "+within.String(), "none")
	case <-c.ctx.Done():
		panic(skipped{"interrupted"})
	}
	return event{}
}

// data returns the next SubscribeToShardEvent.
func (c *check) data(s *subscription) object {
	for {
		e := c.next(s, c.eventTime())
		if e.name == "initial-response" {
			continue
		}
		c.want(e.kind == "event" && e.name == "SubscribeToShardEvent", "a SubscribeToShardEvent",
			e.kind+" "+e.name+" "+show(e.value))
		return e.value
	}
}

// records returns the first n records that the subscription brings, and the event of the last.
func (c *check) records(s *subscription, n int) (records []object, last object) {
	for len(records) < n {
		last = c.data(s)
		records = append(records, last.list("Records")...)
	}
	return records, last
}

// eventTime is the longest wait for an event. An idle stream gets one about every five seconds.
func (c *check) eventTime() time.Duration {
	if c.live {
		return time.Minute
	}
	return min(20*time.Second, c.patience())
}
