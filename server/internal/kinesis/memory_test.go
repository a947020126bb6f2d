package kinesis

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
)

// TestRetentionMakesRoomInMemory checks that puts into a full memory go on once old records have
// expired.
func TestRetentionMakesRoomInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, clock := vfs.NewMem(), newTestClock()
		var n *node
		limit := memlimit.New(8<<20, func() int64 {
			pending, _ := n.log.Pending()
			return disk.Memory() + pending
		})
		n = startNode(t, disk, at(clock), func(cfg *Config) { cfg.Memory = limit })
		defer n.stop()
		n.create("orders", 1)
		data := []byte(strings.Repeat("x", 100<<10))
		put := func() error {
			_, err := n.try("PutRecord", m{
				"StreamName": "orders", "PartitionKey": "k", "Data": data,
			})
			time.Sleep(time.Second) // the record gets into its segment
			return err
		}
		stored, err := 0, put()
		for ; err == nil && stored < 1000; err = put() {
			stored++
		}
		if !errors.Is(err, memlimit.ErrFull) || stored < 20 {
			t.Fatalf("%d records of 100 KiB are stored, then: %v", stored, err)
		}
		if _, err := n.try("CreateStream", m{"StreamName": "more", "ShardCount": 100}); !errors.Is(
			err, memlimit.ErrFull) {
			t.Errorf("a stream was created in a full memory: %v", err)
		}
		clock.advance(25 * time.Hour)
		n.sweeper.sweep(n.ctx)
		time.Sleep(time.Second)
		synctest.Wait() // the segment is gone
		for range stored / 2 {
			if err := put(); err != nil {
				t.Fatalf("after the sweep: %v", err)
			}
		}
	})
}
