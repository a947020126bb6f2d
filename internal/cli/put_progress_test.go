package cli

import (
	"testing"
	"time"

	"github.com/runnel-stream/runnel/producer"
)

// TestPutLine wants every figure of a put in its line.
func TestPutLine(t *testing.T) {
	stats := producer.Stats{
		Delivered: 12_000, Calls: 40, Buffered: 7, Retried: 3, Unknown: 2,
		OldestAge: 1500 * time.Millisecond,
	}
	want := "put 12,000 records, 6,000/s, 40 calls, 7 waiting, the oldest 1.5 s, 3 retried, 2 unknown"
	if got := putLine(stats, 2*time.Second); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
