package vfs

import (
	"errors"
	"testing"
)

func TestInjectSeesEveryOperation(t *testing.T) {
	var got []string
	fsys := Inject(NewMem(), func(op Op) error {
		got = append(got, op.String())
		return nil
	})
	must(t, fsys.MkdirAll("d"))
	f, err := fsys.Create("d/f")
	must(t, err)
	must(t, f.Allocate(10))
	write(t, f, 2, "abc")
	_, err = f.ReadAt(make([]byte, 2), 2)
	must(t, err)
	_, err = f.Size()
	must(t, err)
	must(t, f.Truncate(5))
	must(t, f.Sync())
	must(t, f.Close())
	must(t, fsys.Rename("d/f", "d/g"))
	must(t, fsys.Link("d/g", "d/h"))
	_, err = fsys.Open("d/h")
	must(t, err)
	_, err = fsys.List("d")
	must(t, err)
	_, err = fsys.Stat("d")
	must(t, err)
	must(t, fsys.Remove("d/h"))
	must(t, fsys.SyncDir("d"))
	_, err = fsys.Lock("d/l")
	must(t, err)
	want := []string{
		"mkdir d", "create d/f", "allocate d/f 10", "write d/f [2,5)", "read d/f [2,4)",
		"size d/f", "truncate d/f 5", "sync d/f", "rename d/f d/g", "link d/g d/h", "open d/h",
		"list d", "stat d", "remove d/h", "syncdir d", "lock d/l",
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("operations %q, want %q", got, want)
		}
	}
}

func TestInjectFailsEveryOperation(t *testing.T) {
	m := NewMem()
	f, err := m.Create("f")
	must(t, err)
	write(t, f, 0, "12345")
	armed := false
	fsys := Inject(m, func(op Op) error {
		if armed {
			return ErrNoSpace
		}
		return nil
	})
	g, err := fsys.Open("f")
	must(t, err)
	armed = true
	first := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"create":   first(fsys.Create("x")),
		"open":     first(fsys.Open("f")),
		"remove":   fsys.Remove("f"),
		"rename":   fsys.Rename("f", "x"),
		"link":     fsys.Link("f", "x"),
		"mkdir":    fsys.Mkdir("x"),
		"mkdirall": fsys.MkdirAll("x"),
		"list":     first(fsys.List("/")),
		"stat":     first(fsys.Stat("f")),
		"syncdir":  fsys.SyncDir("/"),
		"lock":     first(fsys.Lock("x")),
		"read":     first(g.ReadAt(make([]byte, 1), 0)),
		"write":    first(g.WriteAt([]byte("x"), 0)),
		"size":     first(g.Size()),
		"allocate": g.Allocate(100),
		"truncate": g.Truncate(0),
		"sync":     g.Sync(),
	} {
		if !errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: %v", name, err)
		}
	}
	names, err := m.List("/")
	if err != nil || len(names) != 1 || get(t, m, "f") != "12345" {
		t.Errorf("a failed operation changed something: %q, %v", names, err)
	}
}

func TestShortWrite(t *testing.T) {
	m := NewMem()
	fsys := Inject(m, FailNth(2, func(op Op) bool { return op.Kind == OpWrite },
		&ShortWrite{N: 2, Err: ErrNoSpace}))
	f, err := fsys.Create("f")
	must(t, err)
	write(t, f, 0, "aaaa")
	n, err := f.WriteAt([]byte("bbbb"), 0)
	if n != 2 {
		t.Errorf("wrote %d", n)
	}
	wantErr(t, err, ErrNoSpace)
	if got := get(t, m, "f"); got != "bbaa" {
		t.Errorf("the file holds %q", got)
	}
	write(t, f, 0, "cccc")
}

func TestAHookCanHoldASync(t *testing.T) {
	entered, release := make(chan bool), make(chan bool)
	fsys := Inject(NewMem(), func(op Op) error {
		if op.Kind == OpSync {
			entered <- true
			<-release
		}
		return nil
	})
	f, err := fsys.Create("f")
	must(t, err)
	done := make(chan error)
	go func() { done <- f.Sync() }()
	<-entered
	write(t, f, 0, "others go on")
	select {
	case <-done:
		t.Fatal("Sync returned while it was held")
	default:
	}
	close(release)
	must(t, <-done)
}
