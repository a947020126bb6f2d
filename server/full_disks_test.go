package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

// TestFullDisks gives a server less and more room at random, under records, items, deletions,
// restarts and power cuts. With room again every acknowledged change is there, no refused one is,
// and writes go on. The name of a subtest is its seed.
func TestFullDisks(t *testing.T) {
	crashes, calls, refused := 0, 0, 0
	for seed := range uint64(2 * soak()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := newFullDisk(t, rand.New(rand.NewPCG(seed, 16)))
			for range 80 {
				d.step()
			}
			d.free()
			d.restart(false)
			d.check()
			d.end()
			crashes, calls, refused = crashes+d.crashes, calls+d.calls, refused+d.refused
		})
	}
	if refused < calls/50 && !t.Failed() {
		t.Errorf("only %d of %d calls met a full disk", refused, calls)
	}
	t.Logf("soak: %d seeds, %d crashes, %d operations", 2*soak(), crashes, calls)
}

// fullDisk is a server in a small space, with the expected records and items.
type fullDisk struct {
	*testing.T
	rng    *rand.Rand
	disk   *vfs.Mem
	server *server.Server

	number  int              // of the newest change
	records []int            // the acknowledged ones
	unknown map[int]bool     // records that may be there: their calls had no answer
	items   map[string][]int // the values that an item may have; 0: it is not there

	crashes, calls, refused int
}

func newFullDisk(t *testing.T, rng *rand.Rand) *fullDisk {
	d := &fullDisk{
		T: t, rng: rng, disk: vfs.NewCrashable(), unknown: map[int]bool{}, items: map[string][]int{},
	}
	if !d.open() {
		t.Fatal("the server does not start")
	}
	code, body, _ := d.call(20*time.Second, "DynamoDB_20120810.CreateTable", map[string]any{
		"TableName": "table", "BillingMode": "PAY_PER_REQUEST",
		"KeySchema":            []any{map[string]any{"AttributeName": "k", "KeyType": "HASH"}},
		"AttributeDefinitions": []any{map[string]any{"AttributeName": "k", "AttributeType": "S"}},
	})
	if code != http.StatusOK {
		t.Fatal(body)
	}
	return d
}

func (d *fullDisk) open() bool {
	var err error
	d.server, err = server.Open(d.Context(), server.Config{
		Dir: "data", LogFileSize: 256 << 10, StreamDelay: -1, Logger: quiet,
		Streams: []server.StreamSpec{{Name: "s", Shards: 1}},
	}, seam.OnFS(d.disk))
	return err == nil
}

