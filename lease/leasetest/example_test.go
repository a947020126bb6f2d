package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/lease/leasetest"
	"github.com/runnel-stream/runnel/runneltest"
)

// A test of a DynamoDB endpoint: is it fit for lease tables?
func ExampleRun() {
	_ = func(t *testing.T) { // func TestMyEndpoint(t *testing.T)
		server := runneltest.NewServer(t) // the endpoint
		leasetest.Run(t, func(*testing.T) lease.DynamoDBAPI { return server.DynamoDB() })
	}
}

// The answer of the first renewal is lost. The holder knows its own write again, so it keeps the
// lease.
func ExampleMemory() {
	ctx := context.Background()
	memory := new(leasetest.Memory)
	table, err := lease.New(lease.Config{
		DynamoDB: memory, Table: "orders-app", Stream: lease.Stream{Name: "orders", Created: time.Now()},
	})
	check(err)
	check(table.Ensure(ctx))
	held, _, err := table.Create(ctx, lease.Lease{
		Key: "shardId-000000000000", Owner: "worker-1", Hold: "a random text",
		Checkpoint: runnel.Position{Sequence: runnel.TrimHorizon},
	})
	check(err)
	lost := 0
	memory.After = func(_ context.Context, op, _ string) error {
		if op != "UpdateItem" || lost > 0 {
			return nil
		}
		lost++
		return errors.New("the connection was cut")
	}
	_, err = table.Renew(ctx, held)
	fmt.Println(lost, "answer lost:", err)
	// Output: 1 answer lost: <nil>
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
