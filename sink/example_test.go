package sink_test

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// counter is a sink that counts records. Its effect and its position change together, so that each
// record counts once, however often a reader begins again.
type counter struct {
	count int
	last  sink.Committed
}

func (c *counter) Open(context.Context, sink.Shard) (sink.Writer, error) { return c, nil }

func (c *counter) Committed() sink.Committed { return c.last }

func (c *counter) Write(_ context.Context, batch sink.Batch) (sink.Committed, error) {
	for _, record := range batch.Records {
		if !c.last.End.Less(record.Position) {
			return c.last, sink.ErrOutOfOrder
		}
	}
	c.count += len(batch.Records)
	c.last = sink.Committed{End: batch.Through, State: batch.State.Bytes()}
	return c.last, nil
}

func (c *counter) Flush(context.Context) (sink.Committed, error) { return c.last, nil }

func (c *counter) End(context.Context) (sink.Committed, error) {
	c.last.End = runnel.End()
	return c.last, nil
}

func (c *counter) Close() error { return nil }

// A batch of one record is written twice: the second time it is out of order.
func Example() {
	ctx := context.Background()
	c := new(counter)
	w, _ := c.Open(ctx, sink.Shard{
		Stream: "orders", Created: time.UnixMilli(1_700_000_000_000), ID: "shardId-000000000000",
	})
	at := runnel.Position{Sequence: "1001"}
	batch := sink.Batch{Records: []runnel.Record{{Position: at}}, Through: at}
	for range 2 {
		committed, err := w.Write(ctx, batch)
		fmt.Println(committed.End, err)
	}
	fmt.Println(c.count, "record")
	// Output:
	// 1001 <nil>
	// 1001 records out of order
	// 1 record
}
