package server_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// smallDisk mounts a file system in memory of so many bytes; only root may.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("SKIP: a small file system cannot be mounted here: %v (root may)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestARealFullDisk fills a real file system: acknowledged records stay and can be read, puts are
// refused for as long as there is no room, and go on by themselves when there is.
func TestARealFullDisk(t *testing.T) {
	disk := smallDisk(t, "6m")
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := server.Config{Dir: filepath.Join(disk, "data"), LogFileSize: 256 << 10}
	var acknowledged []uint64
	t.Run("fill", func(t *testing.T) {
		v := serve(t, cfg)
		next := uint64(0)
		put := func() error {
			data := binary.LittleEndian.AppendUint64(make([]byte, 0, 20<<10), next)
			_, err := v.PutRecord(t.Context(), &kinesis.PutRecordInput{
				StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: data[:20<<10],
			})
			if err == nil {
				acknowledged = append(acknowledged, next)
			}
			next++
			return err
		}
		refused := refusal(t, put)
		t.Logf("%d records of 20 KiB, then: %v", len(acknowledged), refused)
		if len(acknowledged) < 50 {
			t.Errorf("only %d records found room", len(acknowledged))
		}
		checkNumbers(t, v.stored(t), acknowledged)
		within(t, 10*time.Second, func() bool {
			code, text := v.health(t)
			return code == http.StatusServiceUnavailable && strings.Contains(text, "no space left")
		})
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		within(t, 20*time.Second, func() bool { return put() == nil })
		for range 20 {
			if err := put(); err != nil {
				t.Errorf("with room again: %v", err)
			}
		}
		checkNumbers(t, v.stored(t), acknowledged)
		within(t, 10*time.Second, func() bool {
			code, _ := v.health(t)
			return code == http.StatusOK
		})
		within(t, 10*time.Second, func() bool { // records wait a moment for others in a segment
			use, err := v.DiskUse()
			t.Logf("DiskUse = %+v, %v", use, err)
			return err == nil && use.Records >= int64(len(acknowledged))*20<<10 && use.Log >= 256<<10
		})
		v.stop()
		if err := v.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	checkNumbers(t, serve(t, cfg).stored(t), acknowledged)
}

func (v *served) health(t *testing.T) (int, string) {
	t.Helper()
	response, err := http.Get(v.endpoint + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// refusal puts until nothing finds room.
func refusal(t *testing.T, put func() error) error {
	t.Helper()
	var refused error
	for range 1000 {
		if err := put(); err != nil {
			if refused != nil {
				return errors.Join(refused, err)
			}
			refused = err
		}
	}
	t.Fatal("the disk is not full after 20 MB")
	return nil
}

// within waits until a condition holds.
func within(t *testing.T, limit time.Duration, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(limit); !holds(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it does not go on")
		}
	}
}

// checkNumbers compares the records' numbers, in order. A refused record may be there or not: its
// outcome is unknown.
func checkNumbers(t *testing.T, stored []string, acknowledged []uint64) {
	t.Helper()
	next := 0
	for _, data := range stored {
		number := binary.LittleEndian.Uint64([]byte(data))
		if next < len(acknowledged) && number == acknowledged[next] {
			next++
		}
	}
	if next != len(acknowledged) {
		t.Errorf("%d records were acknowledged, only the first %d are there",
			len(acknowledged), next)
	}
}

// fillItems writes items until they are refused for a while: an attempt to make a snapshot takes
// the space for a moment.
func (v *served) fillItems(t *testing.T) {
	t.Helper()
	refused := 0
	for i := range 1000 {
		code, body := ask(v.Server, "DynamoDB_20120810.PutItem", map[string]any{
			"TableName": "table", "Item": map[string]any{
				"k": map[string]any{"S": strconv.Itoa(i)},
				"x": map[string]any{"S": strings.Repeat("x", 20<<10)},
			},
		})
		if code == http.StatusOK {
			continue
		}
		if code != 400 || !strings.Contains(body, "ProvisionedThroughputExceeded") {
			t.Errorf("a refused item: %d %s", code, body)
		}
		if refused++; refused == 60 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the disk is not full after 20 MB of items")
}

// createTable makes the table t.
func (v *served) createTable(t *testing.T) {
	t.Helper()
	code, body := ask(v.Server, "DynamoDB_20120810.CreateTable", map[string]any{
		"TableName": "table", "BillingMode": "PAY_PER_REQUEST",
		"KeySchema":            []any{map[string]any{"AttributeName": "k", "KeyType": "HASH"}},
		"AttributeDefinitions": []any{map[string]any{"AttributeName": "k", "AttributeType": "S"}},
	})
	if code != http.StatusOK {
		t.Fatal(body)
	}
}

// fillRecords puts records until they are refused.
func (v *served) fillRecords(t *testing.T) {
	t.Helper()
	refused := 0
	for range 2000 {
		code, body := ask(v.Server, "Kinesis_20131202.PutRecord", map[string]any{
			"StreamName": "s", "PartitionKey": "k",
			"Data": base64.StdEncoding.EncodeToString(make([]byte, 20<<10)),
		})
		if code == http.StatusOK {
			continue
		}
		if code != 400 || !strings.Contains(body, "ProvisionedThroughputExceeded") {
			t.Errorf("a refused record: %d %s", code, body)
		}
		if refused++; refused == 20 {
			return
		}
	}
	t.Fatal("the disk is not full after 40 MB of records")
}

// TestAFullDiskIsEmptiedFromInside fills a real disk with records and items. Then it is restarted
// ten times, and takes no more space. A deletion of the stream, or of the table, makes room, and
// everything goes on.
func TestAFullDiskIsEmptiedFromInside(t *testing.T) {
	for name, c := range map[string]struct {
		fill   func(v *served, t *testing.T)
		target string
		in     map[string]any
	}{
		"records": {
			fill:   func(v *served, t *testing.T) { v.fillRecords(t); v.fillItems(t) },
			target: "Kinesis_20131202.DeleteStream",
			in:     map[string]any{"StreamName": "s"},
		},
		"items": {
			fill:   func(v *served, t *testing.T) { v.fillItems(t) },
			target: "DynamoDB_20120810.DeleteTable",
			in:     map[string]any{"TableName": "table"},
		},
	} {
		for _, restarts := range []int{0, 10} {
			t.Run(fmt.Sprintf("%s, %d restarts", name, restarts), func(t *testing.T) {
				t.Parallel() // they wait most of the time
				disk := smallDisk(t, "12m")
				cfg := server.Config{
					Dir: filepath.Join(disk, "data"), LogFileSize: 1 << 20, StreamDelay: -1,
				}
				life := func() *served { return serve(t, cfg, seam.OnFS(vfs.OS{})) }
				v := life()
				v.createTable(t)
				c.fill(v, t)
				full, err := v.DiskUse()
				if err != nil {
					t.Fatal(err)
				}
				for range restarts {
					v.stop()
					_ = v.Close(context.WithoutCancel(t.Context())) // there is no room for a snapshot
					v = life()
					// An attempt to make a file or a snapshot may be under way. Once, the log may take
					// the space of records that a start writes again.
					within(t, 10*time.Second, func() bool {
						use, err := v.DiskUse()
						t.Logf("%+v, %v; full: %+v", use, err, full)
						return err == nil && use.Log <= full.Log+cfg.LogFileSize
					})
				}
				within(t, 10*time.Second, func() bool { // the segments' writer may be at work
					code, body := ask(v.Server, c.target, c.in)
					t.Log(code, body)
					return code == http.StatusOK
				})
				within(t, 20*time.Second, func() bool {
					code, _ := v.health(t)
					return code == http.StatusOK
				})
				if code, body := ask(v.Server, "Kinesis_20131202.CreateStream",
					map[string]any{"StreamName": "new", "ShardCount": 1}); code != http.StatusOK {
					t.Error(body)
				}
			})
		}
	}
}