// call makes a call that waits so long at most. unknown says that it had no answer.
func (d *fullDisk) call(
	limit time.Duration, target string, in map[string]any,
) (code int, answer string, unknown bool) {
	d.calls++
	ctx, cancel := context.WithTimeout(d.Context(), limit)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		d.Fatal(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	if strings.HasPrefix(target, "DynamoDB") {
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	}
	r.Header.Set("X-Amz-Target", target)
	w := httptest.NewRecorder()
	defer func() {
		if fault := recover(); fault == http.ErrAbortHandler {
			unknown = true // the server cuts the connection: the outcome is unknown to it, too
		} else if fault != nil {
			panic(fault)
		}
	}()
	d.server.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Code != http.StatusOK && ctx.Err() != nil
}

// change makes a call that changes something. A refusal has to say that nothing was stored.
func (d *fullDisk) change(target string, in map[string]any) (done, unknown bool) {
	d.Helper()
	code, body, unknown := d.call(100*time.Millisecond, target, in)
	if code != http.StatusOK {
		d.refused++
	}
	if code != http.StatusOK && !unknown &&
		!strings.Contains(body, "ProvisionedThroughputExceeded") {
		d.Errorf("%s: %d %s", target, code, body)
	}
	return code == http.StatusOK, unknown
}

func (d *fullDisk) step() {
	switch n := d.rng.IntN(20); {
	case n == 0:
		d.free()
		d.check()
	case n < 5:
		d.disk.SetLimit(d.disk.Used() + d.rng.Int64N(512<<10))
	case n == 5:
		d.restart(false)
	case n == 6:
		d.restart(true)
	case n < 12:
		for range d.rng.IntN(12) {
			d.record()
		}
	case n < 17:
		for range d.rng.IntN(12) {
			d.item()
		}
	default:
		for range d.rng.IntN(4) {
			d.remove()
		}
	}
}

// free gives the disk room, and waits until the server stores again.
func (d *fullDisk) free() {
	d.disk.SetLimit(1 << 40)
	within(d.T, 20*time.Second, func() bool { return d.record() })
}

func (d *fullDisk) filler() string { return strings.Repeat("x", d.rng.IntN(30<<10)) }

func (d *fullDisk) record() bool {
	d.Helper()
	d.number++
	data := fmt.Appendf(nil, "%d %s", d.number, d.filler())
	done, unknown := d.change("Kinesis_20131202.PutRecord", map[string]any{
		"StreamName": "s", "PartitionKey": "k", "Data": base64.StdEncoding.EncodeToString(data),
	})
	if done {
		d.records = append(d.records, d.number)
	}
	d.unknown[d.number] = unknown
	return done
}

// key draws the key of an item.
func (d *fullDisk) key() (name string, key map[string]any) {
	name = fmt.Sprint("k", d.rng.IntN(12))
	return name, map[string]any{"k": map[string]any{"S": name}}
}

func (d *fullDisk) item() {
	d.Helper()
	d.number++
	name, item := d.key()
	item["n"] = map[string]any{"N": fmt.Sprint(d.number)}
	item["filler"] = map[string]any{"S": d.filler()}
	d.store(name, d.number, "DynamoDB_20120810.PutItem",
		map[string]any{"TableName": "table", "Item": item})
}

// remove deletes an item, alone or in a transaction.
func (d *fullDisk) remove() {
	d.Helper()
	name, key := d.key()
	one := map[string]any{"TableName": "table", "Key": key}
	if d.rng.IntN(2) == 0 {
		d.store(name, 0, "DynamoDB_20120810.DeleteItem", one)
		return
	}
	d.store(name, 0, "DynamoDB_20120810.TransactWriteItems",
		map[string]any{"TransactItems": []any{map[string]any{"Delete": one}}})
}

// store makes a change of an item, after which it has a value.
func (d *fullDisk) store(name string, value int, target string, in map[string]any) {
	d.Helper()
	if d.items[name] == nil {
		d.items[name] = []int{0}
	}
	switch done, unknown := d.change(target, in); {
	case done:
		d.items[name] = []int{value}
	case unknown:
		d.items[name] = append(d.items[name], value)
	}
}

// restart ends the server in order, or by a power cut, and starts it. On a full disk an end has no
// snapshot. A start may need room for records that the log repeats.
func (d *fullDisk) restart(crash bool) {
	d.Helper()
	disk := d.disk
	if crash {
		d.crashes++
		disk = d.disk.Crash(d.rng)
		disk.SetLimit(disk.Used() + d.rng.Int64N(1<<20))
	}
	d.end()
	d.disk = disk
	if !d.open() {
		d.disk.SetLimit(1 << 40)
		if !d.open() {
			d.Fatal("the server does not start")
		}
	}
}

func (d *fullDisk) end() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.Context()), 20*time.Second)
	defer cancel()
	_ = d.server.Close(ctx) // a full disk has no room for the last snapshot
}

// check compares everything with the answers. The disk has room.
func (d *fullDisk) check() {
	d.Helper()
	found := d.stored()
	next := 0
	for _, number := range found {
		switch {
		case next < len(d.records) && number == d.records[next]:
			next++
		case !d.unknown[number]:
			d.Fatalf("record %d was refused, or is there twice or too late", number)
		}
	}
	if next != len(d.records) {
		d.Fatalf("record %d of %d is missing; there are %d", next, len(d.records), len(found))
	}
	d.records, d.unknown = found, map[int]bool{} // seen records stay
	for name, values := range d.items {
		_, body, _ := d.call(20*time.Second, "DynamoDB_20120810.GetItem", map[string]any{
			"TableName": "table", "Key": map[string]any{"k": map[string]any{"S": name}},
		})
		var answer struct {
			Item struct {
				N struct {
					N int `json:",string"`
				}
			}
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			d.Fatal(err, body)
		}
		value := answer.Item.N.N
		if !slices.Contains(values, value) {
			d.Fatalf("item %s has the value %d, and may have %v", name, value, values)
		}
		d.items[name] = []int{value}
	}
}

// stored returns the numbers of all records.
func (d *fullDisk) stored() (numbers []int) {
	d.Helper()
	_, body, _ := d.call(20*time.Second, "Kinesis_20131202.GetShardIterator", map[string]any{
		"StreamName": "s", "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON",
	})
	for {
		var answer struct {
			ShardIterator, NextShardIterator string
			Records                          []struct{ Data []byte }
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			d.Fatal(err)
		}
		if answer.ShardIterator != "" {
			answer.NextShardIterator = answer.ShardIterator
		} else if len(answer.Records) == 0 {
			return numbers
		}
		for _, r := range answer.Records {
			number := 0
			if _, err := fmt.Sscan(string(r.Data), &number); err != nil {
				d.Fatal(err)
			}
			numbers = append(numbers, number)
		}
		_, body, _ = d.call(20*time.Second, "Kinesis_20131202.GetRecords",
			map[string]any{"ShardIterator": answer.NextShardIterator})
	}
}
