package archive_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

var orders = archive.Stream{Name: "orders", Created: created}

// restored is a place with the records that its shards were given, and their lines.
type restored struct {
	*place
	disk *vfs.Mem
	want map[runnel.ShardID]int
}

// grown archives shards a and b, their child c of both, and d beside them, with records of random
// arrival times that never step back in a shard.
func grown(t *testing.T, random *rand.Rand) *restored {
	disk := vfs.NewMem()
	r := &restored{
		place: &place{t, archive.NewDirStoreOn(disk, "to")}, disk: disk, want: map[runnel.ShardID]int{},
	}
	clock := map[runnel.ShardID]time.Time{"a": created, "b": created, "d": created}
	fill := func(shard sink.Shard, ends bool) {
		w := r.open(archive.Config{Size: int64(1 + random.IntN(3000)), Every: time.Hour}, shard)
		for range random.IntN(30) {
			batch := sink.Batch{}
			for range 1 + random.IntN(5) {
				n := r.want[shard.ID]
				record := numbered(shard.ID, n, n+1)[0]
				record.Data = fmt.Appendf(nil, "%s-%d", shard.ID, n)
				clock[shard.ID] = clock[shard.ID].Add(time.Duration(random.IntN(3)) * time.Second)
				record.ArrivalTime = clock[shard.ID]
				batch.Records = append(batch.Records, record)
				batch.Through = record.Position
				r.want[shard.ID]++
			}
			if _, err := w.Write(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		if r.flush(w); ends {
			r.end(w)
		}
	}
	fill(shardOf("a"), true)
	fill(shardOf("b"), true)
	if clock["c"] = created; random.IntN(2) == 0 { // or the stream's clock has stepped back
		if clock["c"] = clock["a"]; clock["c"].Before(clock["b"]) {
			clock["c"] = clock["b"]
		}
	}
	fill(shardOf("c", "a", "b"), false)
	fill(shardOf("d"), false)
	return r
}

func (r *restored) merge(part archive.Part, options archive.MergeOptions) []runnel.Record {
	r.Helper()
	var records []runnel.Record
	for record, err := range archive.NewReader(r.store).Merge(r.Context(), orders, part, options) {
		if err != nil {
			r.Fatal(err)
		}
		records = append(records, record)
	}
	return records
}

func (r *restored) part() archive.Part {
	r.Helper()
	part, err := archive.NewReader(r.store).Part(r.Context(), orders)
	if err != nil {
		r.Fatal(err)
	}
	return part
}

// Every record comes once, in the order of its shard, a child's behind all of its parents', and
// else by arrival time. The order is the same again, also when the archive has grown.
func TestMerge(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 5))
		r := grown(t, random)
		part := r.part()
		records := r.merge(part, archive.MergeOptions{})
		next := map[runnel.ShardID]int{}
		newest := time.Time{}
		for _, record := range records {
			id := record.ShardID
			if want := fmt.Sprintf("%s-%d", id, next[id]); string(record.Data) != want {
				t.Fatalf("seed %d: %s, want %s", seed, record.Data, want)
			}
			next[id]++
			if id == "c" && (next["a"] < r.want["a"] || next["b"] < r.want["b"]) {
				t.Fatalf("seed %d: %s comes before its parents' ends", seed, record.Data)
			}
			if record.ArrivalTime.Before(newest) && id != "c" {
				t.Fatalf("seed %d: %s is older than one before it", seed, record.Data)
			}
			newest = record.ArrivalTime
		}
		for id, n := range r.want {
			if next[id] != n {
				t.Fatalf("seed %d: %d of %d records of %s", seed, next[id], n, id)
			}
		}
		// It grows, and the part stays.
		w := r.open(archive.Config{Every: time.Hour}, shardOf("d"))
		r.write(w, "d", r.want["d"], r.want["d"]+7)
		r.end(w)
		again := r.merge(part, archive.MergeOptions{})
		if len(again) != len(records) {
			t.Fatalf("seed %d: %d records, and %d again", seed, len(records), len(again))
		}
		for i := range again {
			if again[i].ShardID != records[i].ShardID || again[i].Position != records[i].Position {
				t.Fatalf("seed %d: record %d is another one", seed, i)
			}
		}
		from, until := created.Add(10*time.Second), created.Add(25*time.Second)
		n := 0
		for _, record := range records {
			if !record.ArrivalTime.Before(from) && record.ArrivalTime.Before(until) {
				n++
			}
		}
		if got := r.merge(part, archive.MergeOptions{From: from, Until: until}); len(got) != n {
			t.Fatalf("seed %d: %d records between two times, want %d", seed, len(got), n)
		}
	}
}

