package vfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// soak is how many times more random cases to run: RUNNEL_SOAK, 1 by default.
func soak() int {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// crashes runs a story and crashes after it, many times, and returns the outcomes.
func crashes(t *testing.T, story func(m *Mem), look func(m *Mem) string) map[string]int {
	t.Helper()
	seen := make(map[string]int)
	for seed := range uint64(400 * soak()) {
		m := NewCrashable()
		story(m)
		seen[look(m.Crash(rand.New(rand.NewPCG(seed, 0))))]++
	}
	t.Logf("soak: %d seeds, %d crashes", 400*soak(), 400*soak())
	return seen
}

func wantSeen(t *testing.T, seen map[string]int, want ...string) {
	t.Helper()
	for _, outcome := range want {
		if seen[outcome] == 0 {
			t.Errorf("never seen: %q", outcome)
		}
		delete(seen, outcome)
	}
	for outcome, n := range seen {
		t.Errorf("must not be: %q (%d times)", outcome, n)
	}
}

// shape describes a file's content as runs: "A2 .1 B1" is two sectors of A, a hole, one of B.
func shape(t *testing.T, m *Mem, name string) string {
	f, err := m.Open(name)
	if err != nil {
		return "none"
	}
	size, err := f.Size()
	must(t, err)
	p := make([]byte, size)
	if size > 0 {
		_, err = f.ReadAt(p, 0)
		must(t, err)
	}
	var out []string
	for len(p) > 0 {
		c := p[0]
		rest := bytes.TrimLeft(p, string(rune(c)))
		n := len(p) - len(rest)
		p = rest
		if c == 0 {
			c = '.'
		}
		if n%sectorSize != 0 {
			out = append(out, string(c)+"?")
		} else {
			out = append(out, string(c)+strconv.Itoa(n/sectorSize))
		}
	}
	return strings.Join(out, " ")
}

func fill512(t *testing.T, f File, at int, text string) {
	t.Helper()
	for i, c := range []byte(text) {
		write(t, f, int64(at+i)*sectorSize, strings.Repeat(string(rune(c)), sectorSize))
	}
}

func durableFile(t *testing.T, m *Mem, text string) File {
	f, err := m.Create("f")
	must(t, err)
	fill512(t, f, 0, text)
	must(t, f.Sync())
	must(t, m.SyncDir("/"))
	return f
}

func TestCrashKeepsWhatIsSynced(t *testing.T) {
	seen := crashes(t, func(m *Mem) {
		f := durableFile(t, m, "AB")
		must(t, f.Truncate(3*sectorSize))
		must(t, f.Sync())
	}, func(m *Mem) string { return shape(t, m, "f") })
	wantSeen(t, seen, "A1 B1 .1")
}

func TestCrashMixesSectorsAndTearsTheLast(t *testing.T) {
	seen := crashes(t, func(m *Mem) {
		f := durableFile(t, m, "AAA")
		fill512(t, f, 0, "BCD")
	}, func(m *Mem) string { return shape(t, m, "f") })
	wantSeen(t, seen, "A3", "A1 C1 A1", "B1 A2", "B1 C1 A1", "B1 C1 D1",
		"A2 D? A?", "A1 C1 D? A?", "B1 A1 D? A?", "B1 C1 D? A?", "A1 C1 D1", "A2 D1", "B1 A1 D1")
}

func TestCrashOfAGrowingFile(t *testing.T) {
	seen := crashes(t, func(m *Mem) {
		f := durableFile(t, m, "")
		must(t, f.Allocate(2*sectorSize))
		fill512(t, f, 0, "AB")
		fill512(t, f, 0, "A") // so that the last one is this
	}, func(m *Mem) string {
		info, err := m.Stat("f")
		must(t, err)
		switch info.Size() {
		case 0:
			return "empty"
		case 2 * sectorSize:
			return "full"
		default:
			return "between"
		}
	})
	wantSeen(t, seen, "empty", "full", "between")
}

func TestCrashUndoesACut(t *testing.T) {
	seen := crashes(t, func(m *Mem) {
		f := durableFile(t, m, "AB")
		must(t, f.Truncate(0))
		must(t, f.Truncate(2*sectorSize))
	}, func(m *Mem) string {
		got := shape(t, m, "f")
		if strings.Contains(got, "?") {
			return "torn"
		}
		return got
	})
	wantSeen(t, seen, "A1 B1", ".1 B1", "A1 .1", ".2", "torn")
}

func TestCrashAfterAFailedSync(t *testing.T) {
	look := func(m *Mem) string { return shape(t, m, "f") }
	failed := func(m *Mem) File {
		f := durableFile(t, m, "AA")
		fill512(t, f, 0, "BA")
		fsys := Inject(m, FailNth(1, func(op Op) bool { return op.Kind == OpSync }, nil))
		g, err := fsys.Open("f")
		must(t, err)
		wantErr(t, g.Sync(), ErrInjected)
		must(t, g.Sync()) // succeeds, as on Linux, and proves nothing
		content(t, f, strings.Repeat("B", sectorSize)+strings.Repeat("A", sectorSize))
		return f
	}
	seen := crashes(t, func(m *Mem) { failed(m) }, look)
	wantSeen(t, seen, "A2", "B1 A1")
	seen = crashes(t, func(m *Mem) {
		f := failed(m)
		fill512(t, f, 0, "B")
		must(t, f.Sync())
	}, look)
	wantSeen(t, seen, "B1 A1")
}

func TestCrashNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		story func(m *Mem)
		want  []string // of a, b, c
	}{
		{"create", func(m *Mem) { put(t, m, "d/c", "C") }, []string{"AB.", "ABC", "AB-"}},
		{"remove", func(m *Mem) { must(t, m.Remove("d/a")) }, []string{"AB.", ".B."}},
		{"link", func(m *Mem) { must(t, m.Link("d/a", "d/c")) }, []string{"AB.", "ABA"}},
		{"rename", func(m *Mem) { must(t, m.Rename("d/a", "d/c")) }, []string{"AB.", ".BA"}},
		{"replace", func(m *Mem) { must(t, m.Rename("d/a", "d/b")) }, []string{"AB.", ".A."}},
		{"synced", func(m *Mem) {
			must(t, m.Rename("d/a", "d/b"))
			must(t, m.SyncDir("d"))
		}, []string{".A."}},
		{"two", func(m *Mem) {
			must(t, m.Remove("d/a"))
			must(t, m.Remove("d/b"))
		}, []string{"AB.", ".B.", "A..", "..."}},
		{"chain", func(m *Mem) { // the second may be kept although the first is lost
			must(t, m.Rename("d/a", "d/c"))
			must(t, m.Rename("d/c", "d/b"))
		}, []string{"AB.", ".BA", "AA.", ".A."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := crashes(t, func(m *Mem) {
				must(t, m.MkdirAll("d"))
				for _, name := range []string{"a", "b"} {
					f, err := m.Create("d/" + name)
					must(t, err)
					write(t, f, 0, strings.ToUpper(name))
					must(t, f.Sync())
				}
				must(t, m.SyncDir("d"))
				c.story(m)
			}, func(m *Mem) string {
				out := ""
				for _, name := range []string{"a", "b", "c"} {
					if info, err := m.Stat("d/" + name); err != nil {
						out += "."
					} else if info.Size() == 0 || get(t, m, "d/"+name) == "\x00" {
						out += "-"
					} else {
						out += get(t, m, "d/"+name)
					}
				}
				return out
			})
			wantSeen(t, seen, c.want...)
		})
	}
}

