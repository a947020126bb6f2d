package main

import (
	"context"
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

// prepare makes the lease table and waits for the stream.
func (t *target) prepare(ctx context.Context) error {
	err := t.call(ctx, t.client, "CreateTable", []byte(`{"TableName":"leases",
		"KeySchema":[{"AttributeName":"leaseKey","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"leaseKey","AttributeType":"S"}]}`))
	for range 50 {
		if err == nil {
			err = t.call(ctx, t.client, "PutRecord",
				[]byte(`{"StreamName":"attacked","PartitionKey":"a","Data":"YQ=="}`))
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
	end          context.CancelFunc
	calls        sync.WaitGroup
	mu           sync.Mutex
	list, update times
}

// watch makes the calls of others until stop.
func watch(ctx context.Context, t *target) *others {
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
				one(&o.update, "UpdateItem", fmt.Sprintf(`{"TableName":"leases",
					"Key":{"leaseKey":{"S":"shardId-%012d"}},
					"UpdateExpression":"SET leaseCounter = :c",
					"ExpressionAttributeValues":{":c":{"N":"%d"}}}`, n%100, n))
			})
			time.Sleep(20 * time.Millisecond)
		}
	})
	return o
}

func (o *others) stop() (list, update times) {
	o.end()
	o.calls.Wait()
	return o.list, o.update
}

// dial opens a connection that ends with the context.
func (t *target) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}
