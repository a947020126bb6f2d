package rolluptest_test

import (
	"context"
	"testing"

	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/rollup"
	"github.com/runnel-stream/runnel/sink/rollup/dynamostore"
	"github.com/runnel-stream/runnel/sink/rollup/rolluptest"
)

// A test of a store: does it write a row on the condition of its version?
func ExampleRun() {
	_ = func(t *testing.T) { // func TestMyStore(t *testing.T)
		rolluptest.Run(t, func(t *testing.T) rolluptest.Target {
			server := runneltest.NewServer(t)
			return rolluptest.Target{
				Open: func() (rollup.RowStore, error) {
					return dynamostore.New(dynamostore.Config{
						DynamoDB: server.DynamoDB(), Table: "edits",
					})
				},
				Bad: func(context.Context) (map[string]string, error) {
					return nil, nil // reads the table edits_bad
				},
			}
		})
	}
}
