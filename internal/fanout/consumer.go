package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/pages"
)

// ErrOtherStream is returned for the ARN of another stream's consumer.
var ErrOtherStream = errors.New("the consumer belongs to another stream")

// Config configures a Consumer. API, Stream and Consumer are required.
type Config struct {
	API      API
	Stream   string // the stream's ARN
	Consumer string // a name, or an ARN; see Check
	// Same returns nil if the stream is the one that is to be read. It is called after the consumer
	// was found, since a stream may be made again between two calls. Default: it always is.
	Same func(context.Context) error
	// OnRegister is called when the consumer was registered. Default none.
	OnRegister func(arn string)
}

// Consumer is a registered consumer. Its methods are safe for concurrent use.
type Consumer struct {
	cfg Config

	turn chan struct{} // held by the goroutine that finds the consumer
	mu   sync.Mutex    // guards the fields below
	arn  string        // "" if it is not known
	err  error         // of the last attempt to find it
	next time.Time     // no attempt to find it before

	once   sync.Once
	client *awsclient.EventClient
}

var _ pages.Subscriber = (*Consumer)(nil)

// findEvery is the shortest time between two attempts to find the consumer, for all shards of a
// worker together: AWS allows 20 DescribeStreamConsumer and 5 RegisterStreamConsumer a second.
const findEvery = time.Second

// New returns a consumer. It makes no call. Its error is ErrOtherStream.
func New(cfg Config) (*Consumer, error) {
	if err := CheckStream(cfg.Consumer, cfg.Stream); err != nil {
		return nil, err
	}
	return &Consumer{cfg: cfg, turn: make(chan struct{}, 1)}, nil
}

// Ready implements pages.Subscriber.
func (c *Consumer) Ready(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	arn, next, err := c.known()
	if arn != "" || err != nil && time.Now().Before(next) {
		return err
	}
	arn, err = c.find(ctx)
	if err == nil && c.cfg.Same != nil {
		err = c.cfg.Same(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err = err; err == nil {
		c.arn = arn
	}
	c.next = time.Now().Add(findEvery)
	return err
}

func (c *Consumer) known() (arn string, next time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arn, c.next, c.err
}

// lost forgets an ARN that the API does not know.
func (c *Consumer) lost(arn string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arn == arn {
		c.arn = ""
	}
}

// find describes the consumer, and registers it if it is missing.
func (c *Consumer) find(ctx context.Context) (arn string, err error) {
	d, err := Describe(ctx, c.cfg.API, c.cfg.Stream, c.cfg.Consumer)
	switch {
	case err == nil && d.ConsumerStatus == types.ConsumerStatusActive:
		return aws.ToString(d.ConsumerARN), nil
	case err == nil:
		return "", fmt.Errorf("%w: consumer %s is %s", pages.ErrPending, c.cfg.Consumer,
			d.ConsumerStatus)
	case awserr.Kinesis.Of(err) != awserr.Missing:
		return "", err
	case isARN(c.cfg.Consumer):
		return "", fmt.Errorf("%w: only a name can be registered: %w", pages.ErrNoConsumer, err)
	}
	out, err := c.cfg.API.RegisterStreamConsumer(ctx, &kinesis.RegisterStreamConsumerInput{
		StreamARN: &c.cfg.Stream, ConsumerName: &c.cfg.Consumer,
	})
	switch {
	case awserr.Code(err) == awserr.CodeInUse: // another worker was faster
		return "", fmt.Errorf("%w: consumer %s is being registered: %w", pages.ErrPending,
			c.cfg.Consumer, err)
	case awserr.Code(err) == awserr.CodeLimit: // a stream has 20, of which 5 are being made
		return "", fmt.Errorf("%w: register consumer %s: %w", pages.ErrNoConsumer, c.cfg.Consumer,
			err)
	case err != nil:
		return "", fmt.Errorf("register consumer %s: %w", c.cfg.Consumer, err)
	}
	if c.cfg.OnRegister != nil {
		c.cfg.OnRegister(aws.ToString(out.Consumer.ConsumerARN))
	}
	return "", fmt.Errorf("%w: consumer %s is %s", pages.ErrPending, c.cfg.Consumer,
		types.ConsumerStatusCreating)
}

// Describe describes a consumer of a stream with this ARN, by the consumer's name or ARN.
func Describe(
	ctx context.Context, api Describer, stream, consumer string,
) (*types.ConsumerDescription, error) {
	in := &kinesis.DescribeStreamConsumerInput{StreamARN: &stream, ConsumerName: &consumer}
	if isARN(consumer) {
		in = &kinesis.DescribeStreamConsumerInput{ConsumerARN: &consumer}
	}
	out, err := api.DescribeStreamConsumer(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("find consumer %s: %w", consumer, err)
	}
	return out.ConsumerDescription, nil
}

// Subscribe implements pages.Subscriber.
func (c *Consumer) Subscribe(
	ctx context.Context, in *kinesis.SubscribeToShardInput,
) (pages.Events, middleware.Metadata, error) {
	arn, _, _ := c.known()
	if arn == "" { // another shard's reader has just lost it
		return nil, middleware.Metadata{}, fmt.Errorf("%w: it was lost", pages.ErrPending)
	}
	in.ConsumerARN = &arn
	out, err := c.cfg.API.SubscribeToShard(ctx, in, c.ownCall)
	if err != nil {
		if awserr.Kinesis.Of(err) == awserr.Missing {
			c.lost(arn)
		}
		return nil, middleware.Metadata{}, err
	}
	return out.GetStream(), out.ResultMetadata, nil
}

// ownCall sets the options of one call, whatever options the client was made with. The SDK's
// retries are off, since its caller asks before each attempt whether the shard is still held. The
// decoder is new, since those of one client share a buffer's header without a lock (smithy-go
// 1.28).
func (c *Consumer) ownCall(o *kinesis.Options) {
	c.once.Do(func() { c.client = awsclient.ForEvents(o.HTTPClient) })
	o.Retryer, o.HTTPClient = aws.NopRetryer{}, c.client
	o.Protocol = awsjson.New11(schemas.Kinesis_20131202)
}

// Close closes the connections, after the last subscription has ended.
func (c *Consumer) Close() {
	c.once.Do(func() {})
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}
