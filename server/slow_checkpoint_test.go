package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// TestSlowCheckpoints puts records on a disk in memory that syncs segments one by one and slowly.
// The log keeps its bound, and puts and writes of items go on.
func TestSlowCheckpoints(t *testing.T) {
	const (
		shards, writers = 100, 4
		sync1           = 5 * time.Millisecond // a checkpoint takes half a second
		file            = 1 << 20
		patience        = 10 * time.Second
	)
	disk := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".seg") {
			time.Sleep(sync1)
		}
		return nil
	})
	v := serve(t, server.Config{
		LogFileSize: file, Streams: []server.StreamSpec{{Name: "s", Shards: shards}},
	}, seam.OnFS(disk))
	v.createTable(t)
	var records []any
	for i := range 200 {
		records = append(records, map[string]any{
			"PartitionKey": fmt.Sprint(i), "Data": strings.Repeat("x", 1000),
		})
	}
	put := map[string]any{"StreamName": "s", "Records": records}
	lease := map[string]any{"TableName": "table", "Item": map[string]any{
		"k": map[string]any{"S": "lease"},
	}}
	var group sync.WaitGroup
	var stop atomic.Bool
	slowest := make([]time.Duration, writers+1)
	repeat := func(n int, target, ok string, in map[string]any) {
		for !stop.Load() && !t.Failed() {
			began := time.Now()
			code, body := ask(v.Server, target, in)
			if code != http.StatusOK || !strings.Contains(body, ok) {
				t.Errorf("%s: %d %.300s", target, code, body)
			}
			slowest[n] = max(slowest[n], time.Since(began))
		}
	}
	for n := range writers {
		group.Go(func() {
			repeat(n, "Kinesis_20131202.PutRecords", `"FailedRecordCount":0`, put)
		})
	}
	group.Go(func() { repeat(writers, "DynamoDB_20120810.PutItem", "", lease) })
	most := int64(0)
	for end := time.After(time.Minute); !stop.Load() && !t.Failed(); {
		use, err := v.DiskUse()
		if err != nil {
			t.Error(err)
		}
		most = max(most, use.Log)
		logged := of(scrape(t, v.get, v.endpoint), "runnel_log_bytes", "")
		stop.Store(logged > 30*file)
		select {
		case <-time.After(5 * time.Millisecond):
		case <-end:
			t.Errorf("only %.0f files are logged in a minute", logged/file)
		}
	}
	group.Wait()
	t.Logf("at most %.1f files; slowest: %v", float64(most)/file, slowest)
	if most > 16*file {
		t.Errorf("the log has had %.1f files, at most 16 wanted", float64(most)/file)
	}
	for n, took := range slowest {
		if took > patience {
			t.Errorf("caller %d has waited for %v", n, took)
		}
	}
}

// TestEndBesidePacedPuts: the end of a server answers the puts that wait for a checkpoint, whether
// Serve or Close comes first.
func TestEndBesidePacedPuts(t *testing.T) {
	text := strings.Repeat("x", 400_000)
	for name, c := range map[string]struct {
		put func(v *served) (code string)
		end func(v *served) error
	}{
		"Serve": {
			func(v *served) string { _, err := v.put(context.Background(), text); return code(err) },
			func(v *served) error { v.stop(); return v.ended() },
		},
		"Close": {
			func(v *served) string {
				_, body := ask(v.Server, "Kinesis_20131202.PutRecord", map[string]any{
					"StreamName": "s", "PartitionKey": "k", "Data": text,
				})
				return map[bool]string{true: "ok", false: body}[strings.Contains(body, "shardId-")]
			},
			func(v *served) error {
				go func() { _ = v.Close(context.Background()) }()
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := serveWithHungSegments(t)
			stop := make(chan struct{})
			ended := pacedPuts(t, stop, func() string { return c.put(v) })
			close(stop)
			if err := c.end(v); err != nil {
				t.Error(err)
			}
			select {
			case <-ended:
			case <-time.After(5 * time.Second):
				t.Error("puts still wait")
			}
		})
	}
}

// serveWithHungSegments returns a server whose first checkpoint lasts until the end of the test.
func serveWithHungSegments(t *testing.T) *served {
	t.Helper()
	hang := make(chan struct{})
	disk := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".seg") {
			<-hang
		}
		return nil
	})
	v := serve(t, server.Config{LogFileSize: 1 << 20}, seam.OnFS(disk))
	t.Cleanup(func() { close(hang) })
	return v
}

// pacedPuts puts records, and returns once all the puts wait. They end after stop.
func pacedPuts(t *testing.T, stop chan struct{}, put func() (code string)) (ended chan struct{}) {
	t.Helper()
	var group sync.WaitGroup
	var puts atomic.Int32
	for range 8 {
		group.Go(func() {
			for {
				if got := put(); got != "ok" {
					t.Errorf("a put: %.200s", got)
					return
				}
				puts.Add(1)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for before := int32(-1); before < puts.Load(); {
		before = puts.Load()
		time.Sleep(time.Second)
	}
	ended = make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	return ended
}
