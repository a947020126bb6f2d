package fsck_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
	"github.com/runnel-stream/runnel/server/internal/fsck"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// seedBase is the first seed of a random test: RUNNEL_SEED, or the time.
func seedBase() uint64 {
	if s, err := strconv.ParseUint(os.Getenv("RUNNEL_SEED"), 10, 64); err == nil {
		return s
	}
	return uint64(time.Now().UnixNano())
}

// flipByte changes one byte of a file, and describes it.
func (o *original) flipByte(t testing.TB, disk *vfs.Mem, rng *rand.Rand) string {
	files := slices.Sorted(maps.Keys(tree(t, disk, "data")))
	for {
		name := files[rng.IntN(len(files))]
		content := read(t, disk, name)
		end := len(content)
		if strings.HasSuffix(name, ".wal") && rng.IntN(8) > 0 { // mostly where something is
			end = len(strings.TrimRight(string(content), "\x00"))
		}
		if end == 0 {
			continue
		}
		at := rng.IntN(end)
		content[at] ^= byte(1 + rng.IntN(255))
		write(t, disk, name, content)
		return fmt.Sprintf("%s with another byte %d", name, at)
	}
}

// without returns the served lines but those of the lost records. In these directories the records
// of a shard have the indexes from 1 on.
func (o *original) without(lost []fsck.Loss) (lines []string) {
	stream, index := "", uint64(0)
	for _, line := range o.served {
		if !strings.HasPrefix(line, "  ") {
			stream, _, _ = strings.Cut(line, " ")
			index = 0
			lines = append(lines, line)
			continue
		}
		index++
		shard := strings.Fields(line)[0]
		if !slices.ContainsFunc(lost, func(l fsck.Loss) bool {
			return l.Stream == stream && l.ShardID == shard && l.From <= index && index < l.To
		}) {
			lines = append(lines, line)
		}
	}
	return lines
}

// unsaved returns the served lines without those of saved streams. It checks that these streams have
// as many records as the report says, in the order of the original, with their keys and data. The
// ids of shards and the sequence numbers differ.
func (o *original) unsaved(
	t testing.TB, got []string, saved []fsck.Saved, what string,
) (rest []string) {
	t.Helper()
	content := func(lines []string) (short []string) {
		for _, line := range recordsOf(lines) {
			short = append(short, strings.SplitN(strings.TrimLeft(line, " "), " ", 3)[2])
		}
		return short
	}
	streams := map[string][]string{}
	stream := ""
	for _, line := range got {
		if !strings.HasPrefix(line, "  ") {
			stream, _, _ = strings.Cut(line, " ")
		}
		if slices.ContainsFunc(saved, func(s fsck.Saved) bool { return s.Stream == stream }) {
			streams[stream] = append(streams[stream], line)
		} else {
			rest = append(rest, line)
		}
	}
	for _, s := range saved {
		records := content(streams[s.Stream])
		if uint64(len(records)) != s.Records || s.Records == 0 ||
			!isSubsequence(records, content(o.served)) {
			t.Fatalf("%s: the stream %s has %d records, not %d of the original's", what, s.Stream,
				len(records), s.Records)
		}
	}
	return rest
}

// recordsOf returns the lines of records.
func recordsOf(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return !strings.HasPrefix(line, "  ")
	})
}

