package wal

import (
	"testing"
	"testing/synctest"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// However much is logged, the log takes no more room than a few of its files.
func TestDiskUseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		cfg := config(disk)
		b := start(t, cfg)
		most := int64(0)
		for range 100 { // a third of a file each
			b.commit(t, 1000, 0, 1, 2, 3, 4)
			synctest.Wait()
			b.journal.mu.Lock()
			b.journal.entries, b.journal.lsns, b.journal.visible = nil, nil, 0 // a small snapshot
			b.journal.mu.Unlock()
			use, err := b.DiskUse()
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, use.Log+use.Snapshots)
		}
		if most > 6*cfg.FileSize || most < 2*cfg.FileSize {
			t.Errorf("up to %d bytes, %d of a file", most, cfg.FileSize)
		}
		use, err := b.DiskUse()
		if info, statErr := disk.Stat("data/FORMAT"); err != nil || statErr != nil ||
			use.Log+use.Snapshots+info.Size() != disk.Used() || use.Log%cfg.FileSize != 0 {
			t.Errorf("DiskUse = %+v, %v; the disk has %d", use, err, disk.Used())
		}
		b.stop(t)
	})
}
