package fsck_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/fsck"
)

// soak is how many times more random cases to run: RUNNEL_SOAK, 1 by default.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// original is an undamaged directory, and the data that a server serves from it.
type original struct {
	name   string
	disk   *vfs.Mem
	served []string
}

func (o *original) clone(t testing.TB) *vfs.Mem {
	disk := vfs.NewMem()
	copyTree(t, o.disk, "data", disk, "data")
	return disk
}

// filled is a disk after two lives of a server, as the second one's kill leaves it, and as its
// clean end does.
func filled(t testing.TB) []*original {
	t.Helper()
	disk := vfs.NewMem()
	number := 0
	must := func(_ any, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(c client, stream string, count int) {
		for range count {
			number++
			text := fmt.Sprintf("%d %s", number, strings.Repeat("x", number*7%300))
			must(c.kinesis("PutRecord", object{
				"StreamName": stream, "PartitionKey": fmt.Sprintf("key-%d", number%50),
				"Data": base64.StdEncoding.EncodeToString([]byte(text)),
			}))
		}
	}
	item := func(c client, key string) {
		must(c.dynamo("PutItem", object{"TableName": "leases", "Item": object{
			"leaseKey": object{"S": key}, "leaseCounter": object{"N": strconv.Itoa(number)},
			"pad": object{"S": strings.Repeat("p", 40)},
		}}))
	}
	s, err := open(t, disk, config("data"))
	must(nil, err)
	c := client{s}
	must(c.kinesis("CreateStream", object{"StreamName": "orders", "ShardCount": 2}))
	must(c.dynamo("CreateTable", object{
		"TableName": "leases", "BillingMode": "PAY_PER_REQUEST",
		"KeySchema":            []any{object{"AttributeName": "leaseKey", "KeyType": "HASH"}},
		"AttributeDefinitions": []any{object{"AttributeName": "leaseKey", "AttributeType": "S"}},
	}))
	put(c, "orders", 60)
	for i := range 20 { // they make a data file
		item(c, fmt.Sprint("first-", i))
	}
	item(c, "one")
	must(nil, s.Close(t.Context()))
	s, err = open(t, disk, config("data"))
	must(nil, err)
	c = client{s}
	must(c.kinesis("CreateStream", object{"StreamName": "returns", "ShardCount": 1}))
	put(c, "orders", 30)
	item(c, "one")
	item(c, "two")
	for i := range 10 { // and they another one
		item(c, fmt.Sprint("first-", 2*i))
	}
	// Records are last: if their frames are lost together with the mark, the segments show it.
	put(c, "returns", 20)
	killed := &original{name: "killed", disk: idle(t, disk)}
	must(nil, s.Close(t.Context()))
	originals := []*original{killed, {name: "closed", disk: disk}}
	for _, o := range originals {
		sound(t, o.disk)
		o.served, err = serve(t, o.clone(t), "data", nil)
		must(nil, err)
		if len(o.served) < 100 || !slices.Equal(o.served, originals[0].served) {
			t.Fatalf("%s serves %d lines", o.name, len(o.served))
		}
	}
	return originals
}

// idle returns a copy of a running server's disk, once its last frames are marked and its shards
// have segments.
func idle(t testing.TB, disk *vfs.Mem) *vfs.Mem {
	t.Helper()
	for {
		time.Sleep(20 * time.Millisecond)
		copied := vfs.NewMem()
		copyTree(t, disk, "data", copied, "data")
		report, err := fsck.Check(t.Context(), copied, "data")
		if err == nil && report.Log.Marks > 0 && report.Log.Unsynced == 0 &&
			drained(copied, report) {
			return copied
		}
	}
}

// drained reports whether each shard with records has a segment. Records gather for a quarter of a
// second before they are written.
func drained(disk *vfs.Mem, report *fsck.Report) bool {
	for _, st := range report.Streams {
		for _, sh := range st.Shards {
			names, _ := disk.List("data/shards/" + sh.Folder) // none: the folder is not there yet
			if sh.Next > sh.Oldest && len(names) == 0 {
				return false
			}
		}
	}
	return true
}

// hurt does one random damage to a disk, and describes it.
func (o *original) hurt(t testing.TB, disk *vfs.Mem, rng *rand.Rand) string {
	files := slices.Sorted(maps.Keys(tree(t, disk, "data")))
	name := files[rng.IntN(len(files))]
	content := read(t, disk, name)
	at := 0
	if len(content) > 0 {
		at = rng.IntN(len(content))
	}
	switch kind := rng.IntN(6); {
	case kind == 0:
		if err := disk.Remove(name); err != nil {
			t.Fatal(err)
		}
		return name + " removed"
	case kind == 1:
		write(t, disk, name, content[:at])
		return fmt.Sprintf("%s cut to %d bytes of %d", name, at, len(content))
	case kind == 2 && len(content) > 0:
		from := at &^ 511
		clear(content[from:min(from+512, len(content))])
		write(t, disk, name, content)
		return fmt.Sprintf("%s without the sector at %d", name, from)
	case kind == 3:
		write(t, disk, name, append(content, byte(rng.Uint32()), 0, 7))
		return name + " with three bytes more"
	case len(content) == 0:
		return name + " is empty"
	}
	content[at] ^= 1 << rng.IntN(8)
	write(t, disk, name, content)
	return fmt.Sprintf("%s with a bit flipped in byte %d", name, at)
}

// prove damages a copy and compares. If the check calls the copy sound, a server must serve its
// data unchanged; if it calls the copy damaged, a server must not.
func (o *original) prove(t testing.TB, seed uint64) {
	t.Helper()
	disk := o.clone(t)
	what := o.hurt(t, disk, rand.New(rand.NewPCG(seed, 0)))
	before := tree(t, disk, "data")
	report, err := fsck.Check(t.Context(), disk, "data")
	found := err != nil || !report.OK
	if !maps.Equal(before, tree(t, disk, "data")) {
		t.Fatalf("seed %d, %s: %s: the check has changed something", seed, o.name, what)
	}
	lines, served := serve(t, disk, "data", nil)
	harmless := served == nil && slices.Equal(lines, o.served)
	switch {
	case !found && !harmless:
		t.Fatalf("seed %d, %s: %s: called sound, and a server serves %d lines of %d, %v",
			seed, o.name, what, len(lines), len(o.served), served)
	case found && harmless && !nothingLost(report):
		t.Fatalf("seed %d, %s: %s: called damaged, %v %+v, and a server serves everything",
			seed, o.name, what, err, report)
	}
}

// nothingLost reports whether a start does without all that is damaged.
func nothingLost(report *fsck.Report) bool {
	return report != nil && !slices.ContainsFunc(report.Damage, func(d fsck.Damage) bool {
		return !strings.HasPrefix(d.Lost, "nothing: ")
	})
}

// TestRandomDamageIsFoundOrHarmless prints the seed of a failure: RUNNEL_SEED runs it again.
func TestRandomDamageIsFoundOrHarmless(t *testing.T) {
	base := uint64(time.Now().UnixNano())
	if s := os.Getenv("RUNNEL_SEED"); s != "" {
		base, _ = strconv.ParseUint(s, 10, 64)
	}
	for _, o := range filled(t) {
		for i := range uint64(150 * soak()) {
			o.prove(t, base+i)
		}
		t.Logf("soak: %d seeds", 150*soak())
	}
}

// FuzzDamage is the same, with seeds of the fuzzer's choice.
func FuzzDamage(f *testing.F) {
	f.Add(uint64(1))
	originals := filled(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		for _, o := range originals {
			o.prove(t, seed)
		}
	})
}
