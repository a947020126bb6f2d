package fsck_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestSkippedNumbers checks a directory before and after a start that skips sequence numbers.
func TestSkippedNumbers(t *testing.T) {
	disk := vfs.NewCrashable()
	live := func(interval time.Duration) (left *vfs.Mem) {
		cfg := config("data")
		cfg.SyncInterval = interval
		s, err := open(t, disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		c := client{s}
		if _, err := c.kinesis("CreateStream", object{"StreamName": "orders", "ShardCount": 1}); err != nil &&
			!strings.Contains(err.Error(), "ResourceInUse") {
			t.Fatal(err)
		}
		if _, err := c.kinesis("PutRecord", object{
			"StreamName": "orders", "PartitionKey": "k", "Data": "eA==",
		}); err != nil {
			t.Fatal(err)
		}
		for { // so that the stream is there after a power cut
			left = disk.Crash(rand.New(rand.NewPCG(1, 1)))
			if report, text := text(t, left); interval == 0 || len(report.Streams) > 0 {
				t.Log("\n" + text)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return left
	}
	const before, after = "the next start skips sequence numbers",
		"its sequence numbers have skipped ahead 1 time"
	disk = live(20 * time.Millisecond)
	report, said := text(t, disk)
	if !report.OK || !report.Log.Lossy || !strings.Contains(said, before) ||
		strings.Contains(said, after) || strings.Contains(said, "everything that was acknowledged") {
		t.Errorf("after the power cut: %+v\n%s", report.Log, said)
	}
	disk = live(0)
	report, said = text(t, disk)
	if !report.OK || report.Streams[0].Shards[0].Skips != 1 || !strings.Contains(said, after) {
		t.Errorf("after the start: %+v\n%s", report.Streams, said)
	}
}
