package main

import (
	"context"
	"strings"
	"sync"
	"time"
)

// shortValues puts items in bodies with 15 MB of the shortest values, four at a time.
func shortValues(ctx context.Context, t *target) {
	const value = `{"L":[]},`
	body := []byte(`{"TableName":"leases","Item":{"leaseKey":{"S":"a"},"v":{"L":[` +
		strings.Repeat(value, 15_000_000/len(value)) + `{"S":""}]}}}`)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				if t.call(ctx, t.client, "PutItem", body) != nil { // it is refused, as it should be
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	clients.Wait()
}
