package server_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// The page shows the disk's failure, and its end.
func TestTheStateOfTheStoreIsShown(t *testing.T) {
	var fail atomic.Value // of func(vfs.Op) error
	fail.Store(func(vfs.Op) error { return nil })
	on := func(kind vfs.OpKind, folder string, err error) {
		fail.Store(func(op vfs.Op) error {
			if op.Kind == kind && strings.Contains(op.Name, folder) {
				return err
			}
			return nil
		})
	}
	v := serve(t, server.Config{Dir: "data"}, seam.OnFS(vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		return fail.Load().(func(vfs.Op) error)(op)
	})))
	var puts sync.WaitGroup
	defer puts.Wait()
	put := func() { // which may wait for the disk
		puts.Go(func() { _, _ = v.put(t.Context(), "twelve bytes") })
	}
	shows := func(log, segments, poisoned float64) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			shown := scrape(t, v.get, v.endpoint)
			got := [3]float64{
				of(shown, "runnel_log_stalled", ""), of(shown, "runnel_segments_stalled", ""),
				of(shown, "runnel_log_poisoned", ""),
			}
			if got == [3]float64{log, segments, poisoned} {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("log, segments stalled, poisoned: %v, want %v, %v, %v", got, log, segments,
					poisoned)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	shows(0, 0, 0)

	on(vfs.OpWrite, "/shards/", vfs.ErrNoSpace)
	put()
	shows(0, 1, 0)
	on("", "", nil)
	shows(0, 0, 0)

	on(vfs.OpWrite, "/wal/", vfs.ErrNoSpace)
	put()
	shows(1, 0, 0)
	if pending := of(scrape(t, v.get, v.endpoint), "runnel_log_pending_bytes", ""); pending < 12 {
		t.Errorf("%v bytes are pending", pending)
	}
	on("", "", nil)
	shows(0, 0, 0)

	on(vfs.OpSync, "/wal/", vfs.ErrInjected)
	put()
	shows(0, 0, 1)
	shown := scrape(t, v.get, v.endpoint)
	for _, part := range []string{"log", "segments"} {
		if of(shown, "runnel_disk_bytes", "part="+part) <= 0 {
			t.Errorf("of the disk: %v", shown["runnel_disk_bytes"])
		}
	}
	if of(shown, "runnel_up", "") != 0 {
		t.Error("it is up")
	}
}
