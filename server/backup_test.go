package server_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/runnel-stream/runnel/server"
)

// load writes records and items to a server until it is stopped.
type load struct {
	v     *served
	acked []atomic.Int64 // the newest acknowledged number of each writer
	stop  chan struct{}
	once  sync.Once // closes stop
	done  sync.WaitGroup
}

const backupWriters = 6

func startLoad(t *testing.T, v *served) *load {
	t.Helper()
	l := &load{v: v, acked: make([]atomic.Int64, backupWriters), stop: make(chan struct{})}
	for w := range backupWriters {
		l.done.Go(func() { l.write(t, w) })
	}
	return l
}

// write puts the numbers 1, 2, … of a writer as records of its key and as its item.
func (l *load) write(t *testing.T, w int) {
	filler := strings.Repeat("x", 4<<10)
	for n := int64(1); ; n++ {
		select {
		case <-l.stop:
			return
		default:
		}
		data := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", w, n, filler))
		code, body := ask(l.v.Server, "Kinesis_20131202.PutRecord", map[string]any{
			"StreamName": "s", "PartitionKey": fmt.Sprint("k", w), "Data": data,
		})
		if code == http.StatusOK {
			code, body = ask(l.v.Server, "DynamoDB_20120810.PutItem", map[string]any{
				"TableName": "table", "Item": map[string]any{
					"k": map[string]any{"S": fmt.Sprint(w)}, "n": map[string]any{"N": fmt.Sprint(n)},
					"filler": map[string]any{"S": filler}, // for items in files of their own
				},
			})
		}
		if code != http.StatusOK {
			t.Error(code, body)
			return
		}
		l.acked[w].Store(n)
	}
}

func (l *load) end() {
	l.once.Do(func() { close(l.stop) })
	l.done.Wait()
}

