package server_test

import (
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
