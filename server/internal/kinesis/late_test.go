package kinesis

import (
	"encoding/json"
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
	"github.com/runnel-stream/runnel/server/internal/pause"
)

// came makes a put that came in some way.
func (n *node) came(operation, data string, origin wire.Origin) (m, error) {
	n.t.Helper()
	in := m{"StreamName": "orders", "PartitionKey": "k", "Data": []byte(data)}
	if operation == "PutRecords" {
		in = m{"StreamName": "orders", "Records": []m{{"PartitionKey": "k", "Data": []byte(data)}}}
	}
	body, err := json.Marshal(in)
	n.must(err)
	answer, err := n.Serve(n.ctx, &wire.Call{
		Service: "kinesis", Operation: operation, Body: body, World: n.world, Origin: origin,
	})
	if err != nil {
		return nil, err
	}
	var out m
	n.must(json.Unmarshal(answer.Body, &out))
	return out, nil
}

// notStored fails unless a put was refused as not stored.
func (n *node) notStored(what, operation string, out m, err error) {
	n.t.Helper()
	if operation == "PutRecord" {
		if !NotStored(err) {
			n.t.Errorf("%s: %s: %v, %v; want a refusal", what, operation, out, err)
		}
		return
	}
	if err != nil || out["FailedRecordCount"].(float64) != 1 ||
		out["Records"].([]any)[0].(m)["ErrorCode"] != "InternalFailure" {
		n.t.Errorf("%s: %s: %v, %v; want InternalFailure of the record", what, operation, out, err)
	}
}

func (n *node) data(stream string) []string {
	records, _ := n.drain(stream, "0")
	var data []string
	for _, r := range records {
		data = append(data, string(r.Data))
	}
	return data
}

// A put that waits for room in the log is refused once it is older than a signature may be: its
// client has sent the records again, and readers may have forgotten that.
func TestPutsThatWaitTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedFS{Mem: vfs.NewMem()}
		n := startNode(t, disk)
		n.create("orders", 1)
		n.create("filler", 1)
		disk.shut()
		var calls sync.WaitGroup
		filler := make([]byte, 1000<<10)
		for range 80 { // more than the log holds: some of them wait for room too
			calls.Go(func() {
				_, _ = n.try("PutRecord", m{"StreamName": "filler", "PartitionKey": "k", "Data": filler})
			})
		}
		synctest.Wait()
		type result struct {
			out m
			err error
		}
		large := strings.Repeat(".", 20<<10) // a small record need not wait for room
		late, inTime := map[string]*result{}, map[string]*result{}
		wait := func(results map[string]*result, data string) {
			for _, operation := range []string{"PutRecord", "PutRecords"} {
				r := new(result)
				results[operation] = r
				origin := wire.Origin{Began: bootclock.Now()}
				calls.Go(func() { r.out, r.err = n.came(operation, data+operation+large, origin) })
			}
			synctest.Wait()
		}
		wait(late, "late ")
		time.Sleep(12 * time.Minute)
		wait(inTime, "in time ")
		time.Sleep(seam.H() - time.Second)
		disk.release()
		calls.Wait()
		for operation, r := range late {
			n.notStored("12 minutes", operation, r.out, r.err)
		}
		for operation, r := range inTime {
			if r.err != nil {
				t.Errorf("%s that waited for less than H: %v", operation, r.err)
			}
		}
		got := n.data("orders")
		for i := range got {
			got[i] = strings.TrimRight(got[i], ".")
		}
		slices.Sort(got)
		if want := []string{"in time PutRecord", "in time PutRecords"}; !slices.Equal(got, want) {
			t.Errorf("stored: %q, want %q", got, want)
		}
		n.stop()
	})
}

// A signed put is refused once its signature has expired by the server's clock. An unsigned put is
// not, since its date is unknown.
func TestPutsThatExpire(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	now := n.streams.clock.Now()
	for _, operation := range []string{"PutRecord", "PutRecords"} {
		for _, c := range []struct {
			expires time.Time
			stored  bool
		}{
			{time.Time{}, true},
			{now, true},
			{now.Add(time.Minute), true},
			{now.Add(-time.Second), false},
		} {
			out, err := n.came(operation, fmt.Sprint(c.stored),
				wire.Origin{Began: bootclock.Now(), Expires: c.expires})
			if !c.stored {
				n.notStored("expired", operation, out, err)
			} else if err != nil {
				t.Errorf("%s, expires %v: %v", operation, c.expires, err)
			}
		}
	}
	if got := n.data("orders"); len(got) != 6 || slices.Contains(got, "false") {
		t.Errorf("stored: %q", got)
	}
}

// A put from before a pause is refused, also before a tick has detected the pause.
func TestPutsOfBeforeAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch := pause.New()
		n := startNode(t, vfs.NewMem(), func(cfg *Config) { cfg.Pauses = watch })
		n.create("orders", 1)
		for _, operation := range []string{"PutRecord", "PutRecords"} {
			time.Sleep(watch.Limit() * 3) // no tick comes yet: as if the process had not run
			out, err := n.came(operation, "early", wire.Origin{Pauses: watch.Count()})
			n.notStored("before the tick", operation, out, err)
		}
		watch.Start(func(time.Duration) {})
		for _, operation := range []string{"PutRecord", "PutRecords"} {
			out, err := n.came(operation, "late", wire.Origin{Pauses: watch.Count() - 1})
			n.notStored("after the tick", operation, out, err)
			if _, err := n.came(operation, "new", wire.Origin{Pauses: watch.Count()}); err != nil {
				t.Errorf("%s of after the pause: %v", operation, err)
			}
		}
		if got := n.data("orders"); !slices.Equal(got, []string{"new", "new"}) {
			t.Errorf("stored: %q", got)
		}
		watch.Stop()
		n.stop()
	})
}

// A subscription says that there is more to come while records are on their way to the disk, and
// its events go on while the disk hangs.
func TestSubscriptionWhileTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedFS{Mem: vfs.NewMem()}
		n := startNode(t, disk)
		n.create("orders", 1)
		n.put("orders", "k", "one")
		u := n.subscribe(n.register("orders", "reader"), "0", m{"Type": "TRIM_HORIZON"})
		next := func(want string, behind int64) {
			t.Helper()
			got := u.next()
			data := ""
			for _, r := range got.Records {
				data += string(r.Data)
			}
			if data != want || got.MillisBehindLatest != behind {
				t.Errorf("%q, %d behind; want %q, %v", data, got.MillisBehindLatest, want, behind)
			}
		}
		next("one", 0)
		disk.shut()
		var calls sync.WaitGroup
		calls.Go(func() { n.put("orders", "k", "two") })
		synctest.Wait() // before the split
		calls.Go(func() {
			n.call("SplitShard",
				m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"})
		})
		synctest.Wait()
		next("", 1)
		next("", 1)
		disk.release()
		calls.Wait()
		next("two", 0)
		u.events.Close()
		n.stop()
	})
}
