package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"reflect"
	"sync"
	"testing"
)

// each runs a test on every file system, in an empty folder of its own.
func each(t *testing.T, test func(t *testing.T, fsys FS, dir string)) {
	t.Helper()
	for _, c := range []struct {
		name string
		make func(t *testing.T) (FS, string)
	}{
		{"os", func(t *testing.T) (FS, string) { return OS{}, t.TempDir() }},
		{"mem", func(*testing.T) (FS, string) { return NewMem(), "/" }},
		{"crashable", func(*testing.T) (FS, string) { return NewCrashable(), "/" }},
		{"inject", func(*testing.T) (FS, string) {
			return Inject(NewMem(), func(Op) error { return nil }), "/"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, dir := c.make(t)
			test(t, fsys, dir)
		})
	}
}

func TestNames(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		at := func(name string) string { return path.Join(dir, name) }
		must(t, fsys.MkdirAll(at("a/b/c")))
		must(t, fsys.MkdirAll(at("a/b/c")))
		put(t, fsys, at("a/one"), "one")
		put(t, fsys, at("a/two"), "two")

		wantErr(t, fsys.Link(at("a/one"), at("a/two")), fs.ErrExist)
		wantErr(t, fsys.Link(at("a/none"), at("a/three")), fs.ErrNotExist)
		must(t, fsys.Link(at("a/one"), at("a/three")))
		must(t, fsys.Rename(at("a/two"), at("a/one")))
		wantErr(t, fsys.Rename(at("a/two"), at("a/one")), fs.ErrNotExist)
		if got := get(t, fsys, at("a/one")); got != "two" {
			t.Errorf("after the rename: %q", got)
		}
		if got := get(t, fsys, at("a/three")); got != "one" {
			t.Errorf("the link, after its first name was replaced: %q", got)
		}
		names, err := fsys.List(at("a"))
		if want := []string{"b", "one", "three"}; err != nil || !reflect.DeepEqual(names, want) {
			t.Errorf("List = %q, %v; want %q", names, err, want)
		}
		_, err = fsys.List(at("none"))
		wantErr(t, err, fs.ErrNotExist)
		_, err = fsys.Open(at("a/none"))
		wantErr(t, err, fs.ErrNotExist)
		_, err = fsys.Create(at("none/x"))
		wantErr(t, err, fs.ErrNotExist)
		if _, err = fsys.Create(at("a/b")); err == nil {
			t.Error("Create over a folder succeeded")
		}
		if err := fsys.MkdirAll(at("a/one")); err == nil {
			t.Error("MkdirAll over a file succeeded")
		}
		if err := fsys.Remove(at("a/b")); err == nil {
			t.Error("Remove of a full folder succeeded")
		}
		must(t, fsys.Remove(at("a/b/c")))
		must(t, fsys.Mkdir(at("a/d")))
		wantErr(t, fsys.Mkdir(at("a/d")), fs.ErrExist)
		wantErr(t, fsys.Mkdir(at("a/none/d")), fs.ErrNotExist)
		put(t, fsys, at("a/d/x"), "x")
		must(t, fsys.SyncDir(at("a")))
		wantErr(t, fsys.Remove(at("a/b/c")), fs.ErrNotExist)
		_, err = fsys.Stat(at("a/b/c"))
		wantErr(t, err, fs.ErrNotExist)
		info, err := fsys.Stat(at("a/one"))
		if err != nil || info.Name() != "one" || info.Size() != 3 || info.IsDir() {
			t.Errorf("Stat = %v, %v", info, err)
		}
		must(t, fsys.SyncDir(at("a")))
		wantErr(t, fsys.SyncDir(at("none")), fs.ErrNotExist)
	})
}

