package backup_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/backup"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// engine is a log with records and the least catalogue that there can be. Segments hold four of its
// records.
type engine struct {
	t     *testing.T
	disk  *vfs.Mem
	log   *wal.Log
	store *shardlog.Store
	mu    sync.Mutex
	ms    int64 // of the clock
}

func open(t *testing.T, disk *vfs.Mem) *engine {
	t.Helper()
	e := &engine{t: t, disk: disk, ms: 1000}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	e.log, err = wal.Open(wal.Config{FS: disk, Dir: "data", FileSize: 1 << 20, Logger: quiet})
	e.must(err)
	e.store, err = shardlog.New(shardlog.Config{
		Log: e.log, FS: disk, Dir: "data", SegmentSize: 4 << 10, Logger: quiet,
		Now: func() time.Time {
			e.mu.Lock()
			defer e.mu.Unlock()
			return time.UnixMilli(e.ms)
		},
	})
	e.must(err)
	e.log.Register(wal.KindCatalogue, creations{e})
	e.must(e.log.Start(t.Context()))
	e.must(e.store.Begin(t.Context()))
	t.Cleanup(func() {
		e.must(errors.Join(e.log.Close(context.WithoutCancel(t.Context())), e.store.Close()))
	})
	return e
}

func (e *engine) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// creations is the catalogue: its changes are the ids of new shards.
type creations struct{ e *engine }

func (c creations) Restore([]byte) error { return nil }

func (c creations) Replay(_ wal.LSN, payload []byte) error {
	c.e.store.Create(shardlog.ID(binary.LittleEndian.Uint64(payload)))
	return nil
}

func (c creations) Freeze() func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte{}, nil }
}

// put appends records to a shard at a time in ms, and makes the shard if it is not there.
func (e *engine) put(id shardlog.ID, ms int64, count int) {
	e.t.Helper()
	e.mu.Lock()
	e.ms = ms
	e.mu.Unlock()
	entry := shardlog.Entry{PartitionKey: "k", Data: []byte(strings.Repeat("x", 1000))}
	e.must(e.log.Sequence(e.t.Context(), 8, func(tx *wal.Tx) {
		if e.store.Shard(id) == nil {
			e.store.Create(id)
			tx.Append(wal.KindCatalogue, binary.LittleEndian.AppendUint64(nil, uint64(id)), nil)
		}
	}))
	for range count {
		var lsn wal.LSN
		var failed error
		one := []shardlog.Entry{entry}
		e.must(e.log.Sequence(e.t.Context(), shardlog.BatchSize(one), func(tx *wal.Tx) {
			_, lsn, failed = e.store.Shard(id).Append(tx, one)
		}))
		e.must(errors.Join(failed, e.log.Wait(e.t.Context(), lsn)))
	}
}

// checkpoint writes all records into segments, and a snapshot that names them.
func (e *engine) checkpoint() { e.t.Helper(); e.must(e.log.Checkpoint(e.t.Context())) }

// expire trims the records before a time, and waits until the segment that begins with a record is
// gone.
func (e *engine) expire(id shardlog.ID, ms int64, gone uint64) {
	e.t.Helper()
	e.must(e.store.Trim(e.t.Context(), id, ms))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		_, err := e.disk.Stat(segment(id, gone))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil || time.Now().After(end) {
			e.t.Fatalf("%s is not removed: %v", segment(id, gone), err)
		}
	}
}

// indexes returns the records that can be read, as "shard index".
func (e *engine) indexes() (found []string) {
	e.t.Helper()
	for id := shardlog.ID(1); id <= 2; id++ {
		sh := e.store.Shard(id)
		if sh == nil {
			continue
		}
		oldest, next := sh.Bounds()
		for from := oldest; from < next; {
			records, err := sh.Read(e.t.Context(), from, 100, 1<<20)
			e.must(err)
			for _, r := range records {
				found = append(found, fmt.Sprintf("%d %d", id, r.Index))
			}
			from += uint64(len(records))
		}
	}
	return found
}

func segment(id shardlog.ID, first uint64) string {
	return fmt.Sprintf("data/shards/%d/%020d.seg", id, first)
}

// target is a copy in memory. puts counts the copies of each segment.
type target struct {
	disk *vfs.Mem
	puts map[string]int
}

func (c *target) Put(name string, _ fs.FileMode, size int64, r io.Reader) error {
	name = path.Join("data", name)
	if strings.HasSuffix(name, ".seg") {
		c.puts[name]++
	}
	content, err := io.ReadAll(io.LimitReader(r, size))
	if err == nil {
		err = c.disk.MkdirAll(path.Dir(name))
	}
	if err != nil {
		return err
	}
	file, err := c.disk.Create(name)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(content, 0)
	return errors.Join(err, file.Sync(), file.Close())
}

