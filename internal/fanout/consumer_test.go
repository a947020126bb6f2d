package fanout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/pages"
)

const streamARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"

// fake is a stream's list of consumers with one place. A consumer is CREATING for ten seconds, and
// DELETING for as long.
type fake struct {
	mu       sync.Mutex
	made     int
	until    time.Time // of CREATING or DELETING
	status   types.ConsumerStatus
	refusal  error // of registrations
	between  func()
	describe int
}

func (f *fake) arn() string { return fmt.Sprint(streamARN, "/consumer/readers:", f.made) }

func (f *fake) settle() {
	if time.Now().Before(f.until) {
		return
	}
	switch f.status {
	case types.ConsumerStatusCreating:
		f.status = types.ConsumerStatusActive
	case types.ConsumerStatusDeleting:
		f.status = ""
	}
}

func (f *fake) become(status types.ConsumerStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.until = status, time.Now().Add(10*time.Second)
	if status == types.ConsumerStatusCreating {
		f.made++
	}
}

func (f *fake) DescribeStreamConsumer(
	_ context.Context, in *kinesis.DescribeStreamConsumerInput, _ ...func(*kinesis.Options),
) (*kinesis.DescribeStreamConsumerOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.describe++
	f.settle()
	if f.status == "" || in.ConsumerARN != nil && *in.ConsumerARN != f.arn() {
		return nil, &types.ResourceNotFoundException{}
	}
	return &kinesis.DescribeStreamConsumerOutput{ConsumerDescription: &types.ConsumerDescription{
		ConsumerARN: aws.String(f.arn()), ConsumerStatus: f.status,
	}}, nil
}

func (f *fake) RegisterStreamConsumer(
	context.Context, *kinesis.RegisterStreamConsumerInput, ...func(*kinesis.Options),
) (*kinesis.RegisterStreamConsumerOutput, error) {
	if f.between != nil {
		f.between()
	}
	f.mu.Lock()
	taken, refusal := f.status != "", f.refusal
	f.mu.Unlock()
	switch {
	case refusal != nil:
		return nil, refusal
	case taken:
		return nil, &types.ResourceInUseException{}
	}
	f.become(types.ConsumerStatusCreating)
	return &kinesis.RegisterStreamConsumerOutput{
		Consumer: &types.Consumer{ConsumerARN: aws.String(f.arn())},
	}, nil
}

func (f *fake) SubscribeToShard(
	_ context.Context, in *kinesis.SubscribeToShardInput, _ ...func(*kinesis.Options),
) (*kinesis.SubscribeToShardOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *in.ConsumerARN != f.arn() || f.status == "" {
		return nil, &types.ResourceNotFoundException{}
	}
	return &kinesis.SubscribeToShardOutput{}, nil
}

func (f *fake) consumer(t *testing.T, name string, change ...func(*Config)) *Consumer {
	t.Helper()
	cfg := Config{API: f, Stream: streamARN, Consumer: name}
	for _, c := range change {
		c(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitReady asks until the consumer is ready or the error is another one than ErrPending.
func awaitReady(t *testing.T, c *Consumer) (took time.Duration, err error) {
	t.Helper()
	began := time.Now()
	for {
		if err = c.Ready(t.Context()); !errors.Is(err, pages.ErrPending) {
			return time.Since(began), err
		}
		<-time.After(100 * time.Millisecond)
	}
}

// A consumer that is missing is registered once, however many shards and workers ask, and is ready
// when it is ACTIVE.
func TestReadyRegistersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, registered := &fake{}, 0
		var mu sync.Mutex
		var group sync.WaitGroup
		for range 3 {
			c := f.consumer(t, "readers", func(c *Config) {
				c.OnRegister = func(string) {
					mu.Lock()
					defer mu.Unlock()
					registered++
				}
			})
			for range 50 {
				group.Go(func() {
					took, err := awaitReady(t, c)
					if err != nil || took < 10*time.Second || took > 12*time.Second {
						t.Errorf("%v after %s", err, took)
					}
				})
			}
		}
		group.Wait()
		if registered != 1 || f.made != 1 {
			t.Errorf("%d registrations, %d consumers", registered, f.made)
		}
		if f.describe > 3*13 {
			t.Errorf("%d calls to describe it in 10 s", f.describe)
		}
	})
}

