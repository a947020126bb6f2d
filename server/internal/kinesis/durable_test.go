package kinesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
)

// gatedFS is a file system that holds syncs back while the gate is shut.
type gatedFS struct {
	*vfs.Mem
	mu   sync.Mutex
	gate chan struct{} // closed when it opens; nil while it is open
}

type gatedFile struct {
	vfs.File
	fs *gatedFS
}

func (g *gatedFS) Create(name string) (vfs.File, error) {
	f, err := g.Mem.Create(name)
	return &gatedFile{f, g}, err
}

func (g *gatedFS) Open(name string) (vfs.File, error) {
	f, err := g.Mem.Open(name)
	return &gatedFile{f, g}, err
}

func (f *gatedFile) Sync() error {
	f.fs.mu.Lock()
	gate := f.fs.gate
	f.fs.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return f.File.Sync()
}

func (g *gatedFS) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = make(chan struct{})
}

func (g *gatedFS) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.gate)
	g.gate = nil
}

// While a sync hangs, no call shows anything that a crash would lose. Records are not read yet, and
// a stream is shown as it was. Calls that change the catalogue, or ask for a stream that may not be
// there, do not answer. Reads of an existing stream never wait, and say that there is more to come.
// A power loss at this moment takes all of it back; otherwise all of it is there once the sync is
// done.
func TestNothingIsVisibleBeforeItIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedFS{Mem: vfs.NewCrashable()}
		n := startNode(t, disk)
		n.create("orders", 1)
		n.put("orders", "k", "one")
		oldest := n.iterator("orders", "0", "TRIM_HORIZON")

		disk.shut()
		answered := map[string]bool{}
		var mu sync.Mutex
		var calls sync.WaitGroup
		start := func(name, operation string, in m) {
			calls.Go(func() {
				_, err := n.try(operation, in)
				mu.Lock()
				defer mu.Unlock()
				answered[name] = true
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		start("put", "PutRecord", m{"StreamName": "orders", "PartitionKey": "k", "Data": []byte("two")})
		if got := n.get(oldest, 0); got.data() != "one" || got.MillisBehindLatest != 1 {
			t.Errorf("before the sync the shard shows %+v", got)
		}
		latest := n.iterator("orders", "0", "LATEST")
		start("create", "CreateStream", m{"StreamName": "new", "ShardCount": 1})
		start("list streams", "ListStreams", m{})
		start("split", "SplitShard",
			m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"})
		start("summary", "DescribeStreamSummary", m{"StreamName": "new"})
		if got := len(n.list("orders")); got != 1 {
			t.Errorf("before the split is synced there are %d shards", got)
		}
		if got := n.get(latest, 0); got.data() != "" || got.MillisBehindLatest != 1 {
			t.Errorf("at the tip, with the end of the shard on its way to the disk, it shows %+v", got)
		}
		mu.Lock()
		if len(answered) != 0 {
			t.Errorf("before the sync these calls were answered: %v", answered)
		}
		mu.Unlock()

		for seed := range uint64(5) {
			left := startNode(t, disk.Crash(rand.New(rand.NewPCG(seed, 0))))
			checkShape(t, left.list("orders"))
			records, last := left.drain("orders", "0")
			if len(records) == 0 || string(records[0].Data) != "one" {
				t.Errorf("seed %d: after a power loss there are %v, %v", seed, records, last)
			}
			left.stop()
		}

		disk.release()
		calls.Wait()
		if len(answered) != 5 {
			t.Errorf("after the sync only these calls are answered: %v", answered)
		}
		if got := len(n.list("orders")); got != 3 {
			t.Errorf("after the sync there are %d shards", got)
		}
		if got := n.get(oldest, 0); got.data() != "one two" || len(got.ChildShards) != 2 {
			t.Errorf("after the sync the shard shows %+v", got)
		}
		if got := n.get(latest, 0); got.data() != "two" {
			t.Errorf("LATEST from before the sync reads %+v", got)
		}
		n.stop()
	})
}

// A call returns if its context ends while it waits for the disk. Its change is either there or
// not.
func TestCancelledPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedFS{Mem: vfs.NewCrashable()}
		n := startNode(t, disk)
		n.create("orders", 1)
		disk.shut()
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		var calls sync.WaitGroup
		calls.Go(func() {
			_, err = n.raw(ctx, "PutRecord", `{"StreamName":"orders","PartitionKey":"k","Data":""}`)
		})
		synctest.Wait()
		cancel()
		calls.Wait()
		if err == nil {
			t.Error("a put is acknowledged before it is durable")
		}
		disk.release()
		synctest.Wait()
		if records, _ := n.drain("orders", "0"); len(records) != 1 {
			t.Errorf("the cancelled put left %d records", len(records))
		}
		n.stop()
	})
}

// Once a sync has failed nothing is acknowledged any more; earlier data can still be read.
func TestPoisonedLog(t *testing.T) {
	disk := &failingFS{Mem: vfs.NewMem()}
	n := startNode(t, disk)
	n.create("orders", 1)
	n.put("orders", "k", "one")
	disk.fail.Store(true)
	for _, operation := range []string{"PutRecord", "CreateStream"} {
		name := map[string]string{"PutRecord": "orders", "CreateStream": "new"}[operation]
		_, err := n.try(operation,
			m{"StreamName": name, "ShardCount": 1, "PartitionKey": "k", "Data": ""})
		if err == nil || errors.As(err, new(*wire.Error)) {
			t.Errorf("%s is acknowledged on a broken disk", operation)
		}
	}
	if got := n.get(n.iterator("orders", "0", "TRIM_HORIZON"), 0).data(); got != "one" {
		t.Errorf("the broken disk's records are %q", got)
	}
	if got := fmt.Sprint(n.call("ListStreams", m{})["StreamNames"]); got != "[orders]" {
		t.Errorf("the broken disk's streams are %s", got)
	}
}