func TestFile(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		name := path.Join(dir, "f")
		f, err := fsys.Create(name)
		must(t, err)
		write(t, f, 5, "hello")
		content(t, f, "\x00\x00\x00\x00\x00hello")
		must(t, f.Truncate(7))
		must(t, f.Allocate(3)) // never shortens
		must(t, f.Allocate(9))
		content(t, f, "\x00\x00\x00\x00\x00he\x00\x00")
		must(t, f.Sync())

		p := make([]byte, 20)
		if n, err := f.ReadAt(p, 5); n != 4 || err != io.EOF {
			t.Errorf("ReadAt over the end = %d, %v", n, err)
		}
		if n, err := f.ReadAt(p, 100); n != 0 || err != io.EOF {
			t.Errorf("ReadAt past the end = %d, %v", n, err)
		}
		big := bytes.Repeat([]byte("0123456789abcdef"), 3*pageSize/16)
		write(t, f, pageSize-3, string(big))
		again, err := fsys.Open(name)
		must(t, err)
		got := make([]byte, len(big))
		_, err = again.ReadAt(got, pageSize-3)
		must(t, err)
		if !bytes.Equal(got, big) {
			t.Error("a write over several pages reads differently")
		}
		must(t, fsys.Remove(name))
		write(t, again, 0, "still") // an open file outlives its name
		must(t, again.Close())
		must(t, f.Close())
		wantErr(t, f.Close(), fs.ErrClosed)
		_, err = f.WriteAt([]byte("x"), 0)
		wantErr(t, err, fs.ErrClosed)
		_, err = f.ReadAt(p, 0)
		wantErr(t, err, fs.ErrClosed)
		wantErr(t, f.Sync(), fs.ErrClosed)
		wantErr(t, f.Allocate(1<<20), fs.ErrClosed)
		wantErr(t, f.Truncate(1), fs.ErrClosed)
	})
}

func TestCreateEmpties(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		name := path.Join(dir, "f")
		put(t, fsys, name, "old and long")
		put(t, fsys, name, "new")
		if got := get(t, fsys, name); got != "new" {
			t.Errorf("got %q", got)
		}
	})
}

func TestLock(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		name := path.Join(dir, "LOCK")
		lock, err := fsys.Lock(name)
		must(t, err)
		_, err = fsys.Lock(name)
		wantErr(t, err, ErrLocked)
		must(t, fsys.Remove(name)) // does not remove the lock
		_, err = fsys.Lock(name)
		wantErr(t, err, ErrLocked)
		must(t, lock.Check())
		must(t, lock.Close())
		lock, err = fsys.Lock(name)
		must(t, err)
		must(t, lock.Close())
	})
}

func TestLockOfAFolderThatIsGone(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		dir = path.Join(dir, "data")
		must(t, fsys.MkdirAll(dir))
		lock, err := fsys.Lock(path.Join(dir, "LOCK"))
		must(t, err)
		must(t, lock.Check())
		must(t, fsys.Rename(dir, dir+"2"))
		wantErr(t, lock.Check(), ErrGone)
		must(t, fsys.MkdirAll(dir))
		wantErr(t, lock.Check(), ErrGone) // another folder of that name
		must(t, fsys.Remove(dir))
		must(t, fsys.Rename(dir+"2", dir))
		must(t, lock.Check())
		must(t, lock.Close())
	})
}

func TestConcurrentUse(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		f, err := fsys.Create(path.Join(dir, "shared"))
		must(t, err)
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				name := path.Join(dir, string(rune('a'+i)))
				put(t, fsys, name, name)
				if got := get(t, fsys, name); got != name {
					t.Errorf("%s holds %q", name, got)
				}
				piece := bytes.Repeat([]byte{byte(i)}, 1000)
				for j := range 20 {
					off := int64(j*8+i) * 1000
					if _, err := f.WriteAt(piece, off); err != nil {
						t.Error(err)
					}
					got := make([]byte, 1000)
					if _, err := f.ReadAt(got, off); err != nil || !bytes.Equal(got, piece) {
						t.Errorf("read at %d: %v", off, err)
					}
				}
				if err := errors.Join(f.Sync(), fsys.SyncDir(dir)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		must(t, f.Close())
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func write(t *testing.T, f File, off int64, text string) {
	t.Helper()
	if n, err := f.WriteAt([]byte(text), off); n != len(text) || err != nil {
		t.Fatalf("WriteAt = %d, %v", n, err)
	}
}

func content(t *testing.T, f File, want string) {
	t.Helper()
	size, err := f.Size()
	must(t, err)
	p := make([]byte, size)
	if _, err := f.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	if string(p) != want {
		t.Errorf("the file holds %q, want %q", p, want)
	}
}

func put(t *testing.T, fsys FS, name, text string) {
	f, err := fsys.Create(name)
	if err == nil {
		_, err = f.WriteAt([]byte(text), 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, fsys FS, name string) string {
	f, err := fsys.Open(name)
	if err != nil {
		t.Error(err)
		return ""
	}
	size, err := f.Size()
	p := make([]byte, size)
	if size > 0 && err == nil {
		_, err = f.ReadAt(p, 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Error(err)
	}
	return string(p)
}
