package dynamo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// hangingDisk is a disk in memory whose syncs wait until release is closed, once hang is set.
type hangingDisk struct {
	vfs.FS
	hang    atomic.Bool
	release chan struct{}
}

func newHangingDisk() *hangingDisk {
	d := &hangingDisk{release: make(chan struct{})}
	d.FS = vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && d.hang.Load() {
			<-d.release
		}
		return nil
	})
	return d
}

// manyValues is the value of an attribute: a list of so many of the shortest values.
func manyValues(count int) string {
	return `{"L":[` + strings.Repeat(`{"NULL":true},`, count) + `{"NULL":true}]}`
}

// A long body whose write waits for a hanging disk stops no other long body, and keeps little more
// than itself in memory.
func TestLongBodiesWaitForTheDiskWithoutATurn(t *testing.T) {
	const writes, values = 12, 120_000 // more writes than turns; 240 KB each in the item's size
	for name, body := range map[string]string{
		"PutItem": `{"TableName":"leases","Item":{"leaseKey":{"S":"%d"},"v":` +
			manyValues(values) + `}}`,
		"UpdateItem": `{"TableName":"leases","Key":{"leaseKey":{"S":"%d"}},` +
			`"UpdateExpression":"SET v = :v","ExpressionAttributeValues":{":v":` +
			manyValues(values) + `}}`,
		"TransactWriteItems": `{"TransactItems":[{"Put":{"TableName":"leases","Item":` +
			`{"leaseKey":{"S":"%d"},"v":` + manyValues(values) + `}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			disk := newHangingDisk()
			s := startService(t, wal.Config{ // a log file takes all of them
				FS: disk, Dir: "data", FileSize: 8 << 20, Logger: quiet,
			})
			s.mustAsk(t, "CreateTable", leaseTable)
			bodies := make([]string, writes)
			for i := range bodies {
				bodies[i] = fmt.Sprintf(body, i)
			}
			before := heap()
			disk.hang.Store(true)
			var waiting sync.WaitGroup
			for i := range writes {
				waiting.Go(func() {
					if _, err := s.Serve(t.Context(), call(name, bodies[i])); err != nil {
						t.Error(err)
					}
				})
			}
			defer waiting.Wait()
			defer sync.OnceFunc(func() { close(disk.release) })()
			decided := func() int64 { return s.items.Inspect()[0].Items }
			for end := time.Now().Add(20 * time.Second); decided() < writes; {
				if time.Now().After(end) {
					t.Fatalf("%d of %d writes are decided", decided(), writes)
				}
				time.Sleep(time.Millisecond)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			long := `{"TableName":"leases","Key":{"leaseKey":{"N":"1"}}` + strings.Repeat(" ", longBody) + `}`
			if _, err := s.Serve(ctx, call("GetItem", long)); err == nil || ctx.Err() != nil {
				t.Errorf("another long body: %v", err)
			}
			// The frame in the log and the item in the table have 240 KB each; decoded it is 10 MB.
			if each := (heap() - before) / writes; each > 2<<20 {
				t.Errorf("a write that waits keeps %d KB", each>>10)
			} else {
				t.Logf("a write that waits keeps %d KB", each>>10)
			}
			runtime.KeepAlive(bodies)
		})
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // small
}

// Two services of one process have turns of their own.
func TestServicesHaveTheirOwnTurns(t *testing.T) {
	one, other := newService(t, vfs.NewMem(), "data"), newService(t, vfs.NewMem(), "data")
	for range turns {
		if _, _, err := one.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	long := `{"TableName":"leases"` + strings.Repeat(" ", longBody) + `}`
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := one.Serve(ended, call("DescribeTable", long))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a long body without a turn: %v", err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := other.Serve(limited, call("DescribeTable", long)); limited.Err() != nil {
		t.Errorf("the other service: %v", err)
	}
}
