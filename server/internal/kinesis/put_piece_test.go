package kinesis

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
)

// largePut is a PutRecords of 20 records of 500 KiB each, more than the log takes while it cannot
// write.
type largePut struct {
	in   putRecordsInput
	out  *putRecordsOutput
	err  error
	done sync.WaitGroup
}

func (n *node) putLarge(stream string) *largePut {
	n.t.Helper()
	p := new(largePut)
	p.in.StreamName = &stream
	for i := range 20 {
		key := fmt.Sprintf("large %d", i)
		p.in.Records = append(p.in.Records,
			wire.PutEntry{Data: make([]byte, 500<<10), PartitionKey: &key})
	}
	n.must(n.plans["PutRecords"].validate(&p.in))
	p.in.origin = &wire.Origin{Began: bootclock.Now()}
	p.done.Go(func() {
		out, err := n.putRecords(n.ctx, n.world, &p.in)
		p.out, _ = out.(*putRecordsOutput)
		p.err = err
	})
	synctest.Wait()
	return p
}

// stored returns the number of its first records that were stored, and fails if others were.
func (p *largePut) stored(t *testing.T) int {
	t.Helper()
	p.done.Wait()
	if p.err != nil {
		t.Fatal(p.err)
	}
	results := p.out.results
	n := slices.IndexFunc(results, func(r putResult) bool { return r.code != "" })
	if n < 0 {
		return len(results)
	}
	for i, r := range results[n:] {
		if r.code != codeRecordInternal || !strings.Contains(r.message, "was not stored") {
			t.Errorf("record %d: %q %s; want %s", n+i, r.code, r.message, codeRecordInternal)
		}
	}
	return n
}

func (n *node) keys(stream string) []string {
	records, _ := n.drain(stream, "0")
	keys := make([]string, len(records))
	for i, r := range records {
		keys[i] = r.PartitionKey
	}
	return keys
}

// A small put comes between the pieces of a large one.
func TestSmallPutsBetweenPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedFS{Mem: vfs.NewMem()}
		n := startNode(t, disk)
		n.create("orders", 1)
		disk.shut()
		large := n.putLarge("orders")
		var small sync.WaitGroup
		small.Go(func() { n.put("orders", "small", "x") })
		synctest.Wait()
		disk.release()
		small.Wait()
		if stored := large.stored(t); stored != 20 {
			t.Errorf("%d of 20 records were stored", stored)
		}
		keys := n.keys("orders")
		at := slices.Index(keys, "small")
		if len(keys) != 21 || at <= 0 || at == 20 {
			t.Errorf("the small record is number %d of %d", at+1, len(keys))
		}
		keys = slices.Delete(keys, at, at+1)
		for i, key := range keys {
			if want := fmt.Sprintf("large %d", i); key != want {
				t.Errorf("record %d is %q, want %q", i, key, want)
			}
		}
		n.stop()
	})
}

// The pieces of a large put that cannot be stored any more fail by themselves: the first ones are
// stored, and the answer says which.
func TestPiecesThatAreNotStored(t *testing.T) {
	for name, meanwhile := range map[string]func(n *node){
		"too late": func(*node) { time.Sleep(seam.H() + time.Second) },
		"its stream is deleted": func(n *node) {
			go func() { _, _ = n.try("DeleteStream", m{"StreamName": "orders"}) }()
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &gatedFS{Mem: vfs.NewMem()}
				n := startNode(t, disk)
				n.create("orders", 1)
				disk.shut()
				large := n.putLarge("orders")
				meanwhile(n)
				disk.release()
				stored := large.stored(t)
				if stored == 0 || stored == 20 {
					t.Errorf("%d of 20 records were stored", stored)
				}
				if name == "too late" {
					if got := len(n.keys("orders")); got != stored {
						t.Errorf("the answer has %d stored records, the shard %d", stored, got)
					}
				}
				n.stop()
			})
		})
	}
}

// Records that a limit refuses have its message, also those behind the piece that was stored last.
func TestThrottledRecordsBehindTheLastPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedFS{Mem: vfs.NewMem()}
		n := startNode(t, disk, withLimits(t, "write-bytes=9MiB"))
		n.create("orders", 1)
		disk.shut()
		large := n.putLarge("orders")
		time.Sleep(seam.H() + time.Second) // too late for the pieces that wait
		disk.release()
		large.done.Wait()
		throttled := 0
		for i, r := range large.out.results {
			if r.code == codeThrottled {
				throttled++
			}
			if r.code != "" && r.message == "" {
				t.Errorf("record %d has %s without a message", i, r.code)
			}
		}
		if throttled == 0 {
			t.Error("no record was throttled")
		}
		n.stop()
	})
}