// TestBackupsUnderLoad backs a server up ten times while it writes as fast as it can and makes a
// checkpoint every few milliseconds. Each copy is sound, and has every record and item that was
// acknowledged before its backup began, in order and without gaps.
func TestBackupsUnderLoad(t *testing.T) {
	if underRace {
		t.Skip("the detector makes the copies slower than the writers")
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	v := serve(t, server.Config{
		Dir: data, LogFileSize: 256 << 10, Streams: []server.StreamSpec{{Name: "s", Shards: 3}},
	})
	v.createTable(t)
	l := startLoad(t, v)
	defer l.end()
	within(t, 20*time.Second, func() bool { return l.acked[0].Load() > 100 })
	before := make([][]int64, 10)
	copies := make([]string, 10)
	for i := range before {
		for w := range backupWriters {
			before[i] = append(before[i], l.acked[w].Load())
		}
		name := fmt.Sprintf("copy-%d%s", i, []string{"", ".tar.zst", ".tar.gz"}[i%3])
		report, err := server.Backup(t.Context(), data, filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", *report)
		copies[i] = filepath.Join(dir, name)
	}
	l.end()
	for i, name := range copies {
		if strings.Contains(name, ".tar.") {
			copies[i] = filepath.Join(dir, fmt.Sprint("unpacked-", i))
			unpack(t, name, copies[i])
		}
		if files, err := os.ReadDir(filepath.Join(copies[i], "items")); len(files) == 0 {
			t.Errorf("the copy has no files of items: %v", err)
		}
		checkCopy(t, copies[i], before[i])
	}
	if _, err := os.Stat(filepath.Join(data, "backup")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the backup has left something: %v", err)
	}
}

// checkCopy starts a server on a copy and compares its content with the acknowledged numbers.
func checkCopy(t *testing.T, copied string, before []int64) {
	t.Helper()
	report, err := server.Check(t.Context(), copied)
	if err != nil || !report.OK {
		t.Fatalf("the copy is not sound: %v, %+v", err, report)
	}
	s, err := server.Open(t.Context(), server.Config{Dir: copied, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	last := make([]int64, backupWriters)
	for shard := range 3 {
		for _, data := range recordsOf(t, s, shard) {
			var w int
			var n int64
			if _, err := fmt.Sscan(data, &w, &n); err != nil || n != last[w]+1 {
				t.Fatalf("record %.20q after %d, %v", data, last[w], err)
			}
			last[w] = n
		}
	}
	for w, n := range before {
		if last[w] < n {
			t.Errorf("writer %d: %d were acknowledged, the copy has %d", w, n, last[w])
		}
		if got := copiedItem(t, s, w); got < n || got > last[w] {
			t.Errorf("writer %d: item %d, with %d acknowledged and %d records", w, got, n, last[w])
		}
	}
	// Clients may have seen the numbers of records behind the copy.
	code, body := ask(s, "Kinesis_20131202.PutRecord",
		map[string]any{"StreamName": "s", "PartitionKey": "k0", "Data": ""})
	if code != http.StatusOK {
		t.Errorf("a put on the copy: %s", body)
	}
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// recordsOf returns the data of all records of a shard.
func recordsOf(t *testing.T, s *server.Server, shard int) (all []string) {
	t.Helper()
	_, body := ask(s, "Kinesis_20131202.GetShardIterator", map[string]any{
		"StreamName": "s", "ShardId": fmt.Sprintf("shardId-%012d", shard),
		"ShardIteratorType": "TRIM_HORIZON",
	})
	var at struct{ ShardIterator string }
	if err := json.Unmarshal([]byte(body), &at); err != nil {
		t.Fatal(body)
	}
	for {
		_, body := ask(s, "Kinesis_20131202.GetRecords",
			map[string]any{"ShardIterator": at.ShardIterator})
		var page struct {
			Records            []struct{ Data []byte }
			NextShardIterator  string
			MillisBehindLatest *int64
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || page.MillisBehindLatest == nil {
			t.Fatal(body)
		}
		for _, record := range page.Records {
			all = append(all, string(record.Data))
		}
		if *page.MillisBehindLatest == 0 {
			return all
		}
		at.ShardIterator = page.NextShardIterator
	}
}

// copiedItem returns the number in a writer's item.
func copiedItem(t *testing.T, s *server.Server, w int) int64 {
	t.Helper()
	_, body := ask(s, "DynamoDB_20120810.GetItem", map[string]any{
		"TableName": "table", "Key": map[string]any{"k": map[string]any{"S": fmt.Sprint(w)}},
	})
	var got struct {
		Item struct {
			N struct {
				N int64 `json:",string"`
			} `json:"n"`
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(body, err)
	}
	return got.Item.N.N
}

// unpack unpacks a packed backup as tar does.
func unpack(t *testing.T, name, to string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var unpacked io.Reader
	if strings.HasSuffix(name, ".gz") {
		unpacked, err = gzip.NewReader(file)
	} else {
		unpacked, err = zstd.NewReader(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(unpacked); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		full := filepath.Join(to, header.Name)
		content, err := io.ReadAll(in)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(full), 0o755),
				os.WriteFile(full, content, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupRefuses: a backup overwrites nothing, changes nothing when it fails, and knows what is no
// data directory.
func TestBackupRefuses(t *testing.T) {
	dir := t.TempDir()
	data, full := filepath.Join(dir, "data"), filepath.Join(dir, "full")
	s, err := server.Open(t.Context(), server.Config{Dir: data, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{full, filepath.Join(dir, "empty")} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{full + "/file", full + ".tar.gz", filepath.Join(dir, "plain")} {
		if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir, to string
		want    error
	}{
		{data, full, server.ErrTargetExists},
		{data, full + ".tar.gz", server.ErrTargetExists},
		{data, filepath.Join(dir, "plain"), server.ErrTargetExists},
		{data, filepath.Join(data, "copy"), server.ErrTargetInside},
		{data, data, server.ErrTargetInside},
		{data, filepath.Join(dir, "new.tar"), server.ErrTargetEnding},
		{data, filepath.Join(dir, "new.tar.xz"), server.ErrTargetEnding},
		{data, filepath.Join(dir, "new.tar.bz2"), server.ErrTargetEnding},
		{data, filepath.Join(dir, "new.tbz2"), server.ErrTargetEnding},
		{data, filepath.Join(dir, "new.zip"), server.ErrTargetEnding},
		{data, filepath.Join(dir, "new.7z"), server.ErrTargetEnding},
		{data, filepath.Join(dir, "NEW.TAR.ZST"), server.ErrTargetEnding},
		{data, filepath.Join(dir, "none", "new"), server.ErrTargetParent},
		{data, filepath.Join(dir, "none", "new.tgz"), server.ErrTargetParent},
		{data, filepath.Join(dir, "plain", "new"), server.ErrTargetParent},
		{data, filepath.Join(dir, "plain", "deeper", "new"), server.ErrTargetParent},
		{full, filepath.Join(dir, "new"), server.ErrNoData},
		{filepath.Join(dir, "none"), filepath.Join(dir, "new"), os.ErrNotExist},
		{data, filepath.Join(dir, "empty"), nil},
		{data, filepath.Join(dir, "new"), nil},
		{data, filepath.Join(dir, "at-10.15"), nil},
		{data, filepath.Join(dir, "folder.tar") + "/", nil},
	} {
		if _, err := server.Backup(t.Context(), c.dir, c.to); !errors.Is(err, c.want) {
			t.Errorf("a backup of %s to %s: %v", c.dir, c.to, err)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	want := []string{
		"at-10.15", "data", "empty", "folder.tar", "full", "full.tar.gz", "new", "plain",
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("there are %q", names)
	}
}

// flip damages a byte of a file.
func flip(t *testing.T, name string, at int64) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	_, err = file.ReadAt(b, at)
	b[0] ^= 0x55
	_, failed := file.WriteAt(b, at)
	if err := errors.Join(err, failed, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestBackupOfDamage: a backup says that its original is damaged, and its copy is no worse.
func TestBackupOfDamage(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	v := serve(t, server.Config{
		Dir: data, LogFileSize: 256 << 10, Streams: []server.StreamSpec{{Name: "s", Shards: 3}},
	})
	v.createTable(t)
	l := startLoad(t, v)
	within(t, 20*time.Second, func() bool { return l.acked[0].Load() > 300 })
	l.end()
	v.stop()
	if err := errors.Join(v.ended(), v.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(dir, "damaged", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
		return found
	}
	for _, c := range []struct {
		name    string
		damage  func()
		damaged int // findings of fsck in the copy; -1: there is no copy
	}{
		{"nothing", func() {}, 0},
		{"the newest snapshot", func() { flip(t, find("snapshot-*")[1], 40) }, 0},
		{"both snapshots", func() {
			flip(t, find("snapshot-*")[0], 40)
			flip(t, find("snapshot-*")[1], 40)
		}, -1},
		{"a segment", func() { flip(t, find("shards/1/*.seg")[0], 50) }, 1},
		{"a segment that is gone", func() { _ = os.Remove(find("shards/1/*.seg")[0]) }, 1},
	} {
		for _, packed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, packed %v", c.name, packed), func(t *testing.T) {
				original, to := filepath.Join(dir, "damaged"), filepath.Join(dir, "copy")
				if err := os.CopyFS(original, os.DirFS(data)); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					for _, name := range []string{original, to, to + ".tar.gz"} {
						_ = os.RemoveAll(name)
					}
				})
				c.damage()
				target := to
				if packed {
					target += ".tar.gz"
				}
				report, err := server.Backup(t.Context(), original, target)
				if c.damaged < 0 {
					if err == nil {
						t.Fatalf("a copy that no server can use: %+v", report)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if sound := c.name == "nothing"; !report.Checked || (len(report.Damage) == 0) != sound {
					t.Errorf("the report: %+v", report)
				}
				if packed {
					unpack(t, target, to)
				}
				found, err := server.Check(t.Context(), to)
				if err != nil || len(found.Damage) != c.damaged {
					t.Errorf("the copy: %v, %+v", err, found.Damage)
				}
			})
		}
	}
}