func TestCrashAfterMkdir(t *testing.T) {
	for synced, want := range map[string][]string{"": {"", "d", "dx"}, "/": {"d", "dx"}, "/ d": {"dx"}} {
		seen := crashes(t, func(m *Mem) {
			must(t, m.Mkdir("d"))
			put(t, m, "d/x", "x")
			for _, dir := range strings.Fields(synced) {
				must(t, m.SyncDir(dir))
			}
		}, func(m *Mem) string {
			names, err := m.List("d")
			if err != nil {
				return ""
			}
			return "d" + strings.Join(names, "")
		})
		wantSeen(t, seen, want...)
	}
}

func TestCrashBetweenTwoFolders(t *testing.T) {
	look := func(m *Mem) string {
		_, a := m.Stat("a/x")
		_, b := m.Stat("b/x")
		return map[bool]string{true: "a", false: ""}[a == nil] +
			map[bool]string{true: "b", false: ""}[b == nil]
	}
	for _, synced := range []string{"", "a", "b", "a b"} {
		seen := crashes(t, func(m *Mem) {
			must(t, m.MkdirAll("a"))
			must(t, m.MkdirAll("b"))
			put(t, m, "a/x", "x")
			must(t, m.SyncDir("a"))
			must(t, m.Rename("a/x", "b/x"))
			for _, dir := range strings.Fields(synced) {
				must(t, m.SyncDir(dir))
			}
		}, look)
		if synced == "a b" {
			wantSeen(t, seen, "b")
		} else {
			wantSeen(t, seen, "a", "b")
		}
	}
}

