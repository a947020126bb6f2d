package server

import (
	"context"
	"net/http"
	"time"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/transport"
)

// refusal returns the answer that replaces the execution of a call; nil if there is none.
func refusal(in *wire.Call, d fault.Decision) *wire.Error {
	switch d.Refuse {
	case fault.InternalError:
		return wire.InternalFailure(in.Service)
	case fault.Unavailable:
		return wire.Unavailable("a fault on request")
	case fault.Throttle:
		return throttling(in, "a fault on request")
	case fault.Denied:
		return &wire.Error{Code: d.Code, Message: "a fault on request"}
	case fault.None, fault.LoseRequest:
	}
	return nil
}

// throttling is the error with which the API limits a rate: ProvisionedThroughputExceededException
// for data, a general one for everything else. AWS documents that it means no change. So it is also
// the answer of a server that cannot write for a while.
func throttling(in *wire.Call, reason string) *wire.Error {
	if in.Service == wire.DynamoDB {
		switch in.Operation {
		case "PutItem", "GetItem", "UpdateItem", "DeleteItem", "Scan", "Query",
			"BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems":
			return &wire.Error{
				Code: "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
				Message: "The level of configured provisioned throughput for the table was " +
					"exceeded. (" + reason + ")",
			}
		}
		return &wire.Error{
			Code:    "com.amazon.coral.availability#ThrottlingException",
			Message: "Rate of requests exceeds the allowed throughput. (" + reason + ")",
		}
	}
	switch in.Operation {
	case "PutMetricData", "GetCallerIdentity":
		return &wire.Error{
			Code: "ThrottlingException", Query: "Throttling",
			Message: "Rate exceeded (" + reason + ")",
		}
	case "PutRecord", "PutRecords", "GetRecords", "GetShardIterator":
		return &wire.Error{
			Code:    "ProvisionedThroughputExceededException",
			Message: "Rate exceeded. (" + reason + ")",
		}
	}
	return &wire.Error{
		Code: "LimitExceededException", Message: "Rate exceeded. (" + reason + ")",
	}
}

// delay waits, unless the client gives up or the server ends: a deliberate pause delays neither
// Serve's end nor Close. If it is not ok, the client has gone and the call is not executed.
func (c *call) delay(ctx context.Context, d time.Duration) (ok bool) {
	if d <= 0 {
		return true
	}
	drained := transport.Draining(ctx)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.server.hurry:
	case <-drained:
	case <-ctx.Done():
		return false
	}
	return true
}

// commitLate executes the call on a goroutine of its own, after the decision's time or when Close
// hurries it; Close waits for that goroutine. commitLate does not return, but cuts the connection.
func (c *call) commitLate(ctx context.Context, decision fault.Decision) {
	done := make(chan struct{})
	detached := context.WithoutCancel(ctx)
	go func() {
		defer close(done)
		defer c.end()
		c.delay(detached, decision.Delay+decision.CommitLate)
		c.executeUnheard(detached, decision)
	}()
	if decision.Hang {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	panic(http.ErrAbortHandler)
}
