package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/call"
)

const (
	batch   = 500 // records a call
	filling = 64  // calls in flight while the table is filled
)

func newClient() *http.Client {
	return &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * filling},
	}
}

// call sends a call and discards its answer.
func (s *subject) call(ctx context.Context, operation string, body []byte) error {
	_, err := call.Send(ctx, s.client, s.Address, operation, body)
	return err
}

// putRecords returns the body of a call with records of 1 KiB.
func putRecords(seed int) []byte {
	var body bytes.Buffer
	body.WriteString(`{"StreamName":"bench","Records":[`)
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(seed)}, 1024))
	for i := range batch {
		if i > 0 {
			body.WriteByte(',')
		}
		_, _ = fmt.Fprintf(&body, `{"PartitionKey":"key-%d-%d","Data":"%s"}`, seed, i, data)
	}
	body.WriteString(`]}`)
	return body.Bytes()
}

// update returns the body of the renewal of a lease in an item.
func update(item, n int) []byte {
	return fmt.Appendf(nil, `{"TableName":"items","Key":{"id":{"S":"item-%d"}},
		"UpdateExpression":"SET leaseCounter = :c",
		"ExpressionAttributeValues":{":c":{"N":"%d"}}}`, item, n%900+100)
}

// fill makes a table and its items.
func (s *subject) fill(ctx context.Context) error {
	err := s.call(ctx, "CreateTable", []byte(`{"TableName":"items",
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`))
	if err != nil {
		return err
	}
	pad := strings.Repeat("x", 960)
	var next atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for range filling {
		group.Go(func() {
			for failed.Load() == nil {
				n := int(next.Add(1)) - 1
				if n >= s.items {
					return
				}
				err := s.call(ctx, "PutItem", fmt.Appendf(nil,
					`{"TableName":"items","Item":{"id":{"S":"item-%d"},"leaseCounter":{"N":"100"},
					"leaseOwner":{"S":"worker-%d"},"pad":{"S":"%s"}}}`, n, n%100, pad))
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