// Ready goes by what the API says of the consumer.
func TestReady(t *testing.T) {
	const gone = streamARN + "/consumer/readers:7"
	making := func(f *fake) { f.become(types.ConsumerStatusCreating) }
	deleting := func(f *fake) { f.become(types.ConsumerStatusDeleting) }
	active := func(f *fake) {
		making(f)
		f.until = time.Time{}
	}
	overtaken := func(f *fake) {
		f.between = func() {
			making(f)
			f.between = nil
		}
	}
	limit := &types.LimitExceededException{}
	for _, c := range []struct {
		name  string
		of    string
		make  func(*fake)
		after time.Duration
		want  error // nil: ready
		made  int
	}{
		{"it is there", "readers", active, 0, nil, 1},
		{"it is being made", "readers", making, 10 * time.Second, nil, 1},
		{"it is being deleted", "readers", deleting, 20 * time.Second, nil, 1},
		{"another worker is faster", "readers", overtaken, 10 * time.Second, nil, 1},
		{"too many", "readers", func(f *fake) { f.refusal = limit }, 0, pages.ErrNoConsumer, 0},
		{"an ARN that is gone", gone, func(*fake) {}, 0, pages.ErrNoConsumer, 0},
		{"an outage", "readers", func(f *fake) { f.refusal = errOutage }, 0, errOutage, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			c.make(f)
			took, err := awaitReady(t, f.consumer(t, c.of))
			if !errors.Is(err, c.want) || took < c.after || took > c.after+2*time.Second ||
				f.made != c.made {
				t.Errorf("%s: %v after %s, %d made; want %v after %s, %d", c.name, err, took, f.made,
					c.want, c.after, c.made)
			}
		})
	}
}

var errOutage = errors.New("connection reset")

// A consumer that the API no longer knows is found, or registered, again.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		c := f.consumer(t, "readers")
		if _, err := awaitReady(t, c); err != nil {
			t.Fatal(err)
		}
		in := func() *kinesis.SubscribeToShardInput { return &kinesis.SubscribeToShardInput{} }
		if _, _, err := c.Subscribe(t.Context(), in()); err != nil {
			t.Error(err)
		}
		f.become("")
		var missing *types.ResourceNotFoundException
		if _, _, err := c.Subscribe(t.Context(), in()); !errors.As(err, &missing) {
			t.Errorf("after the deregistration: %v", err)
		}
		if _, _, err := c.Subscribe(t.Context(), in()); !errors.Is(err, pages.ErrPending) {
			t.Errorf("before it was found again: %v", err)
		}
		if _, err := awaitReady(t, c); err != nil || f.made != 2 {
			t.Errorf("%v, %d made", err, f.made)
		}
	})
}

// A consumer is of no use if the stream was made again meanwhile.
func TestReadyLooksAtTheStream(t *testing.T) {
	f := &fake{}
	c := f.consumer(t, "readers", func(c *Config) {
		c.Same = func(context.Context) error { return errOutage }
	})
	f.become("CREATING")
	f.until = time.Time{}
	if err := c.Ready(t.Context()); !errors.Is(err, errOutage) {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for consumer, want := range map[string]string{
		"readers":                        "",
		streamARN + "/consumer/a:1":      "",
		"":                               "is not the name of a consumer",
		"a b":                            "is not the name of a consumer",
		strings.Repeat("a", 129):         "is not the name of a consumer",
		streamARN:                        "is not the ARN of a consumer",
		streamARN + "/consumer/a":        "is not the ARN of a consumer",
		streamARN + "-2/consumer/a:1":    "is a consumer of the stream orders-2: want a consumer of",
		"arn:aws:iam::1:role/consumer:1": "is not the ARN of a consumer",
	} {
		err := Check(consumer, "orders")
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", consumer, err, want)
		}
	}
	other := "arn:aws:kinesis:eu-west-1:000000000000:stream/orders/consumer/a:1"
	if _, err := New(Config{Stream: streamARN, Consumer: other}); !errors.Is(err, ErrOtherStream) {
		t.Errorf("another region's: %v", err)
	}
}
