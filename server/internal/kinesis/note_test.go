package kinesis

import (
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
)

// A call that a limit refuses is logged with its stream, as one that is executed.
func TestNoteOfRefusedCall(t *testing.T) {
	n, _ := limitedNode(t, "off,describe-stream-summary=1")
	n.create("orders", 1)
	for i := range 2 {
		facts := new(wire.Facts)
		_, err := n.Serve(n.ctx, &wire.Call{
			Service: "kinesis", Operation: "DescribeStreamSummary", World: n.world,
			Body: []byte(`{"StreamName":"orders"}`), Facts: facts,
		})
		if (err != nil) != (i == 1) || facts.Stream != "orders" {
			t.Errorf("call %d: %v, and the stream %q", i, err, facts.Stream)
		}
	}
}
