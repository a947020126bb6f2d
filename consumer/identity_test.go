package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

// recreate deletes the stream and makes another one of its name, with records in it.
func (r *retained) recreate() {
	r.Helper()
	r.recreateEmpty()
	r.put(10)
}

func (r *retained) recreateEmpty() {
	r.Helper()
	client, name := r.server.Kinesis(), aws.String("orders")
	_, err := client.DeleteStream(r.Context(), &kinesis.DeleteStreamInput{StreamName: name})
	if err == nil {
		<-time.After(2 * time.Millisecond)
		_, err = client.CreateStream(r.Context(), &kinesis.CreateStreamInput{
			StreamName: name, ShardCount: aws.Int32(1),
		})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// hooked calls a function once before an operation.
type hooked struct {
	consumer.KinesisAPI
	loopback
	op   string
	nth  int64 // the first call is 1
	seen atomic.Int64
	do   func()
}

func (h *hooked) call(op string) {
	if op == h.op && h.seen.Add(1) == h.nth {
		h.do()
	}
}

func (h *hooked) DescribeStreamSummary(
	ctx context.Context, in *kinesis.DescribeStreamSummaryInput, o ...func(*kinesis.Options),
) (*kinesis.DescribeStreamSummaryOutput, error) {
	h.call("DescribeStreamSummary")
	return h.KinesisAPI.DescribeStreamSummary(ctx, in, o...)
}

func (h *hooked) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput, o ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	h.call("GetShardIterator")
	return h.KinesisAPI.GetShardIterator(ctx, in, o...)
}

func (h *hooked) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, o ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	h.call("GetRecords")
	return h.KinesisAPI.GetRecords(ctx, in, o...)
}

func (h *hooked) ListShards(
	ctx context.Context, in *kinesis.ListShardsInput, o ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	h.call("ListShards")
	return h.KinesisAPI.ListShards(ctx, in, o...)
}

// A stream that is deleted and made again while it is read ends the worker, whenever that happens,
// and none of the new stream's records is taken for the old one's.
func TestRecreatedStream(t *testing.T) {
	for _, op := range []string{
		"DescribeStreamSummary", "ListShards", "GetShardIterator", "GetRecords",
	} {
		for nth := range int64(3) {
			for _, before := range []int{0, 3} {
				name := fmt.Sprintf("before %s %d, with %d records", op, nth+1, before)
				if nth == 0 && op == "DescribeStreamSummary" {
					continue // the worker has not begun
				}
				t.Run(name, func(t *testing.T) {
					onRetained(t, func(r *retained) { recreated(r, op, nth+1, before) })
				})
			}
		}
	}
}

func recreated(r *retained, op string, nth int64, before int) {
	r.put(before)
	var began time.Time
	r.api = &hooked{KinesisAPI: r.api, op: op, nth: nth, do: func() {
		r.recreate()
		began = time.Now()
	}}
	err := r.run(10*time.Minute, r.handling)
	switch {
	case r.puts == before:
		r.Skip("there is no such call")
	case !errors.Is(err, consumer.ErrRecreated) || !errors.Is(err, lease.ErrOtherStream):
		r.Errorf("got %v, want ErrRecreated", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		r.Errorf("it took %s", took)
	}
	if len(r.got) > before {
		r.Errorf("delivered: %q, of %d records of the old stream", r.got, before)
	}
}

// The same while the worker waits at the tip of a stream that never had a record.
func TestRecreatedIdleStream(t *testing.T) {
	onRetained(t, func(r *retained) {
		done := make(chan struct{})
		defer func() { <-done }()
		go func() {
			defer close(done)
			<-time.After(time.Minute)
			r.recreate()
		}()
		began := time.Now()
		err := r.run(10*time.Minute, r.archiving)
		if !errors.Is(err, consumer.ErrRecreated) || len(r.got) > 0 {
			t.Errorf("got %v, delivered %q", err, r.got)
		}
		if took := time.Since(began) - time.Minute; took > 30*time.Second {
			t.Errorf("noticed after %s", took)
		}
		if entries, err := os.ReadDir(r.dir); len(entries) > 0 {
			t.Errorf("the archive has %v, %v", entries, err)
		}
	})
}

// A stream that is deleted ends the worker at the next read, with Config.Once as well.
func TestDeletedStream(t *testing.T) {
	for _, d := range []time.Duration{0, 10 * time.Minute} {
		onRetained(t, func(r *retained) {
			r.put(3)
			r.api = &hooked{KinesisAPI: r.api, op: "GetRecords", nth: 1, do: func() {
				if _, err := r.server.Kinesis().DeleteStream(r.Context(),
					&kinesis.DeleteStreamInput{StreamName: aws.String("orders")}); err != nil {
					r.Error(err)
				}
			}}
			began := time.Now()
			if err := r.run(d, r.handling); !errors.Is(err, consumer.ErrStreamGone) {
				t.Errorf("got %v, want ErrStreamGone", err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// A worker that only waits for another one's shards does not take the new stream's tip for the end
// of its work.
func TestRecreatedWhileWaitingForOthers(t *testing.T) {
	onRetained(t, func(r *retained) {
		plain := r.api
		other, stop := context.WithCancel(r.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w, err := consumer.New(r.config(r.handling, func(c *consumer.Config) {
				c.PollInterval, c.Kinesis = 24*time.Hour, plain // it reads nothing more
			}))
			if err == nil {
				err = w.Run(other)
			}
			if err != nil && !errors.Is(err, consumer.ErrRecreated) {
				t.Error(err)
			}
		}()
		<-time.After(time.Hour)
		r.api = &hooked{KinesisAPI: plain, op: "GetShardIterator", nth: 1, do: r.recreateEmpty}
		err := r.run(0, r.handling, func(c *consumer.Config) { c.AuditInterval = 24 * time.Hour })
		if !errors.Is(err, consumer.ErrRecreated) {
			t.Errorf("got %v, want ErrRecreated", err)
		}
		stop()
		<-done
	})
}

// Readers share the looks at the stream: a worker of many shards makes a few.
func TestLooksAreShared(t *testing.T) {
	bubble(t, 200, func(f *fleet) {
		var looks atomic.Int64
		f.stream.fault = func(op string, _ runnel.ShardID) error {
			switch op {
			case "DescribeStreamSummary":
				looks.Add(1)
			case "GetShardIterator":
				<-time.After(time.Millisecond)
			}
			return nil
		}
		f.stream.put("a", keys(1000)...)
		f.start("w1")
		f.await(failover, "1000 records", func() bool { n, _ := f.delivered(); return n == 1000 })
		if n := looks.Load(); n > 20 {
			t.Errorf("%d looks at the stream", n)
		}
	})
}

// Throttled looks are made again, and do not slow down any read.
func TestThrottledLooks(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		var looks atomic.Int64
		f.stream.fault = func(op string, _ runnel.ShardID) error {
			if n := looks.Add(1); op == "DescribeStreamSummary" && n > 2 && n%3 != 0 {
				return &types.LimitExceededException{Message: aws.String("Rate exceeded")}
			}
			return nil
		}
		f.stream.put("a", keys(50)...)
		f.start("w1")
		f.await(3*failover, "50 records", func() bool { n, _ := f.delivered(); return n == 50 })
	})
}
