package wal

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// If only the last checkpoint fails, Close says that nothing is lost, and a power cut proves it. If
// the log cannot be synced either, Close does not say so.
func TestCloseWithoutALastCheckpoint(t *testing.T) {
	for name, c := range map[string]struct {
		interval time.Duration
		broken   bool // syncs of the log's files fail
	}{
		"synced at once":                   {0, false},
		"synced once an hour":              {time.Hour, false},
		"the sync at the end has failed":   {time.Hour, true},
		"no frame waits for a failed sync": {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewCrashable()
				var broken atomic.Bool
				cfg := config(vfs.Inject(disk, func(op vfs.Op) error {
					if broken.Load() && op.Kind == vfs.OpSync && isLogFile(op) {
						return vfs.ErrInjected
					}
					return nil
				}))
				cfg.SyncInterval, cfg.MarkDelay = c.interval, -1
				b := start(t, cfg)
				reason := errors.New("no room")
				b.journal.finish = func(context.Context) error { return reason }
				b.commit(t, 10, upTo(5)...)
				broken.Store(c.broken)
				err := b.Close(t.Context())
				kept := !c.broken || c.interval == 0
				if errors.Is(err, ErrNoLastCheckpoint) != kept || kept && !errors.Is(err, reason) {
					t.Errorf("Close = %v", err)
				}
				found, corrupt := outcome(t, clone(disk))
				if kept && (corrupt != nil || !slices.Equal(found, upTo(5))) {
					t.Errorf("after a power cut: %v, %v", found, corrupt)
				}
			})
		})
	}
}
