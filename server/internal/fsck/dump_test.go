package fsck_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// epoch is when everything in these tests happens, so that no record ever expires.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var quiet = slog.New(slog.DiscardHandler)

// ticking is a clock that goes on by a millisecond with every look at it.
func ticking() func() time.Time {
	var looks atomic.Int64
	return func() time.Time { return epoch.Add(time.Duration(looks.Add(1)) * time.Millisecond) }
}

// config is a server on a directory with small log files, and without delays.
func config(dir string) server.Config {
	return server.Config{Dir: dir, LogFileSize: 16 << 10, StreamDelay: -1, Logger: quiet}
}

// open opens a server on a directory of a file system.
func open(t testing.TB, fs vfs.FS, cfg server.Config) (*server.Server, error) {
	t.Helper()
	return server.Open(t.Context(), cfg, seam.OnFS(fs), seam.WithWall(ticking()))
}

// client calls a server's handler, without a network.
type client struct{ *server.Server }

// call returns the answer's body, or an error for any status but 200.
func (c client) call(target string, input any) (map[string]any, error) {
	body, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	kind := "application/x-amz-json-1.1"
	if strings.HasPrefix(target, "DynamoDB") {
		kind = "application/x-amz-json-1.0"
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("X-Amz-Target", target)
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return nil, fmt.Errorf("%s: %d %s", target, w.Code, w.Body)
	}
	output := map[string]any{}
	if w.Body.Len() == 0 {
		return output, nil
	}
	return output, json.Unmarshal(w.Body.Bytes(), &output)
}

func (c client) kinesis(operation string, input any) (map[string]any, error) {
	return c.call("Kinesis_20131202."+operation, input)
}

func (c client) dynamo(operation string, input any) (map[string]any, error) {
	return c.call("DynamoDB_20120810."+operation, input)
}

type object = map[string]any

// dump returns everything that the server serves, as lines.
func (c client) dump() ([]string, error) {
	var lines []string
	streams, err := c.kinesis("ListStreams", object{})
	if err != nil {
		return nil, err
	}
	for _, name := range streams["StreamNames"].([]any) {
		shards, err := c.kinesis("ListShards", object{"StreamName": name})
		if err != nil {
			return nil, err
		}
		for _, each := range shards["Shards"].([]any) {
			shard, err := json.Marshal(each)
			if err != nil {
				return nil, err
			}
			lines = append(lines, fmt.Sprintf("%s %s", name, shard))
			records, err := c.records(name, each.(object)["ShardId"])
			if err != nil {
				return nil, err
			}
			lines = append(lines, records...)
		}
	}
	tables, err := c.dynamo("ListTables", object{})
	if err != nil {
		return nil, err
	}
	for _, name := range tables["TableNames"].([]any) {
		found, err := c.dynamo("Scan", object{"TableName": name})
		if err != nil {
			return nil, err
		}
		for _, item := range found["Items"].([]any) {
			text, err := json.Marshal(item)
			if err != nil {
				return nil, err
			}
			lines = append(lines, fmt.Sprintf("%s %s", name, text))
		}
	}
	return lines, nil
}

// records reads the durable records of a shard, from its beginning on.
func (c client) records(stream, shard any) ([]string, error) {
	answer, err := c.kinesis("GetShardIterator", object{
		"StreamName": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON",
	})
	if err != nil {
		return nil, err
	}
	var lines []string
	for iterator := answer["ShardIterator"]; iterator != nil; {
		answer, err := c.kinesis("GetRecords", object{"ShardIterator": iterator})
		if err != nil {
			return nil, err
		}
		records := answer["Records"].([]any)
		for _, each := range records {
			r := each.(object)
			data, err := base64.StdEncoding.DecodeString(r["Data"].(string))
			if err != nil {
				return nil, err
			}
			lines = append(lines, fmt.Sprintf("  %s %s %s %s", shard, r["SequenceNumber"],
				r["PartitionKey"], data))
		}
		if len(records) == 0 {
			break
		}
		iterator = answer["NextShardIterator"]
	}
	return lines, nil
}

// copyTree copies a folder from one file system into another.
func copyTree(t testing.TB, from vfs.FS, source string, to vfs.FS, target string) {
	t.Helper()
	if err := to.MkdirAll(target); err != nil {
		t.Fatal(err)
	}
	names, err := from.List(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := from.Stat(path.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			copyTree(t, from, path.Join(source, name), to, path.Join(target, name))
			continue
		}
		write(t, to, path.Join(target, name), read(t, from, path.Join(source, name)))
	}
}

func read(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, size)
	if _, err := f.ReadAt(p, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t testing.TB, fsys vfs.FS, name string, content []byte) {
	t.Helper()
	f, err := fsys.Create(name)
	if err == nil && len(content) > 0 {
		_, err = f.WriteAt(content, 0)
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tree returns the content of every file under a folder, by its path.
func tree(t testing.TB, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name = path.Join(dir, name)
		info, err := fsys.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			maps.Copy(files, tree(t, fsys, name))
		} else {
			files[name] = string(read(t, fsys, name))
		}
	}
	return files
}

func jsonFile(t testing.TB, fsys vfs.FS, name string, into any) error {
	return json.Unmarshal(read(t, fsys, name), into)
}
