package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/call"
)

// answerTime is the time after which a call of others counts as unanswered.
const answerTime = 10 * time.Second

// target is the attacked server.
type target struct {
	address string
	client  *http.Client // of the others
}

// newTarget returns a target whose others have a new connection for each call, or not.
func newTarget(address string, fresh bool) *target {
	return &target{address: address, client: &http.Client{
		Timeout:   answerTime,
		Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableKeepAlives: fresh},
	}}
}

// call sends a call and discards its answer.
func (t *target) call(
	ctx context.Context, client *http.Client, operation string, body []byte,
) error {
	_, err := call.Send(ctx, client, t.address, operation, body)
	return err
}

// small is the stream that others read: it has one record of a byte.
const small = "small"

// iterator returns one of the first shard of a stream, from its beginning.
func (t *target) iterator(ctx context.Context, stream string) (string, error) {
	var got struct{ ShardIterator string }
	answer, err := call.Send(ctx, t.client, t.address, "GetShardIterator", fmt.Appendf(nil,
		`{"StreamName":%q,"ShardId":"shardId-000000000000","ShardIteratorType":"TRIM_HORIZON"}`,
		stream))
	if err == nil {
		err = json.Unmarshal(answer, &got)
	}
	return got.ShardIterator, err
}

// prepare makes the lease table and waits for the streams.
func (t *target) prepare(ctx context.Context) error {
	err := t.call(ctx, t.client, "CreateTable", []byte(`{"TableName":"leases",
		"KeySchema":[{"AttributeName":"leaseKey","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"leaseKey","AttributeType":"S"}]}`))
	for range 50 {
		for _, stream := range []string{"attacked", small, subscribed} {
			if err == nil {
				err = t.call(ctx, t.client, "PutRecord", fmt.Appendf(nil,
					`{"StreamName":%q,"PartitionKey":"a","Data":"YQ=="}`, stream))
			}
		}
		if err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
		err = nil
	}
	return err
}

// others are the calls of others during an attack.
type others struct {
	end                context.CancelFunc
	calls              sync.WaitGroup
	mu                 sync.Mutex
	list, update, read times
}

// watch makes the calls of others until stop.
func watch(ctx context.Context, t *target) (*others, error) {
	iterator, err := t.iterator(ctx, small)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	o := &others{end: end}
	one := func(into *times, operation, body string) {
		start := time.Now()
		err := t.call(context.WithoutCancel(ctx), t.client, operation, []byte(body))
		took := time.Since(start)
		o.mu.Lock()
		defer o.mu.Unlock()
		into.took = append(into.took, took)
		if err != nil {
			into.unanswered++
		}
	}
	o.calls.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			o.calls.Go(func() { one(&o.list, "ListStreams", "{}") })
			o.calls.Go(func() {
				one(&o.read, "GetRecords", fmt.Sprintf(`{"ShardIterator":%q}`, iterator))
			})
			o.calls.Go(func() {
				one(&o.update, "UpdateItem", fmt.Sprintf(`{"TableName":"leases",
					"Key":{"leaseKey":{"S":"shardId-%012d"}},
					"UpdateExpression":"SET leaseCounter = :c",
					"ExpressionAttributeValues":{":c":{"N":"%d"}}}`, n%100, n))
			})
			time.Sleep(20 * time.Millisecond)
		}
	})
	return o, nil
}

// stop ends the calls. Then the times do not change any more.
func (o *others) stop() {
	o.end()
	o.calls.Wait()
}

// dial opens a connection that ends with the context.
func (t *target) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}