// TestTheLastPass changes segments behind the first pass of a backup, and during the last one. A
// checkpoint makes the snapshot name the bytes that only the last pass can copy. The copy serves
// every record.
func TestTheLastPass(t *testing.T) {
	const hold = "data/backup/LOCK"
	for name, c := range map[string]struct {
		at   vfs.OpKind // the operation of the last pass before which the second change comes
		file string
		then func(e *engine)
		want map[string]int // copies of segments
	}{
		"grown and begun": {
			at: vfs.OpLock, file: hold,
			then: func(*engine) {},
			want: map[string]int{
				segment(1, 1): 1, segment(1, 5): 1, segment(1, 9): 2, segment(1, 13): 1,
				segment(2, 1): 1,
			},
		},
		"expired before it": {
			at: vfs.OpLock, file: hold,
			then: func(e *engine) { e.expire(1, 1500, 5); e.checkpoint() },
			want: map[string]int{
				segment(1, 1): 1, segment(1, 5): 1, segment(1, 9): 2, segment(1, 13): 1,
				segment(2, 1): 1,
			},
		},
		"expired once it is listed": {
			at: vfs.OpStat, file: segment(1, 5),
			then: func(e *engine) { e.expire(1, 1500, 5) },
			want: map[string]int{
				segment(1, 1): 1, segment(1, 5): 1, segment(1, 9): 2, segment(1, 13): 1,
				segment(2, 1): 1,
			},
		},
		"grown, then expired in front of its copy": {
			at: vfs.OpOpen, file: segment(1, 9),
			then: func(e *engine) { e.put(1, 3000, 6); e.expire(1, 2500, 9) },
			want: map[string]int{
				segment(1, 1): 1, segment(1, 5): 1, segment(1, 9): 1, segment(2, 1): 1,
			},
		},
		"begun, then expired in front of its copy": {
			at: vfs.OpOpen, file: segment(1, 13),
			then: func(e *engine) { e.put(1, 3000, 6); e.expire(1, 2500, 13) },
			want: map[string]int{
				segment(1, 1): 1, segment(1, 5): 1, segment(1, 9): 2, segment(2, 1): 1,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, vfs.NewMem())
			e.put(1, 1000, 10)
			e.checkpoint()
			last := false
			hook := func(op vfs.Op) error {
				if !last && op.Kind == vfs.OpLock && op.Name == hold {
					last = true
					e.put(1, 2000, 6)
					e.put(2, 2000, 3)
					e.checkpoint()
				}
				if last && c.then != nil && op.Kind == c.at && op.Name == c.file {
					c.then(e)
					c.then = nil
				}
				return nil
			}
			to := &target{disk: vfs.NewMem(), puts: map[string]int{}}
			report, err := backup.Run(t.Context(), vfs.Inject(e.disk, hook), "data", to)
			if err != nil || report.Attempts != 1 || c.then != nil {
				t.Fatalf("%+v, %v; the second change came: %v", report, err, c.then == nil)
			}
			for file, count := range c.want {
				if to.puts[file] != count {
					t.Errorf("%s was copied %d times, not %d", file, to.puts[file], count)
				}
			}
			got, want := open(t, to.disk).indexes(), e.indexes()
			if !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("the copy has %v, want %v", got, want)
			}
		})
	}
}

// discards is a target that copies as the others do, and keeps nothing.
type discards struct{}

func (discards) Put(_ string, _ fs.FileMode, size int64, r io.Reader) error {
	if n, err := io.CopyN(io.Discard, r, size); err != nil || n < size {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// TestTheServerStartsMeanwhile: a start cuts a segment back between two steps of its copy. The error
// names the remedy.
func TestTheServerStartsMeanwhile(t *testing.T) {
	e := open(t, vfs.NewMem())
	e.put(1, 1000, 3)
	e.checkpoint()
	cut := false
	disk := vfs.Inject(e.disk, func(op vfs.Op) error {
		if cut || op.Kind != vfs.OpOpen || op.Name != segment(1, 1) {
			return nil
		}
		cut = true
		file, err := e.disk.Open(op.Name)
		e.must(err)
		e.must(errors.Join(file.Truncate(100), file.Close()))
		return nil
	})
	_, err := backup.Run(t.Context(), disk, "data", discards{})
	if err == nil || !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("%v", err)
	}
}

// TestAnotherBackupEnds: between the making of the hold's folder and the lock, another backup ends
// and removes the folder. The backup waits, as for any other.
func TestAnotherBackupEnds(t *testing.T) {
	const folder = "data/" + wal.HoldFolder
	e := open(t, vfs.NewMem())
	e.put(1, 1000, 10)
	ended := false
	hook := func(op vfs.Op) error {
		if !ended && op.Kind == vfs.OpLock && op.Name == folder+"/LOCK" {
			ended = true
			e.must(e.disk.Remove(folder))
		}
		return nil
	}
	to := &target{disk: vfs.NewMem(), puts: map[string]int{}}
	if _, err := backup.Run(t.Context(), vfs.Inject(e.disk, hook), "data", to); err != nil || !ended {
		t.Errorf("%v; another backup ended: %v", err, ended)
	}
}