func TestCrashFreesLocksAndKeepsLinksOneFile(t *testing.T) {
	m := NewCrashable()
	_, err := m.Lock("LOCK")
	must(t, err)
	durableFile(t, m, "A")
	must(t, m.Link("f", "g"))
	must(t, m.SyncDir("/"))
	used := m.Used()
	after := m.Crash(rand.New(rand.NewPCG(1, 1)))
	lock, err := after.Lock("LOCK")
	must(t, err)
	must(t, lock.Close())
	if after.Used() != used {
		t.Errorf("Used = %d, before %d", after.Used(), used)
	}
	put(t, after, "f", "changed")
	if got := get(t, after, "g"); got != "changed" {
		t.Errorf("the other name shows %q", got)
	}
	if got := shape(t, m, "g"); got != "A1" { // the crash does not affect the first machine
		t.Errorf("the first Mem shows %q", got)
	}
}

// One seed gives one outcome.
func TestCrashIsReproducible(t *testing.T) {
	m := NewCrashable()
	must(t, m.MkdirAll("d"))
	for i := range 20 {
		put(t, m, path.Join("d", strconv.Itoa(i)), strings.Repeat("x", i*500))
	}
	look := func() string {
		after := m.Crash(rand.New(rand.NewPCG(7, 7)))
		names, err := after.List("d")
		must(t, err)
		out := ""
		for _, name := range names {
			out += name + "=" + get(t, after, path.Join("d", name)) + ";"
		}
		return out
	}
	first := look()
	for range 5 {
		if look() != first {
			t.Fatal("two outcomes of one seed")
		}
	}
}

// A crash is one instant for all files: if a write came after the sync of another file, the crash
// never keeps the write without that sync.
func TestCrashIsAnInstant(t *testing.T) {
	disk := NewCrashable()
	first, err := disk.Create("first")
	must(t, err)
	second, err := disk.Create("second")
	must(t, err)
	must(t, disk.SyncDir("."))
	put := func(f File, n uint64) error {
		_, err := f.WriteAt(bytes.Repeat(binary.BigEndian.AppendUint64(nil, n), sectorSize/8), 0)
		return err
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := uint64(1); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := errors.Join(put(first, n), first.Sync(), put(second, n)); err != nil {
				t.Error(err)
			}
		}
	})
	get := func(left *Mem, name string) (n uint64, torn bool) {
		f, err := left.Open(name)
		must(t, err)
		p := make([]byte, sectorSize)
		_, _ = f.ReadAt(p, 0)
		n = binary.BigEndian.Uint64(p)
		return n, n != binary.BigEndian.Uint64(p[sectorSize-8:])
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		left := disk.Crash(rng)
		a, tornA := get(left, "first")
		b, tornB := get(left, "second")
		if !tornA && !tornB && a < b {
			t.Errorf("%d was synced before %d was written, and only %d is there", b, b, a)
			break
		}
	}
	close(stop)
	writer.Wait()
}
