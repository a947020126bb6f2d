package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/call"
)

// load is one way to fill a server. It has records, or items with so many attributes.
type load struct {
	name       string
	limit      int // MiB
	size       int // bytes of a record, or of an item as DynamoDB counts it
	records    int // of a call
	attributes int
	inFlight   int
}

func loads() []*load {
	return []*load{
		{name: "records of 1 KB", limit: 1024, size: 1000, records: 500, inFlight: 8},
		{name: "records of 1 KB", limit: 256, size: 1000, records: 500, inFlight: 8},
		{name: "records of 1 KB", limit: 64, size: 1000, records: 100, inFlight: 8},
		{name: "records of 20 B", limit: 256, size: 20, records: 500, inFlight: 8},
		{name: "16 calls of 10 MB", limit: 1024, size: 1_000_000, records: 10, inFlight: 16},
		{name: "items of 1 attribute", limit: 256, size: 40, attributes: 1, inFlight: 16},
		{name: "items of 20 attributes", limit: 256, size: 400, attributes: 20, inFlight: 16},
		{name: "items of 100 KB", limit: 256, size: 100_000, attributes: 1, inFlight: 8},
	}
}

// put puts the load and returns how many records or items were stored and refused.
func (l *load) put(ctx context.Context, t *target) (stored, refused int64, err error) {
	end := time.Now().Add(45 * time.Second)
	one := l.putItem
	if l.records > 0 {
		one = l.putRecords()
	} else if _, err := t.call(ctx, "CreateTable", []byte(`{"TableName":"items",
		"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}]}`)); err != nil {
		return 0, 0, err
	}
	var good, bad, calls atomic.Int64
	var failed atomic.Pointer[error]
	most := int64(l.limit) << 22 // four times the limit
	var callers sync.WaitGroup
	for range l.inFlight {
		callers.Go(func() {
			for time.Now().Before(end) && failed.Load() == nil {
				n := calls.Add(1)
				if n*int64(l.size*max(l.records, 1)) > most || l.records == 0 && bad.Load() > 1000 {
					return
				}
				g, b, err := one(ctx, t, n)
				if err != nil {
					failed.Store(&err)
				}
				good.Add(g)
				bad.Add(b)
			}
		})
	}
	callers.Wait()
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	return good.Load(), bad.Load(), nil
}

// putRecords returns a function that puts one call's records.
func (l *load) putRecords() func(context.Context, *target, int64) (good, bad int64, err error) {
	type entry struct{ Data, PartitionKey string }
	var in struct {
		StreamName string
		Records    []entry
	}
	in.StreamName = "s"
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), l.size))
	for i := range l.records {
		in.Records = append(in.Records, entry{data, fmt.Sprint(i)})
	}
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return func(ctx context.Context, t *target, _ int64) (good, bad int64, err error) {
		answer, err := t.call(ctx, "PutRecords", body)
		bad = int64(bytes.Count(answer, []byte(`"ErrorCode"`)))
		return int64(l.records) - bad, bad, err
	}
}

// putItem puts the n-th item.
func (l *load) putItem(ctx context.Context, t *target, n int64) (good, bad int64, err error) {
	type value struct{ S string }
	item := map[string]value{"k": {fmt.Sprint(n)}}
	for i := range l.attributes {
		name := fmt.Sprintf("attribute%d", i)
		item[name] = value{strings.Repeat("x", max(1, l.size/l.attributes-len(name)))}
	}
	body, err := json.Marshal(map[string]any{"TableName": "items", "Item": item})
	if err != nil {
		return 0, 0, err
	}
	answer, err := t.call(ctx, "PutItem", body)
	if err != nil && bytes.Contains(answer, []byte("ProvisionedThroughputExceeded")) {
		return 0, 1, nil
	}
	return 1, 0, err
}

// target is the server.
type target struct{ address string }

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// call sends a call. The error is that of an answer, too, which is returned with it.
func (t *target) call(ctx context.Context, operation string, body []byte) ([]byte, error) {
	return call.Send(ctx, client, t.address, operation, body)
}

// wait waits for the first answer.
func (t *target) wait(ctx context.Context) error {
	for {
		_, err := t.call(ctx, "ListStreams", []byte("{}"))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}