// isSubsequence reports whether all of part are in whole, in order.
func isSubsequence(part, whole []string) bool {
	for _, line := range whole {
		if len(part) > 0 && part[0] == line {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// exact reports whether the losses name every lost thing.
func exact(lost []fsck.Loss) bool {
	return !slices.ContainsFunc(lost, func(l fsck.Loss) bool { return l.Stream == "" })
}

// mend repairs a damaged copy, and compares the records that a server then serves with those of the
// original without the losses of the list. It returns the report, or nil if a repair does not apply.
func (o *original) mend(t testing.TB, disk *vfs.Mem, what string) *fsck.RepairReport {
	t.Helper()
	before := tree(t, disk, "data")
	shown, err := fsck.Repair(t.Context(), disk, "data", false, nil)
	if errors.Is(err, wal.ErrNewerFormat) || errors.Is(err, wal.ErrNoLog) {
		return nil
	}
	if err != nil || !maps.Equal(before, tree(t, disk, "data")) {
		t.Fatalf("%s: to show the repair changes something, or fails: %v", what, err)
	}
	report, err := fsck.Repair(t.Context(), disk, "data", true, nil)
	if err != nil {
		t.Fatalf("%s: %v, %+v", what, err, report)
	}
	if fmt.Sprint(shown.Lost) != fmt.Sprint(report.Lost) {
		t.Fatalf("%s: shown %v, done %v", what, shown.Lost, report.Lost)
	}
	if report.Refused != "" {
		return report
	}
	again, err := fsck.Repair(t.Context(), disk, "data", true, nil)
	if err != nil || !again.Whole {
		t.Fatalf("%s: a second repair: %v, %+v", what, err, again)
	}
	got, err := serve(t, disk, "data", nil)
	if err != nil {
		t.Fatalf("%s: %v, after %+v", what, err, report)
	}
	got = o.unsaved(t, got, report.Saved, what)
	want := o.without(report.Lost)
	switch {
	case exact(report.Lost) && !slices.Equal(got, want):
		t.Fatalf("%s: served %d lines, not %d:\n%s\nlost: %v", what, len(got), len(want),
			difference(got, want), report.Lost)
	case !isSubsequence(recordsOf(got), recordsOf(want)):
		t.Fatalf("%s: served records that were not put, or that count as lost:\n%s\nlost: %v",
			what, difference(got, want), report.Lost)
	}
	if len(report.Lost) > 0 {
		var list []map[string]any
		err := jsonFile(t, disk, report.List, &list)
		if err != nil || len(list) != len(report.Lost) {
			t.Fatalf("%s: the list %s: %v, %v", what, report.List, list, err)
		}
	}
	return report
}

// goOn puts records into a repaired directory. They and the ones before are there after a restart.
func (o *original) goOn(t testing.TB, disk *vfs.Mem, what string) {
	t.Helper()
	before, err := serve(t, disk, "data", nil)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	s, err := open(t, disk, config("data"))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	const count = 12
	for i := range count {
		if _, err := (client{s}).kinesis("PutRecord", object{
			"StreamName": "orders", "PartitionKey": strconv.Itoa(i), "Data": "bmV3",
		}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	sound(t, disk)
	after, err := serve(t, disk, "data", nil)
	if err != nil || !isSubsequence(before, after) || len(after) != len(before)+count {
		t.Fatalf("%s: %d lines, then %d, %v", what, len(before), len(after), err)
	}
}

func difference(got, want []string) string {
	var out strings.Builder
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintf(&out, "+ %.90s\n", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintf(&out, "- %.90s\n", line)
		}
	}
	return out.String()
}

// One damaged byte anywhere costs at most one record, one change of the streams, or one of items.
// TestRepairOfOneByte prints the seed of a failure: RUNNEL_SEED runs it again.
func TestRepairOfOneByte(t *testing.T) {
	base := seedBase()
	kinds := map[string]int{}
	old := filled(t)[1]
	forgetBeginning(t, old.disk)
	for _, o := range append(filled(t), old) {
		for i := range uint64(150 * soak()) {
			disk := o.clone(t)
			rng := rand.New(rand.NewPCG(base+i, 0))
			what := fmt.Sprintf("seed %d, %s: %s", base+i, o.name, o.flipByte(t, disk, rng))
			report := o.mend(t, disk, what)
			if report == nil {
				continue
			}
			records := uint64(0)
			for _, l := range report.Lost {
				kinds[l.Kind]++
				records += l.To - l.From
			}
			if records > 1 || report.Refused != "" || !report.OK {
				t.Fatalf("%s: %d records lost: %+v", what, records, report)
			}
			if i%5 == 0 {
				o.goOn(t, disk, what)
			}
			if report.Whole {
				kinds["whole"]++
			} else if len(report.Lost) == 0 {
				kinds["saved"]++
			}
		}
	}
	t.Logf("%v", kinds)
	for _, kind := range []string{"whole", "saved", fsck.LossRecords} {
		if kinds[kind] == 0 {
			t.Errorf("no case of %s in %v", kind, kinds)
		}
	}
	if kinds[fsck.LossUnknown] > 0 {
		t.Errorf("the losses of a single byte are not known: %v", kinds)
	}
}

// Several damages of any kind: the repaired directory serves nothing but records that were put, and
// all that the list does not name.
func TestRepairOfMuchDamage(t *testing.T) {
	base := seedBase()
	refused := 0
	for _, o := range filled(t) {
		for i := range uint64(100 * soak()) {
			disk := o.clone(t)
			rng := rand.New(rand.NewPCG(base+i, 1))
			what := fmt.Sprintf("seed %d, %s:", base+i, o.name)
			for range 1 + rng.IntN(3) {
				if len(tree(t, disk, "data")) > 0 {
					what += " " + o.hurt(t, disk, rng)
				}
			}
			if report := o.mend(t, disk, what); report != nil && report.Refused != "" {
				refused++
			}
		}
	}
	t.Logf("%d refused", refused)
}

// A log file that was cut off loses its frames behind the cut, of whatever kind. A repair that knows
// all about the frame at the cut still lists the others.
func TestRepairOfACutFile(t *testing.T) {
	o := filled(t)[0]
	for at := 4096; at < 8300; at += 61 {
		disk := o.clone(t)
		for name, content := range tree(t, disk, "data") {
			hurt := []byte(content)
			switch {
			case strings.HasPrefix(name, "data/snapshot-"):
				hurt[len(hurt)/2] ^= 1 // so the log is needed from its beginning
			case strings.HasSuffix(name, "/000000000002.wal"):
				hurt = hurt[:at]
			}
			write(t, disk, name, hurt)
		}
		o.mend(t, disk, fmt.Sprintf("cut at %d", at))
	}
}

// durable syncs the names of a folder's files.
func durable(t testing.TB, disk vfs.FS, dir string) {
	t.Helper()
	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := disk.Stat(dir + "/" + name); err == nil && info.IsDir() {
			durable(t, disk, dir+"/"+name)
		}
	}
	if err := disk.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
}

// A crash at any change of the disk leaves the directory as it was or repaired: a further one ends
// with the same records, and one crash never adds a loss. The same holds if a change fails.
func TestRepairSurvivesCrashes(t *testing.T) {
	o := filled(t)[0]
	forgetBeginning(t, o.disk)
	hurt := vfs.NewCrashable()
	copyTree(t, o.disk, "data", hurt, "data")
	name := "data/shards/1/00000000000000000001.seg"
	content := read(t, hurt, name)
	content[40] ^= 1
	write(t, hurt, name, content)
	newest := "data/wal/000000000005.wal"
	content = read(t, hurt, newest)
	content[4096+100] ^= 1
	write(t, hurt, newest, content)
	durable(t, hurt, "data")
	whole := hurt.Crash(rand.New(rand.NewPCG(0, 0)))
	report, err := fsck.Repair(t.Context(), whole, "data", true, nil)
	if err != nil || !report.OK || len(report.Lost) == 0 {
		t.Fatalf("%v, %+v", err, report)
	}
	want := o.without(report.Lost)
	for nth := 1; ; nth++ {
		disk := hurt.Crash(rand.New(rand.NewPCG(0, 0)))
		rng := rand.New(rand.NewPCG(uint64(nth), 9))
		var after *vfs.Mem
		count := 0
		failing := vfs.Inject(disk, func(op vfs.Op) error {
			if !op.Kind.Changes() || op.Kind == vfs.OpLock {
				return nil
			}
			if count++; count == nth {
				after = disk.Crash(rng)
				return vfs.ErrInjected
			}
			return nil
		})
		_, err := fsck.Repair(t.Context(), failing, "data", true, nil)
		if after == nil {
			if err != nil || nth < 20 {
				t.Errorf("%d changes: %v", nth, err)
			}
			return
		}
		for how, left := range map[string]*vfs.Mem{"power cut": after, "failed call": disk} {
			again, err := fsck.Repair(t.Context(), left, "data", true, nil)
			if err != nil || !again.OK {
				t.Fatalf("change %d, %s: %v, %+v", nth, how, err, again)
			}
			lists := 0
			for file := range tree(t, left, "data") {
				if strings.HasPrefix(file, "data/lost-") && strings.HasSuffix(file, ".json") {
					lists++
				}
			}
			got, err := serve(t, left, "data", nil)
			if err != nil || !slices.Equal(got, want) || lists != 1 {
				t.Fatalf("change %d, %s: %v, %d lists\n%s", nth, how, err, lists,
					difference(got, want))
			}
		}
	}
}

// A change of items that cannot be read, or does not fit, is listed.
func TestRepairListsItems(t *testing.T) {
	o := filled(t)[0]
	disk := o.clone(t)
	newest, at := "", 0
	for name, content := range tree(t, disk, "data/wal") {
		// The key is in the last change of items.
		if found := strings.LastIndex(content, "two"); found >= 0 && name > newest {
			newest, at = name, found
		}
	}
	content := read(t, disk, newest)
	content[at] ^= 1
	write(t, disk, newest, content)
	report := o.mend(t, disk, "an item")
	if len(report.Lost) != 1 || report.Lost[0].Kind != fsck.LossItems ||
		report.Lost[0].File != newest {
		t.Errorf("%+v", report.Lost)
	}
}

// breakCreation damages so many bytes of the change that made the newest stream.
func breakCreation(t *testing.T, disk *vfs.Mem, newest string, damaged int) {
	t.Helper()
	for name, content := range tree(t, disk, "data/wal") {
		at := strings.LastIndex(content, `"op":"create"`)
		if at < 0 || !strings.Contains(content[at:], `"`+newest+`"`) {
			continue
		}
		p := []byte(content)
		for i := range damaged {
			p[at+3+i*7] ^= 1
		}
		write(t, disk, name, p)
	}
}

// A change of the streams with one damaged byte is mended, and one with two is lost. The records of
// the stream that it made are saved in another.
func TestRepairOfAChangeOfStreams(t *testing.T) {
	o := filled(t)[0]
	for damaged := 1; damaged <= 2; damaged++ {
		disk := o.clone(t)
		breakCreation(t, disk, "returns", damaged)
		report := o.mend(t, disk, fmt.Sprintf("%d bytes", damaged))
		if damaged == 1 {
			if len(report.Lost) > 0 || len(report.Saved) > 0 {
				t.Errorf("%+v, %+v", report.Lost, report.Saved)
			}
			continue
		}
		if len(report.Lost) != 1 || report.Lost[0].Kind != fsck.LossStreams {
			t.Errorf("%+v", report.Lost)
		}
		want := []fsck.Saved{{
			Folder: "3", Records: 20, Account: "000000000000", Region: "us-east-1", Stream: "lost-3",
		}}
		if !slices.Equal(report.Saved, want) {
			t.Errorf("%+v", report.Saved)
		}
		o.goOn(t, disk, "a lost stream")
	}
}

// The records of a lost stream are saved from its segments, too, if their frames are lost with the
// change that made the stream: the log is cut off in front of it.
func TestRepairSavesALostStreamFromItsSegments(t *testing.T) {
	o := filled(t)[0]
	disk := o.clone(t)
	for name, content := range tree(t, disk, "data/wal") {
		if at := strings.Index(content, `"op":"create"`); at >= 0 &&
			strings.Contains(content, "returns") {
			cut := []byte(content)
			clear(cut[at&^4095:])
			write(t, disk, name, cut)
			for later := range tree(t, disk, "data/wal") {
				if later > name {
					write(t, disk, later, make([]byte, len(content)))
				}
			}
		}
	}
	report := o.mend(t, disk, "the end of the log")
	if len(report.Saved) != 1 || report.Saved[0].Folder != "3" || len(report.Lost) == 0 {
		t.Errorf("%+v", report)
	}
	t.Logf("%+v, lost: %v", report.Saved, report.Lost)
}

// opened opens a server with its client, whose calls must not fail.
func opened(t *testing.T, disk vfs.FS) (*server.Server, client, func(any, error)) {
	t.Helper()
	s, err := open(t, disk, config("data"))
	if err != nil {
		t.Fatal(err)
	}
	return s, client{s}, func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A lost split opens its parent again. The records of each child are saved in a stream of its own.
func TestRepairOfALostSplit(t *testing.T) {
	disk := vfs.NewMem()
	s, c, must := opened(t, disk)
	put := func(count int) {
		for i := range count {
			must(c.kinesis("PutRecord", object{
				"StreamName": "orders", "PartitionKey": strconv.Itoa(i), "Data": "eA==",
			}))
		}
	}
	must(c.kinesis("CreateStream", object{"StreamName": "orders", "ShardCount": 1}))
	put(10)
	must(c.kinesis("SplitShard", object{
		"StreamName": "orders", "ShardToSplit": "shardId-000000000000",
		"NewStartingHashKey": "170141183460469231731687303715884105728",
	}))
	put(20)
	o := &original{name: "split", disk: idle(t, disk)}
	must(nil, s.Close(t.Context()))
	var err error
	o.served, err = serve(t, o.clone(t), "data", nil)
	must(nil, err)
	damaged := o.clone(t)
	for name, content := range tree(t, damaged, "data/wal") {
		if at := strings.Index(content, `"op":"scale"`); at >= 0 {
			p := []byte(content)
			p[at+3], p[at+10] = p[at+3]^1, p[at+10]^1
			write(t, damaged, name, p)
		}
	}
	report := o.mend(t, damaged, "a lost split")
	sum := uint64(0)
	for _, saved := range report.Saved {
		sum += saved.Records
	}
	if len(report.Saved) != 2 || sum != 20 || len(report.Lost) != 1 {
		t.Errorf("saved %+v, lost %+v", report.Saved, report.Lost)
	}
	o.goOn(t, damaged, "a lost split")
}

// A folder that is left of a deleted stream does not come back as a saved one, whether the log still
// has the deletion or not.
func TestRepairLeavesADeletedStream(t *testing.T) {
	t.Run("in the log", func(t *testing.T) {
		o, folder := deleted(t, 0)
		damaged := o.clone(t)
		copyTree(t, folder, "data/shards/1", damaged, "data/shards/1")
		breakCreation(t, damaged, "orders", 1)
		report := o.mend(t, damaged, "a change")
		if len(report.Saved) != 0 || len(report.Lost) != 0 || !report.Written {
			t.Errorf("saved %+v, lost %+v", report.Saved, report.Lost)
		}
	})
	t.Run("before the snapshots", func(t *testing.T) {
		o, folder := deleted(t, 2)
		damaged := o.clone(t)
		copyTree(t, folder, "data/shards/1", damaged, "data/shards/1")
		name := "data/shards/2/00000000000000000001.seg"
		content := read(t, damaged, name)
		content[40] ^= 1
		write(t, damaged, name, content)
		report := o.mend(t, damaged, "a record of orders")
		if len(report.Saved) != 0 || len(report.Lost) != 1 {
			t.Errorf("saved %+v, lost %+v", report.Saved, report.Lost)
		}
	})
}

// deleted returns the directory of a running server that deleted its first stream so many lives
// before, and a disk with that stream's folder. Two lives leave no snapshot before the deletion.
func deleted(t *testing.T, lives int) (o *original, folder *vfs.Mem) {
	disk := vfs.NewMem()
	s, c, must := opened(t, disk)
	fill := func(stream string) {
		for range 10 {
			must(c.kinesis("PutRecord", object{
				"StreamName": stream, "PartitionKey": "k", "Data": "eA==",
			}))
		}
	}
	must(c.kinesis("CreateStream", object{"StreamName": "gone", "ShardCount": 1}))
	fill("gone")
	folder = idle(t, disk)
	must(c.kinesis("DeleteStream", object{"StreamName": "gone"}))
	must(c.kinesis("CreateStream", object{"StreamName": "orders", "ShardCount": 1}))
	fill("orders")
	for range lives {
		must(nil, s.Close(t.Context()))
		s, c, must = opened(t, disk)
		fill("orders")
	}
	o = &original{name: "deleted", disk: idle(t, disk)}
	must(nil, s.Close(t.Context()))
	var err error
	o.served, err = serve(t, o.clone(t), "data", nil)
	must(nil, err)
	return o, folder
}

// With no whole snapshot of the streams and without the log's beginning a repair is refused,
// whether the snapshot is damaged or missing.
func TestRepairIsRefused(t *testing.T) {
	const name = "data/snapshot-00000000000000017760"
	for what, breakIt := range map[string]func(t *testing.T, disk *vfs.Mem){
		"damaged": func(t *testing.T, disk *vfs.Mem) {
			content := read(t, disk, name)
			content[30] ^= 1
			write(t, disk, name, content)
		},
		"missing": func(t *testing.T, disk *vfs.Mem) {
			if err := disk.Remove(name); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			disk := golden(t, killed)
			breakIt(t, disk)
			before := tree(t, disk, "data")
			report, err := fsck.Repair(t.Context(), disk, "data", true, nil)
			if err != nil || report.Refused == "" || report.OK || report.Written {
				t.Errorf("%v, %+v", err, report)
			}
			if !maps.Equal(before, tree(t, disk, "data")) {
				t.Error("something was changed")
			}
		})
	}
}

// Without the log and without a snapshot a repair saves the records of segments. It lists the tables
// and the streams as lost.
func TestRepairOfSegmentsAlone(t *testing.T) {
	disk := filled(t)[0].clone(t)
	for name := range tree(t, disk, "data") {
		if wal.IsSnapshot(path.Base(name)) || strings.HasPrefix(name, "data/wal/") {
			if err := disk.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	report, err := fsck.Repair(t.Context(), disk, "data", true, nil)
	if err != nil || !report.OK || len(report.Saved) == 0 {
		t.Fatalf("%v, %+v", err, report)
	}
	for _, kind := range []string{fsck.LossItems, fsck.LossStreams} {
		if !slices.ContainsFunc(report.Lost, func(l fsck.Loss) bool { return l.Kind == kind }) {
			t.Errorf("no loss is listed as %s: %+v", kind, report.Lost)
		}
	}
}

// A segment of another data directory, of the same shard, has frames that verify. A repair takes none
// of its records, and leaves a directory that starts.
func TestRepairOfASegmentOfAnotherDirectory(t *testing.T) {
	other := tree(t, filled(t)[0].disk, "data")
	cases := 0
	for _, o := range filled(t) {
		for name, content := range tree(t, o.disk, "data") {
			foreign := other[name]
			if !strings.HasSuffix(name, ".seg") || foreign == content {
				continue
			}
			for what, part := range map[string]string{
				"whole": foreign, "its beginning": foreign[:len(foreign)*2/3],
				"and more": foreign + foreign, "its end damaged": foreign[:len(foreign)-9] + "\x00",
			} {
				disk := o.clone(t)
				write(t, disk, name, []byte(part))
				what = fmt.Sprintf("%s: %s, %s", o.name, name, what)
				report := o.mend(t, disk, what)
				if o.goOn(t, disk, what); !report.Whole { // else the log has all of the segment
					cases++
				}
			}
		}
	}
	if cases == 0 {
		t.Error("the log had all segments in each case")
	}
}

// A damaged first block of a log file costs nothing, whichever byte it is.
func TestRepairOfAFirstBlock(t *testing.T) {
	o := filled(t)[0]
	files := slices.Sorted(maps.Keys(tree(t, o.disk, "data/wal")))
	mended := 0
	for _, name := range files {
		for at := 0; at < 48; at += 5 {
			disk := o.clone(t)
			content := read(t, disk, name)
			content[at] ^= 1
			write(t, disk, name, content)
			report := o.mend(t, disk, fmt.Sprintf("%s, byte %d", name, at))
			if len(report.Lost) > 0 || !report.OK {
				t.Fatalf("%s, byte %d: %+v", name, at, report)
			}
			if !report.Whole {
				mended++
			}
		}
	}
	if mended < 10 {
		t.Errorf("only %d cases of damage", mended)
	}
}

// Numbers skip ahead after damage to the log: its newest records may be lost. Not so after damage
// to a segment alone.
func TestNumbersSkipAfterALostEnd(t *testing.T) {
	for name, skips := range map[string]bool{
		"data/wal/000000000005.wal":              true,
		"data/shards/1/00000000000000000001.seg": false,
	} {
		o := filled(t)[0]
		if !skips {
			o = filled(t)[1]
		}
		disk := o.clone(t)
		content := read(t, disk, name)
		at := 40
		if skips {
			at = 4096 + 100
		}
		content[at] ^= 1
		write(t, disk, name, content)
		o.mend(t, disk, name)
		for _, st := range sound(t, disk).Streams {
			for _, sh := range st.Shards {
				if sh.Open && sh.Skips > 0 != skips {
					t.Errorf("%s: %s %s: %d skips", name, st.Name, sh.ShardID, sh.Skips)
				}
			}
		}
	}
}

// Directories of all older formats are repaired.
func TestOlderFormatsAreRepaired(t *testing.T) {
	for format := 1; format <= 4; format++ {
		for _, how := range []string{"closed", "killed"} {
			from := fmt.Sprintf("testdata/format-%d/", format)
			o := &original{name: from + how, disk: vfs.NewMem()}
			copyTree(t, vfs.OS{}, from+how, o.disk, "data")
			text, err := os.ReadFile(from + "served.txt")
			if err != nil {
				t.Fatal(err)
			}
			o.served = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			disk := o.clone(t)
			name := "data/shards/2/00000000000000000001.seg"
			content := read(t, disk, name)
			content[40] ^= 1
			write(t, disk, name, content)
			report := o.mend(t, disk, o.name)
			if len(report.Lost) != 1 || report.Lost[0].To-report.Lost[0].From != 1 {
				t.Errorf("%s: %+v", o.name, report)
			}
		}
	}
}

// On a full disk a repair fails, and changes nothing that counts: with room it succeeds.
func TestRepairOnAFullDisk(t *testing.T) {
	o := filled(t)[0]
	forgetBeginning(t, o.disk)
	disk := o.clone(t)
	name := "data/shards/1/00000000000000000001.seg"
	content := read(t, disk, name)
	content[40] ^= 1
	write(t, disk, name, content)
	failed := 0
	for room := int64(0); ; room += 3000 {
		tight := vfs.NewMem()
		copyTree(t, disk, "data", tight, "data")
		tight.SetLimit(tight.Used() + room)
		_, err := fsck.Repair(t.Context(), tight, "data", true, nil)
		tight.SetLimit(1 << 40)
		if err == nil {
			break
		}
		failed++
		report := o.mend(t, tight, fmt.Sprintf("room for %d bytes", room))
		if len(report.Lost) != 1 {
			t.Fatalf("room for %d bytes: %+v", room, report.Lost)
		}
	}
	if failed < 3 {
		t.Errorf("it failed %d times", failed)
	}
}
