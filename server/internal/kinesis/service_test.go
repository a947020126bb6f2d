package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soak multiplies the size of the random tests.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

var here = wire.World{Account: "000000000000", Region: "us-east-1"}

// node is a service on a file system, with its log and records.
type node struct {
	t      testing.TB
	fs     vfs.FS
	log    *wal.Log
	shards *shardlog.Store
	*Service
	ctx   context.Context
	world wire.World
	open  bool
}

// testClock is a clock that a test sets: the time that it advances seems to pass. stepped is in
// addition, by the system's clock alone.
type testClock struct{ ms, stepped atomic.Int64 }

func newTestClock() *testClock {
	c := new(testClock)
	c.ms.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *testClock) now() time.Time { return time.UnixMilli(c.ms.Load() + c.stepped.Load()) }

func (c *testClock) step(d time.Duration) { c.stepped.Add(d.Milliseconds()) }

// boot returns the time since the boot of a machine that has run for a day.
func (c *testClock) boot() (id string, since time.Duration) {
	return "boot", time.Duration(c.ms.Load()-newTestClock().ms.Load())*time.Millisecond + 24*time.Hour
}

func (c *testClock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// newNode starts a service on an empty file system in memory. Passing states end at once.
func newNode(t testing.TB, change ...func(*Config)) *node {
	t.Helper()
	return startNode(t, vfs.NewMem(), change...)
}

func startNode(t testing.TB, fs vfs.FS, change ...func(*Config)) *node {
	t.Helper()
	cfg := Config{
		StreamDelay: -1,
		Logger:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Clock == nil {
		cfg.Clock = serverclock.New(serverclock.Config{Logger: cfg.Logger})
	}
	n := &node{t: t, fs: fs, ctx: context.Background(), world: here}
	var err error
	n.log, err = wal.Open(wal.Config{FS: fs, Dir: "data", FileSize: 1 << 20, Logger: cfg.Logger})
	n.must(err)
	n.shards, err = shardlog.New(shardlog.Config{
		Log: n.log, FS: fs, Dir: "data", SegmentSize: 64 << 10, Now: cfg.Clock.Now,
		Logger: cfg.Logger,
	})
	n.must(err)
	cfg.Log, cfg.Shards = n.log, n.shards
	n.Service, err = New(cfg)
	n.must(err)
	n.must(n.streams.log.Start(n.ctx))
	n.must(n.Start(n.ctx))
	n.open = true
	t.Cleanup(n.stop)
	return n
}

// at sets the clock of the service and the records.
func at(c *testClock) func(*Config) {
	return func(cfg *Config) {
		cfg.Clock = serverclock.New(serverclock.Config{
			Wall: c.now, Boot: c.boot, Logger: cfg.Logger,
		})
	}
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// stop closes everything in order. Errors are those of a disk that a test has broken.
func (n *node) stop() {
	if n.open {
		n.open = false
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = n.Service.Close()
		_ = n.streams.log.Close(ctx)
		_ = n.shards.Close()
	}
}

// m is a JSON object.
type m = map[string]any

// try calls an operation.
func (n *node) try(operation string, in any) (m, error) {
	body, err := json.Marshal(in)
	n.must(err)
	return n.raw(n.ctx, operation, string(body))
}

func (n *node) raw(ctx context.Context, operation, body string) (m, error) {
	n.t.Helper()
	answer, err := n.Serve(ctx, &wire.Call{
		Service: "kinesis", Operation: operation, Body: []byte(body), World: n.world,
	})
	if err != nil || answer.Body == nil {
		return nil, err
	}
	var out m
	if err := json.Unmarshal(answer.Body, &out); err != nil {
		n.t.Fatalf("%s answers %s: %v", operation, answer.Body, err)
	}
	return out, nil
}

// call calls an operation that must succeed.
func (n *node) call(operation string, in any) m {
	n.t.Helper()
	out, err := n.try(operation, in)
	if err != nil {
		n.t.Fatalf("%s %v: %v", operation, in, err)
	}
	return out
}

// refused calls an operation that must fail with the code and a message that contains text.
func (n *node) refused(operation string, in any, code, text string) {
	n.t.Helper()
	_, err := n.try(operation, in)
	wantError(n.t, err, code, text)
}

func wantError(t testing.TB, err error, code, text string) {
	t.Helper()
	var wire *wire.Error
	if !errors.As(err, &wire) || wire.Code != code || !strings.Contains(wire.Message, text) {
		t.Fatalf("got %v, want %s: %s", err, code, text)
	}
}

// create makes an ACTIVE stream.
func (n *node) create(name string, shards int) {
	n.t.Helper()
	n.call("CreateStream", m{"StreamName": name, "ShardCount": shards})
}

// put stores a record and returns its shard and number.
func (n *node) put(stream, key, data string) (shard, number string) {
	n.t.Helper()
	out := n.call("PutRecord", m{"StreamName": stream, "PartitionKey": key, "Data": []byte(data)})
	return out["ShardId"].(string), out["SequenceNumber"].(string)
}

// iterator returns a shard iterator; more are further members.
func (n *node) iterator(stream, shard, kind string, more ...any) string {
	n.t.Helper()
	in := m{"StreamName": stream, "ShardId": shard, "ShardIteratorType": kind}
	for i := 0; i+1 < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	return n.call("GetShardIterator", in)["ShardIterator"].(string)
}

// gotRecord is a record as GetRecords shows it.
type gotRecord struct {
	SequenceNumber              string
	PartitionKey                string
	Data                        []byte
	ApproximateArrivalTimestamp float64
}

// got is an answer of GetRecords.
type got struct {
	Records            []gotRecord
	NextShardIterator  string
	MillisBehindLatest int64
	ChildShards        []struct {
		ShardId      string
		ParentShards []string
	}
}

func (g got) data() string {
	var texts []string
	for _, r := range g.Records {
		texts = append(texts, string(r.Data))
	}
	return strings.Join(texts, " ")
}

// get reads once from an iterator.
func (n *node) get(iterator string, limit int) got {
	n.t.Helper()
	in := m{"ShardIterator": iterator}
	if limit > 0 {
		in["Limit"] = limit
	}
	body, err := json.Marshal(in)
	n.must(err)
	answer, err := n.Serve(n.ctx, &wire.Call{Operation: "GetRecords", Body: body, World: n.world})
	n.must(err)
	var out got
	n.must(json.Unmarshal(answer.Body, &out))
	return out
}

// drain reads a shard from its oldest record until it is caught up or at its end.
func (n *node) drain(stream, shard string) (records []gotRecord, last got) {
	n.t.Helper()
	iterator := n.iterator(stream, shard, "TRIM_HORIZON")
	for {
		last = n.get(iterator, 0)
		records = append(records, last.Records...)
		if last.NextShardIterator == "" || (len(last.Records) == 0 && last.MillisBehindLatest == 0) {
			return records, last
		}
		iterator = last.NextShardIterator
	}
}

// listed is a shard as ListShards shows it.
type listed struct {
	ShardId, ParentShardId, AdjacentParentShardId string
	HashKeyRange                                  struct{ StartingHashKey, EndingHashKey string }
	SequenceNumberRange                           struct {
		StartingSequenceNumber, EndingSequenceNumber string
	}
}

// list returns all shards; more are further members of the request.
func (n *node) list(stream string, more ...any) []listed {
	n.t.Helper()
	in := m{"StreamName": stream}
	for i := 0; i+1 < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	var shards []listed
	for {
		body, err := json.Marshal(in)
		n.must(err)
		answer, err := n.Serve(n.ctx, &wire.Call{Operation: "ListShards", Body: body, World: n.world})
		n.must(err)
		var out struct {
			Shards    []listed
			NextToken string
		}
		n.must(json.Unmarshal(answer.Body, &out))
		shards = append(shards, out.Shards...)
		if out.NextToken == "" {
			return shards
		}
		in = m{"NextToken": out.NextToken}
	}
}

func shardIDs(shards []listed) string {
	var ids []string
	for _, sh := range shards {
		ids = append(ids, strings.TrimLeft(strings.TrimPrefix(sh.ShardId, "shardId-"), "0")+".")
	}
	return strings.Join(ids, " ")
}

func (n *node) status(stream string) string {
	n.t.Helper()
	out := n.call("DescribeStreamSummary", m{"StreamName": stream})
	return out["StreamDescriptionSummary"].(m)["StreamStatus"].(string)
}

func TestServeBeforeStart(t *testing.T) {
	s := &Service{}
	if _, err := s.Serve(t.Context(), &wire.Call{Operation: "ListStreams"}); err == nil {
		t.Fatal("a service that was not started answers")
	}
}

func TestConfigValidate(t *testing.T) {
	err := Config{SweepEvery: time.Microsecond}.Validate()
	for _, want := range []string{"Config.Log", "Config.Shards", "Config.Clock", "Config.SweepEvery"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want a fault of %s", err, want)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("New takes an empty Config")
	}
}

func TestUnknownOperations(t *testing.T) {
	n := newNode(t)
	n.refused("Frobnicate", m{}, codeUnknown, "")
	if len(operations) != 39 {
		t.Errorf("%d operations are served, the model has 39", len(operations))
	}
}

// A resource made in one account and region is invisible in another.
func TestWorlds(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	n.put("orders", "k", "one")
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	arn := "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
	for _, world := range []wire.World{
		{Account: "000000000000", Region: "eu-west-1"},
		{Account: "111111111111", Region: "us-east-1"},
	} {
		n.world = world
		n.refused("DescribeStreamSummary", m{"StreamName": "orders"}, codeNotFound,
			"Stream orders under account "+world.Account+" not found.")
		n.refused("DescribeStreamSummary", m{"StreamARN": arn}, codeNotFound,
			"Stream orders under account 000000000000 not found.")
		n.refused("GetRecords", m{"ShardIterator": iterator}, codeInvalid, "Invalid ShardIterator.")
		if names := n.call("ListStreams", m{})["StreamNames"].([]any); len(names) != 0 {
			t.Errorf("%v sees %v", world, names)
		}
		n.create("orders", 1)
		if records, _ := n.drain("orders", "0"); len(records) != 0 {
			t.Errorf("%v reads %v", world, records)
		}
	}
	n.world = here
	if records, _ := n.drain("orders", "0"); len(records) != 1 {
		t.Errorf("the stream holds %v", records)
	}
}

// Everything is still there after a restart, the iterators included.
func TestRestart(t *testing.T) {
	n := newNode(t)
	n.create("orders", 2)
	shard, number := n.put("orders", "k", "one")
	n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "77"})
	before := n.list("orders")
	iterator := n.iterator("orders", shard, "TRIM_HORIZON")
	n.stop()
	n = startNode(t, n.fs)
	if after := n.list("orders"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("after a restart there are\n%v\nbefore\n%v", after, before)
	}
	answer := n.get(iterator, 0)
	if answer.data() != "one" || answer.Records[0].SequenceNumber != number {
		t.Errorf("after a restart the iterator reads %+v", answer)
	}
}

func withFaults(ctx context.Context, d fault.Decision) context.Context {
	return fault.WithDecision(ctx, d)
}