// A damaged link stops the merge before its first record, and names it. So does a missing one.
func TestMergeStopsAtDamage(t *testing.T) {
	for _, how := range []string{"damaged", "missing"} {
		r := &restored{place: inMemory(t)}
		disk := vfs.NewMem()
		r.store = archive.NewDirStoreOn(disk, "to")
		w := r.open(archive.Config{Size: 1}, shardOf(parent))
		for n := range 3 {
			r.write(w, parent, n*10, n*10+10)
		}
		part := r.part()
		name := "to/orders@" + fmt.Sprint(created.UnixMilli()) + "/" + string(parent) + "/" +
			at(9).SortText() + ".ndjson.gz"
		file, err := disk.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		size, err := file.Size()
		if err != nil {
			t.Fatal(err)
		}
		if how == "missing" {
			err = disk.Remove(name)
		} else {
			_, err = file.WriteAt([]byte{0, 0, 0, 0}, size-8) // the checksum of gzip
		}
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		var last error
		for _, err := range archive.NewReader(r.store).Merge(t.Context(), orders, part,
			archive.MergeOptions{}) {
			if err == nil {
				n++
			}
			last = err
		}
		if n != 10 || last == nil || how == "damaged" && !strings.Contains(last.Error(), name[3:]) ||
			how == "missing" && !errors.Is(last, archive.ErrUnusableLink) {
			t.Errorf("%s: %d records, and then %v", how, n, last)
		}
	}
}

// A link that is missing at a shard's beginning or at a parent's end, or behind which the last one
// is damaged, is named before anything is read.
func TestPartNamesMissingLinks(t *testing.T) {
	folder := "to/orders@" + fmt.Sprint(created.UnixMilli()) + "/"
	name := func(id runnel.ShardID, previous runnel.Position) string {
		return folder + string(id) + "/" + previous.SortText() + ".ndjson.gz"
	}
	for what, c := range map[string]struct {
		spoil func(disk *vfs.Mem) error
		names string
	}{
		"the first link": {func(disk *vfs.Mem) error {
			return disk.Remove(name(parent, runnel.Start()))
		}, name(parent, runnel.Start())},
		"a parent's last link": {func(disk *vfs.Mem) error {
			return disk.Remove(name(parent, at(29)))
		}, name(parent, at(29))},
		"a parent": {func(disk *vfs.Mem) error {
			return errors.Join(disk.Remove(name(parent, runnel.Start())),
				disk.Remove(name(parent, at(9))), disk.Remove(name(parent, at(19))),
				disk.Remove(name(parent, at(29))))
		}, name(parent, at(29))},
		"one before a damaged last one": {func(disk *vfs.Mem) error {
			file, err := disk.Open(name(child, at(39)))
			if err == nil {
				_, err = file.WriteAt([]byte{0, 0}, 0)
			}
			return errors.Join(err, disk.Remove(name(child, runnel.Start())))
		}, name(child, runnel.Start())},
		"a damaged last one": {func(disk *vfs.Mem) error {
			file, err := disk.Open(name(child, at(39)))
			if err == nil {
				_, err = file.WriteAt([]byte{0, 0}, 0)
			}
			return err
		}, name(child, at(39))},
	} {
		disk := vfs.NewMem()
		r := &restored{place: &place{t, archive.NewDirStoreOn(disk, "to")}}
		w := r.open(archive.Config{Size: 1}, shardOf(parent))
		for n := range 3 {
			r.write(w, parent, n*10, n*10+10)
		}
		r.end(w)
		w = r.open(archive.Config{Size: 1}, shardOf(child, parent))
		r.write(w, child, 30, 40)
		r.write(w, child, 40, 50)
		if _, err := archive.NewReader(r.store).Part(t.Context(), orders); err != nil {
			t.Fatal(err)
		}
		if err := c.spoil(disk); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		_, err := archive.NewReader(r.store).Part(t.Context(), orders)
		if !errors.Is(err, archive.ErrUnusableLink) || !strings.Contains(err.Error(), c.names[3:]) {
			t.Errorf("%s: %v, want the name of %s", what, err, c.names)
		}
	}
}
