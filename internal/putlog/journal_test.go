package putlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/putlog"
	"github.com/runnel-stream/runnel/internal/vfs"
)

const name = "folder/load.state"

func load() putlog.Identity {
	return putlog.Identity{
		Stream: "orders", Created: time.UnixMilli(1_700_000_000_000), Key: "id", Format: "ndjson",
		Order: "key", Columns: []string{"a,b"}, Files: []putlog.File{{Name: "a.ndjson", Size: 100}, {Name: "b", Size: 7}},
	}
}

func newFS(t *testing.T) *vfs.Mem {
	t.Helper()
	fs := vfs.NewCrashable()
	if err := fs.MkdirAll("folder"); err != nil {
		t.Fatal(err)
	}
	return fs
}

func open(t *testing.T, fs vfs.FS) *putlog.Journal {
	t.Helper()
	j, err := putlog.Open(name, load(), putlog.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func unit(number uint64, marks ...uint64) putlog.FrozenUnit {
	return putlog.FrozenUnit{
		Unit: aggregate.Unit{
			Producer: aggregate.ProducerID{1, 2, 3}, Number: number, Low: max(1, number-1),
			Unordered: number%2 == 0,
		},
		PartitionKey: fmt.Sprint("key ", number), ExplicitHashKey: strings.Repeat("7", int(number%3)),
		Data: []byte(fmt.Sprintf("data of %d: \x00\xf1put", number)), Marks: marks,
		FrozenAt:   time.UnixMilli(1_700_000_000_000 + int64(number)),
		ServerTime: time.UnixMilli(1_700_000_003_000 + int64(number)),
		BootID:     "a boot", BootTime: time.Duration(number)*time.Hour + 1,
	}
}

// oldUnit is unit as it was before units had the stream's time.
func oldUnit(number uint64, marks ...uint64) putlog.FrozenUnit {
	u := unit(number, marks...)
	u.ServerTime, u.BootID, u.BootTime = time.Time{}, "", 0
	return u
}

func settled(number uint64, fate putlog.Fate) putlog.SettledUnit {
	return putlog.SettledUnit{
		Producer: aggregate.ProducerID{1, 2, 3}, Number: number, Fate: fate,
	}
}

func line(mark uint64) []byte { return fmt.Appendf(nil, "record %d", mark) }

// readTo reads records up to the mark and returns those that are to be put.
func readTo(t *testing.T, j *putlog.Journal, from, to uint64) (put []uint64) {
	t.Helper()
	for want := from; want < to; want++ {
		mark, skip, err := j.Read(line(want))
		if err != nil || mark != want {
			t.Fatalf("record %d has mark %d: %v", want, mark, err)
		}
		if !skip {
			put = append(put, mark)
		}
	}
	return put
}

func freeze(t *testing.T, j *putlog.Journal, units ...putlog.FrozenUnit) {
	t.Helper()
	if err := j.Frozen(t.Context(), units); err != nil {
		t.Fatal(err)
	}
}

func describe(units []putlog.FrozenUnit) string {
	var all []string
	for _, u := range units {
		all = append(all, fmt.Sprintf("%+v", u))
	}
	return strings.Join(all, "\n")
}

// A state of the version before units had the stream's time is opened, and goes on. The file was
// written by that version.
func TestStateBeforeServerTime(t *testing.T) {
	content, err := os.ReadFile("testdata/before-server-time.state")
	if err != nil {
		t.Fatal(err)
	}
	fs := newFS(t)
	file, err := fs.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
	want := []putlog.FrozenUnit{oldUnit(2, 1), oldUnit(3, 5), oldUnit(4, 7, 3)}
	for _, puts := range []string{"[4 6 8]", "[6 8]"} {
		j := open(t, fs)
		if got := describe(j.Resume()); got != describe(want) {
			t.Errorf("resumed\n%s\nwant\n%s", got, describe(want))
		}
		if put := fmt.Sprint(readTo(t, j, 0, 9)); put != puts {
			t.Errorf("to be put: %v, want %v", put, puts)
		}
		freeze(t, j, unit(5, 4))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		want = append(want, unit(5, 4))
	}
}

// Units without a fate are sent again. Records in no unit, and those with the fate Again that no
// later unit holds, are put. All other records are skipped.
func TestResume(t *testing.T) {
	fs := newFS(t)
	j := open(t, fs)
	if put := readTo(t, j, 0, 9); len(put) != 9 {
		t.Errorf("a new load puts %v", put)
	}
	freeze(t, j, unit(1, 0, 2), unit(2, 1), unit(3, 5))
	j.Settled([]putlog.SettledUnit{settled(1, putlog.Stored), settled(3, putlog.Undelivered)})
	freeze(t, j, unit(4, 7, 3), unit(5, 6))
	j.Settled([]putlog.SettledUnit{settled(4, putlog.Again), settled(9, putlog.Stored)})
	freeze(t, j, unit(6, 3))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // reading it changes nothing
		j = open(t, fs)
		want := describe([]putlog.FrozenUnit{unit(2, 1), unit(5, 6), unit(6, 3)})
		if got := describe(j.Resume()); got != want {
			t.Errorf("resumed\n%s\nwant\n%s", got, want)
		}
		if put := fmt.Sprint(readTo(t, j, 0, 10)); put != "[4 7 8 9]" {
			t.Errorf("put %s", put)
		}
		if j.Done() || j.Finish() == nil {
			t.Error("it is done with open units")
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A unit that was resumed can be frozen again as others, in the next run.
func TestResumedUnitComesAgain(t *testing.T) {
	fs := newFS(t)
	j := open(t, fs)
	readTo(t, j, 0, 2)
	freeze(t, j, unit(1, 0, 1))
	_ = j.Close()
	j = open(t, fs)
	j.Settled([]putlog.SettledUnit{settled(1, putlog.Again)})
	freeze(t, j, unit(2, 0))
	_ = j.Close()
	j = open(t, fs)
	defer j.Close()
	if put := fmt.Sprint(readTo(t, j, 0, 3), len(j.Resume())); put != "[1 2] 1" {
		t.Errorf("put and resumed %s", put)
	}
}

func TestDone(t *testing.T) {
	fs := newFS(t)
	j := open(t, fs)
	readTo(t, j, 0, 2)
	freeze(t, j, unit(1, 0))
	j.Settled([]putlog.SettledUnit{settled(1, putlog.Stored)})
	if err := j.Finish(); err == nil {
		t.Error("finished with a record that is in no unit")
	}
	freeze(t, j, unit(2, 1))
	if err := j.Finish(); err == nil {
		t.Error("finished with an open unit")
	}
	j.Settled([]putlog.SettledUnit{settled(2, putlog.Stored)})
	if err := j.Finish(); err != nil || !j.Done() {
		t.Fatal(err)
	}
	_ = j.Close()
	if j = open(t, fs); !j.Done() {
		t.Error("a complete load is not done")
	}
	if bytes.Contains(read(t, fs), []byte("data of")) {
		t.Error("the state of a complete load has its units")
	}
	_ = j.Close()
	longer := load()
	longer.Files[1].Size++
	j, err := putlog.Open(name, longer, putlog.Options{FS: fs})
	if err != nil || j.Done() {
		t.Errorf("an input that has grown is done: %v", err)
	}
	_ = j.Close()
}

// Open refuses another load, and the error names the difference.
func TestOther(t *testing.T) {
	fs := newFS(t)
	_ = open(t, fs).Close()
	for want, change := range map[string]func(*putlog.Identity){
		"the stream was orders and is other":         func(i *putlog.Identity) { i.Stream = "other" },
		"was created at":                             func(i *putlog.Identity) { i.Created = i.Created.Add(time.Second) },
		"the key was id and is n":                    func(i *putlog.Identity) { i.Key = "n" },
		`the hash key was "" and is "h"`:             func(i *putlog.Identity) { i.HashKey = "h" },
		`the source of keys was "" and is "table:t"`: func(i *putlog.Identity) { i.Keys = "table:t" },
		`the header of`:                              func(i *putlog.Identity) { i.Columns = []string{"b,a"} },
		"the format was":                             func(i *putlog.Identity) { i.Format = "csv" },
		"the order was":                              func(i *putlog.Identity) { i.Order = "shard" },
		"the list of files was":                      func(i *putlog.Identity) { i.Files = i.Files[:1] },
		"has 99 bytes and had 100":                   func(i *putlog.Identity) { i.Files[0].Size-- },
	} {
		other := load()
		change(&other)
		_, err := putlog.Open(name, other, putlog.Options{FS: fs})
		if err == nil || !strings.Contains(err.Error(), want) ||
			!errors.Is(err, putlog.ErrOther) && !errors.Is(err, putlog.ErrInput) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	hashed := load()
	hashed.HashKey = "/h"
	j, err := putlog.Open("hashed", hashed, putlog.Options{FS: fs})
	if err == nil {
		err = j.Close()
	}
	if _, other := putlog.Open("hashed", load(), putlog.Options{FS: fs}); err != nil ||
		!errors.Is(other, putlog.ErrOther) || !strings.Contains(other.Error(), `was "/h" and is ""`) {
		t.Errorf("a state with a hash key: %v, %v", err, other)
	}
	if j, err = putlog.Open("hashed", hashed, putlog.Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
	j = open(t, fs) // which no refusal has changed, nor locked
	defer j.Close()
	if _, err := putlog.Open(name, load(), putlog.Options{FS: fs}); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
}

func lines(n uint64, change func(mark uint64, line []byte) []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for mark := range n {
			if !yield(change(mark, line(mark)), nil) {
				return
			}
		}
	}
}

// An input that is not the one that was read is found before anything is sent.
func TestInput(t *testing.T) {
	fs := newFS(t)
	j := open(t, fs)
	readTo(t, j, 0, 5)
	freeze(t, j, unit(1, 3))
	_ = j.Close()
	j = open(t, fs)
	same := func(_ uint64, line []byte) []byte { return line }
	if err := j.Verify(lines(9, same)); err != nil {
		t.Error(err)
	}
	if err := j.Verify(lines(4, same)); !errors.Is(err, putlog.ErrInput) {
		t.Errorf("a shorter input: %v", err)
	}
	for changed := range uint64(9) {
		err := j.Verify(lines(9, func(mark uint64, line []byte) []byte {
			if mark == changed {
				line = append(line, '!')
			}
			return line
		}))
		if errors.Is(err, putlog.ErrInput) != (changed < 5) {
			t.Errorf("record %d changed: %v", changed, err)
		}
	}
	var err error
	for range 5 {
		_, _, err = j.Read([]byte("another"))
	}
	if !errors.Is(err, putlog.ErrInput) {
		t.Errorf("an input that changed after it was verified: %v", err)
	}
	_ = j.Close()
	// A run that has read less than the one before still asks for all that one had read.
	j = open(t, fs)
	readTo(t, j, 0, 2)
	freeze(t, j, unit(2, 4))
	_ = j.Close()
	j = open(t, fs)
	defer j.Close()
	if err := j.Verify(lines(4, same)); !errors.Is(err, putlog.ErrInput) {
		t.Errorf("a shorter input, two runs later: %v", err)
	}
}

// A disk that fails breaks the journal for good: nothing may be sent that is not on it.
func TestBrokenDisk(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpSync} {
		fail := false
		fs := vfs.Inject(newFS(t), func(op vfs.Op) error {
			if fail && op.Kind == kind {
				return vfs.ErrNoSpace
			}
			return nil
		})
		j := open(t, fs)
		readTo(t, j, 0, 2)
		fail = true
		if err := j.Frozen(t.Context(), []putlog.FrozenUnit{unit(1, 0)}); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("%s: %v", kind, err)
		}
		fail = false
		if err := j.Frozen(t.Context(), []putlog.FrozenUnit{unit(2, 1)}); !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("after a failed %s: %v", kind, err)
		}
		_ = j.Close()
	}
	j := open(t, newFS(t))
	defer j.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Frozen(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// A file that is no journal is left as it is.
func TestNotJournal(t *testing.T) {
	fs := newFS(t)
	for _, content := range []string{"", "{\"id\":1}\n", "\xf1put\x01\x00\x00\x00"} {
		write(t, fs, []byte(content))
		if _, err := putlog.Open(name, load(), putlog.Options{FS: fs}); !errors.Is(err,
			putlog.ErrNotJournal) {
			t.Errorf("%q: %v", content, err)
		}
		if got := string(read(t, fs)); got != content {
			t.Errorf("%q became %q", content, got)
		}
	}
}

func write(t testing.TB, fs vfs.FS, content []byte) {
	t.Helper()
	file, err := fs.Create(name)
	if err == nil {
		_, err = file.WriteAt(content, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
}

func read(t testing.TB, fs vfs.FS) []byte {
	t.Helper()
	file, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size, _ := file.Size()
	content := make([]byte, size)
	if size > 0 {
		if _, err := file.ReadAt(content, 0); err != nil {
			t.Fatal(err)
		}
	}
	return content
}
