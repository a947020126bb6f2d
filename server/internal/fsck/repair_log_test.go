package fsck_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// breakLast damages the last record of each shard.
func breakLast(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	for _, shard := range []string{"1", "2"} {
		name := "data/shards/" + shard + "/00000000000000000001.seg"
		content := read(t, disk, name)
		content[len(content)-1] ^= 1
		write(t, disk, name, content)
	}
}

// removeOlder removes the older of two snapshots.
func removeOlder(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !wal.IsSnapshot(name) })
	if len(names) != 2 {
		t.Fatalf("there are the snapshots %v, want two", names)
	}
	if err := disk.Remove("data/" + names[0]); err != nil {
		t.Fatal(err)
	}
}

// The log behind the older snapshot still has the records of a damaged segment. A repair loses
// nothing then, also if the newest snapshot is whole.
func TestRecordsAreTakenFromTheLog(t *testing.T) {
	o := filled(t)[1]
	disk := o.clone(t)
	breakLast(t, disk)
	if report := o.mend(t, disk, "the last records"); len(report.Lost) != 0 || !report.Written {
		t.Errorf("%+v", report)
	}
}

// forgetBeginning removes the first log file, as a server reuses it later. No snapshot needs it.
func forgetBeginning(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	if err := disk.Remove("data/wal/000000000001.wal"); err != nil {
		t.Fatal(err)
	}
	sound(t, disk)
}

// In a young directory the log still has all records from the beginning on. A repair loses nothing
// then, also without any segment, and with one snapshot or two.
func TestRecordsAreTakenFromTheBeginningOfTheLog(t *testing.T) {
	for _, o := range filled(t) {
		disk := o.clone(t)
		for _, shard := range []string{"1", "2", "3"} {
			if err := disk.Remove("data/shards/" + shard + "/00000000000000000001.seg"); err != nil {
				t.Fatal(err)
			}
		}
		report := o.mend(t, disk, o.name+" without segments")
		if report == nil || len(report.Lost) != 0 || !report.Written {
			t.Errorf("%s: %+v", o.name, report)
		}
		o.goOn(t, disk, o.name+" without segments")
	}
}

// Damage to the log's beginning makes the repair no worse than one from a snapshot.
func TestRecordsAreTakenFromTheBestBase(t *testing.T) {
	o := filled(t)[1]
	for _, c := range []struct {
		name string
		hurt func(disk *vfs.Mem)
		lost int
	}{
		{"the beginning", func(*vfs.Mem) {}, 0},
		{"and the last records", func(disk *vfs.Mem) { breakLast(t, disk) }, 0}, // older snapshot
		{"and a first record", func(disk *vfs.Mem) {
			flipIn(t, disk, "shards/1/00000000000000000001.seg", 40)
		}, 1},
	} {
		disk := o.clone(t)
		for at := int64(4096); at < 12<<10; at += 64 {
			flipIn(t, disk, "wal/000000000001.wal", at)
		}
		c.hurt(disk)
		report := o.mend(t, disk, c.name)
		if report != nil && len(report.Lost)+len(report.Saved) != c.lost {
			t.Errorf("%s: want %d losses: %+v", c.name, c.lost, report)
		}
	}
}

func flipIn(t *testing.T, disk *vfs.Mem, name string, at int64) {
	t.Helper()
	content := read(t, disk, "data/"+name)
	content[at] ^= 1
	write(t, disk, "data/"+name, content)
}

// Records go on behind a lost last record of a shard, in another segment.
func TestRecordsAfterALostLastOne(t *testing.T) {
	o := filled(t)[1]
	disk := o.clone(t)
	forgetBeginning(t, disk)
	removeOlder(t, disk)
	breakLast(t, disk)
	if report := o.mend(t, disk, "the last records"); len(report.Lost) != 2 {
		t.Fatalf("%+v", report)
	}
	o.goOn(t, disk, "the last records")
	report, out := text(t, disk)
	if report.Records.Lost != 2 || !strings.Contains(out, "2 records are lost, which an earlier") ||
		len(report.Lists) != 1 || !strings.Contains(out, "\nsound: everything is there but the losses "+
		"of an earlier repair, which "+report.Lists[0]+" lists\n") ||
		report.Records.Count != 110-2+12 {
		t.Errorf("%+v\n%s", report.Records, out)
	}
}
