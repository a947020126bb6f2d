package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/fanout"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/streamref"
)

// Fanout is reading by enhanced fan-out: the stream sends records as they are stored, and gives the
// application 2 MB/s of each shard for itself. AWS charges for both.
//
// All workers of a fleet read by the same registered consumer, which the first one registers. No
// worker deregisters it, since others read by it: `runnel leases deregister NAME` does. A shard is
// subscribed to only under a valid lease. A handler or a sink gets the same as with polling.
// Config.Kinesis then needs the calls of FanoutAPI, as *kinesis.Client has them.
//
// A slow handler stops the stream. For each shard the worker holds, beside the two reads of
// Config.MaxRecords, at most two more events of about 1 MiB each, and 256 KiB in the connection:
// it narrows the HTTP/2 window, for which Go has 4 MiB. It does so in a copy of the client's HTTP
// client, if that is the SDK's own or an *http.Client.
type Fanout struct {
	// Consumer is the name of the stream's consumer, or its ARN; default Config.App. A name is
	// registered if the stream has no consumer of that name.
	Consumer string
	// OrPoll makes the worker poll while it can have no subscription: because the consumer is
	// refused (the role lacks the right, the stream has 20 consumers, the server has no enhanced
	// fan-out), or a shard has been without one for 30 seconds. It says so (EventPolling, and a
	// warning), and tries again every minute. Default: the worker tries again until it can
	// subscribe, and does not start if it can have no consumer for Config.StartTimeout.
	OrPoll bool
}

// ErrOtherConsumer is returned if Fanout.Consumer is the ARN of another stream's consumer.
var ErrOtherConsumer = fanout.ErrOtherStream

// FanoutAPI is the part of the AWS SDK's Kinesis client that Config.Fanout needs beside KinesisAPI.
type FanoutAPI interface {
	DescribeStreamConsumer(context.Context, *kinesis.DescribeStreamConsumerInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamConsumerOutput, error)
	RegisterStreamConsumer(context.Context, *kinesis.RegisterStreamConsumerInput,
		...func(*kinesis.Options)) (*kinesis.RegisterStreamConsumerOutput, error)
	SubscribeToShard(context.Context, *kinesis.SubscribeToShardInput,
		...func(*kinesis.Options)) (*kinesis.SubscribeToShardOutput, error)
}

// consumerName returns the name or ARN of the consumer.
func (c Config) consumerName() string {
	if c.Fanout.Consumer == "" {
		return c.App
	}
	return c.Fanout.Consumer
}

func (c Config) checkFanout() (faults []error) {
	if c.Fanout == nil {
		return nil
	}
	if missing := fanout.Missing(c.Kinesis); c.Kinesis != nil && len(missing) > 0 {
		faults = append(faults, fmt.Errorf("consumer: Kinesis has no %s, which Fanout needs: want "+
			"a client with these calls, as *kinesis.Client, or no Fanout",
			strings.Join(missing, " and no ")))
	}
	if name := c.consumerName(); name != "" {
		if err := fanout.Check(name, streamref.Name(c.Stream)); err != nil {
			faults = append(faults, fmt.Errorf("consumer: Fanout.Consumer: %w", err))
		}
	}
	return faults
}

// findConsumer finds or registers the consumer, if there is to be one. The shards' readers wait
// until it is ACTIVE.
func (r *run) findConsumer(ctx context.Context) error {
	if r.cfg.Fanout == nil {
		return nil
	}
	if r.fanout == nil {
		arn, err := r.streamARN(ctx)
		if err != nil {
			return err
		}
		r.fanout, err = fanout.New(fanout.Config{
			API: r.cfg.Kinesis.(FanoutAPI), Stream: arn, Consumer: r.cfg.consumerName(),
			Same: r.sameStream,
			OnRegister: func(arn string) {
				r.cfg.Logger.Info("registered a consumer for enhanced fan-out; it stays until it "+
					"is deregistered", "worker", r.cfg.WorkerID, "consumer", arn)
			},
		})
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CallTimeout)
	defer cancel()
	err := r.fanout.Ready(ctx)
	if errors.Is(err, pages.ErrPending) || r.cfg.Fanout.OrPoll && !isFinal(err) {
		return nil // the shards' readers report the rest
	}
	return err
}

func (r *run) streamARN(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CallTimeout)
	defer cancel()
	out, err := r.cfg.Kinesis.DescribeStreamSummary(ctx, streamref.Describe(r.cfg.Stream))
	if err != nil {
		return "", fmt.Errorf("stream %s: %w", r.cfg.Stream, err)
	}
	if out.StreamDescriptionSummary == nil {
		return "", fmt.Errorf("stream %s: the answer has no description", r.cfg.Stream)
	}
	return aws.ToString(out.StreamDescriptionSummary.StreamARN), nil
}

// closeFanout closes the connections of the subscriptions.
func (r *run) closeFanout() {
	if r.fanout != nil {
		r.fanout.Close()
	}
}

// source returns the way in which a holding's shard is read, and the function that ends it. A
// parent that is read under its child's lease is polled: the holders of two children may read it at
// the same time, and would take its subscription from each other.
func (r *run) source(h *holding, cfg pages.Config) (source pages.Source, end func()) {
	if r.fanout == nil || h.unended {
		return pages.New(cfg), func() {}
	}
	s := pages.NewSubscription(cfg, pages.Fanout{
		Subscriber: r.fanout, Held: h.keeper.holds, OrPoll: r.cfg.Fanout.OrPoll,
		OnSubscribed: func() { h.event(Event{Kind: EventSubscribed}) },
		OnPolling: func(err error) {
			if since, ok := r.polling.may("", time.Now()); ok {
				r.cfg.Logger.Warn("polls, since enhanced fan-out cannot be had; will try again",
					"worker", r.cfg.WorkerID, "stream", r.cfg.Stream, "shard", string(cfg.Shard),
					"error", err, "failuresSinceTheLastLine", since)
			}
			h.event(Event{Kind: EventPolling, Err: err})
		},
	})
	return s, func() { _ = s.Close() } // it returns no error
}

// holds returns nil if the lease is certainly held. If another reader took the shard's subscription
// over, that may be the shard's new owner: then it also waits for a heartbeat, since a worker of
// another program takes leases without waiting for their end.
func (k *keeper) holds(ctx context.Context, taken bool) error {
	if taken {
		k.mu.Lock()
		beaten := k.mu.beaten
		k.mu.Unlock()
		k.renewSoon()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-beaten:
		case <-k.quit:
			return errStopping
		}
	}
	return k.ensure(ctx)
}
