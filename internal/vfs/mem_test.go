package vfs

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestMemTakesRoomOnlyWhereWritten(t *testing.T) {
	m := NewMem()
	f, err := m.Create("f")
	must(t, err)
	must(t, f.Allocate(1<<40))
	write(t, f, 5*pageSize, "x")
	pages := 0
	for _, pg := range m.root.entries["f"].data.pages {
		if pg != nil {
			pages++
		}
	}
	if pages != 1 {
		t.Errorf("%d pages for one byte", pages)
	}
	if m.Used() != 1<<40 {
		t.Errorf("Used = %d", m.Used())
	}
	must(t, m.Remove("f"))
	if m.Used() != 0 {
		t.Errorf("Used after Remove = %d", m.Used())
	}
	must(t, f.Allocate(1<<41)) // open, but without a name: not counted
	if m.Used() != 0 {
		t.Errorf("Used of a file without a name = %d", m.Used())
	}
}

func TestMemLimit(t *testing.T) {
	m := NewMem()
	m.SetLimit(1000)
	f, err := m.Create("f")
	must(t, err)
	must(t, f.Allocate(600))
	wantErr(t, f.Allocate(1001), ErrNoSpace)
	write(t, f, 0, "inside costs nothing")
	if n, err := f.WriteAt(make([]byte, 500), 600); n != 400 {
		t.Errorf("a write beyond the limit wrote %d, %v", n, err)
	} else {
		wantErr(t, err, ErrNoSpace)
	}
	g, err := m.Create("g")
	must(t, err)
	if n, err := g.WriteAt([]byte("x"), 0); n != 0 || err == nil {
		t.Errorf("a write on a full disk = %d, %v", n, err)
	}
	must(t, m.Link("f", "h"))
	must(t, m.Remove("f"))
	wantErr(t, g.Allocate(1), ErrNoSpace) // f's bytes still have a name
	must(t, f.Truncate(999))
	must(t, g.Allocate(1))
	must(t, m.Rename("g", "h"))
	if m.Used() != 1 {
		t.Errorf("Used = %d", m.Used())
	}
}

// A Mem file behaves like a byte slice, tracked or not.
func TestMemFileIsASlice(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newMem(rapid.Bool().Draw(r, "track"))
		f, err := m.Create("f")
		if err != nil {
			r.Fatal(err)
		}
		var model []byte
		resize := func(n int) {
			if n <= len(model) {
				model = model[:n:n]
			}
			model = append(model, make([]byte, n-len(model))...)
		}
		place := rapid.Custom(func(r *rapid.T) int { // near the borders of pages
			pages := rapid.IntRange(0, 3).Draw(r, "page")
			return max(0, pages*pageSize+rapid.IntRange(-600, 600).Draw(r, "by"))
		})
		r.Repeat(map[string]func(*rapid.T){
			"write": func(r *rapid.T) {
				off, n := place.Draw(r, "off"), rapid.IntRange(1, 2*pageSize).Draw(r, "n")
				p := bytes.Repeat([]byte{rapid.Byte().Draw(r, "byte")}, n)
				if _, err := f.WriteAt(p, int64(off)); err != nil {
					r.Fatal(err)
				}
				resize(max(len(model), off+n))
				copy(model[off:], p)
			},
			"truncate": func(r *rapid.T) {
				size := place.Draw(r, "size")
				if err := f.Truncate(int64(size)); err != nil {
					r.Fatal(err)
				}
				resize(size)
			},
			"allocate": func(r *rapid.T) {
				size := place.Draw(r, "size")
				if err := f.Allocate(int64(size)); err != nil {
					r.Fatal(err)
				}
				resize(max(size, len(model)))
			},
			"sync": func(r *rapid.T) {
				if err := f.Sync(); err != nil {
					r.Fatal(err)
				}
			},
			"": func(r *rapid.T) {
				got := make([]byte, len(model)+1)
				n, err := f.ReadAt(got, 0)
				if err != io.EOF || !bytes.Equal(got[:n], model) {
					r.Fatalf("%d bytes, %v; want %d", n, err, len(model))
				}
				if m.Used() != int64(len(model)) {
					r.Fatalf("Used = %d, want %d", m.Used(), len(model))
				}
				wantMemory(r, m)
			},
		})
	})
}

// wantMemory checks Memory against the pages of the files.
func wantMemory(t interface{ Fatalf(string, ...any) }, m *Mem) {
	var held int64
	for _, n := range m.root.entries {
		held += bytesIn(n.data.pages)
	}
	if m.Memory() != held {
		t.Fatalf("Memory = %d, and the files' pages have %d bytes", m.Memory(), held)
	}
}

// TestMemShortFiles checks that a short file takes little, and that it keeps its content as its first
// page grows.
func TestMemShortFiles(t *testing.T) {
	m := NewMem()
	f, err := m.Create("f")
	must(t, err)
	var want []byte
	for n := 1; n < 3*pageSize; n += n/3 + 1 {
		more := bytes.Repeat([]byte{byte(n)}, n-len(want))
		_, err := f.WriteAt(more, int64(len(want)))
		must(t, err)
		want = append(want, more...)
		got := make([]byte, n)
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("a file of %d bytes reads differently: %v", n, err)
		}
		least, most := int64(n), max(firstPage, 2*int64(n))
		if n > pageSize {
			most = int64(n) + pageSize
		}
		if got := m.Memory(); got < least || got > most {
			t.Errorf("a file of %d bytes takes %d", n, got)
		}
		wantMemory(t, m)
	}
}

// TestMemMemory checks that removed and replaced files give their memory back, once, and that the
// disk after a crash counts its own.
func TestMemMemory(t *testing.T) {
	m := NewCrashable()
	for _, name := range []string{"f", "g", "h"} {
		f, err := m.Create(name)
		must(t, err)
		_, err = f.WriteAt(make([]byte, 3*pageSize), pageSize/2)
		must(t, err)
		must(t, f.Allocate(10*pageSize))
	}
	must(t, m.SyncDir("."))
	wantMemory(t, m)
	f, err := m.Open("f")
	must(t, err)
	must(t, m.Remove("f"))
	_, err = f.WriteAt([]byte{1}, 5*pageSize) // a handle is left
	must(t, err)
	must(t, f.Truncate(0))
	must(t, m.Rename("g", "h"))
	wantMemory(t, m)
	if want := int64(4 * pageSize); m.Memory() != want {
		t.Errorf("Memory = %d, want %d", m.Memory(), want)
	}
	after := m.Crash(rand.New(rand.NewPCG(1, 1)))
	wantMemory(t, after)
}

func BenchmarkMemAppend(b *testing.B) {
	for _, c := range []struct {
		name string
		fs   *Mem
	}{{"plain", NewMem()}, {"crashable", NewCrashable()}} {
		b.Run(c.name, func(b *testing.B) {
			f, err := c.fs.Create("f")
			if err != nil {
				b.Fatal(err)
			}
			p := make([]byte, 32<<10)
			b.SetBytes(int64(len(p)))
			for i := range b.N {
				if _, err := f.WriteAt(p, int64(i%1024*len(p))); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
