package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// DirStore is a Store in a folder. Processes on one machine, or on file systems with an atomic
// link(2) and an honest fsync, may share the folder.
//
// An object is written to a temporary file beside its place, synced, and then linked to its name,
// which fails if the name is taken. Creating the file under its name at once (O_EXCL) would leave a
// torn link after a crash, and a torn link blocks its chain for ever.
type DirStore struct {
	fs   vfs.FS
	root string
	open func(name string) (io.ReadCloser, error)

	mu struct {
		sync.Mutex
		ready map[string]bool // folders that are durable up to the root; at most mostReady
	}
}

// NewDirStore returns the store in a folder of the operating system, which is made with the
// first object.
func NewDirStore(dir string) (*DirStore, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("archive: folder %s: %w", dir, err)
	}
	d := newDirStoreOn(vfs.OS{}, filepath.ToSlash(full))
	// vfs opens files for writing as well, and an archive must be readable on a read-only file
	// system.
	d.open = func(name string) (io.ReadCloser, error) { return os.Open(filepath.FromSlash(name)) }
	return d, nil
}

// newDirStoreOn returns the store in a folder of any file system.
func newDirStoreOn(fsys vfs.FS, root string) *DirStore {
	d := &DirStore{fs: fsys, root: root}
	d.open = d.openOn
	d.mu.ready = map[string]bool{}
	return d
}

func (d *DirStore) openOn(name string) (io.ReadCloser, error) {
	file, err := d.fs.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		_ = file.Close() // only read
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(file, 0, size), file}, nil
}

// Temporary files are invisible to List: their names begin with a dot.
const (
	hidden     = "."
	tempSuffix = ".tmp"
	// putTries is the number of attempts of a put. A put begins anew if another process that took
	// the shard has removed its temporary file.
	putTries = 4
)

// PutIfAbsent implements Store.
func (d *DirStore) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return d.put(ctx, name, data, d.fs.Link)
}

// Put creates an object, or replaces it as a whole. A reader finds the old object or the new one.
// After nil the new one is durable.
func (d *DirStore) Put(ctx context.Context, name string, data []byte) error {
	return d.put(ctx, name, data, d.fs.Rename)
}

// put writes a temporary file, and gives it the object's name by link or rename.
func (d *DirStore) put(
	ctx context.Context, name string, data []byte, give func(temp, target string) error,
) error {
	target := path.Join(d.root, name)
	folder, base := path.Split(target)
	folder = path.Clean(folder)
	for try := 1; ; try++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		known := d.isReady(folder)
		if err := d.ensure(folder); err != nil {
			return fmt.Errorf("folder %s: %w", folder, err)
		}
		temp := path.Join(folder, hidden+base+"."+rand.Text()+tempSuffix)
		err := d.writeSynced(temp, data)
		if err == nil {
			err = give(temp, target)
		}
		// A file that cannot be removed now is swept when the shard is taken next.
		_ = d.fs.Remove(temp)
		exists := errors.Is(err, fs.ErrExist)
		switch {
		case err == nil, exists:
			// The writer of an object that is there may not have synced its name yet, and this
			// writer is about to build on it.
			if err := d.fs.SyncDir(folder); err != nil {
				return fmt.Errorf("sync folder %s: %w", folder, err)
			}
			if exists {
				return ErrObjectExists
			}
			return nil
		case errors.Is(err, fs.ErrNotExist) && known && d.isGone(folder):
			d.forget(folder)
			return fmt.Errorf("put %s: %w", target, ErrFolderGone)
		case errors.Is(err, fs.ErrNotExist) && try < putTries:
			d.forget(folder) // the file was swept, or the new folder removed
		default:
			return fmt.Errorf("put %s: %w", target, err)
		}
	}
}

// ErrFolderGone is returned by a DirStore if a folder that existed is gone. A new folder would let
// a chain go on without its links: they may be on a disk that is no longer mounted.
var ErrFolderGone = errors.New("the archive's folder was removed, or its disk unmounted, " +
	"while it was written to")

func (d *DirStore) isGone(folder string) bool {
	_, err := d.fs.Stat(folder)
	return errors.Is(err, fs.ErrNotExist)
}

func (d *DirStore) writeSynced(name string, data []byte) error {
	file, err := d.fs.Create(name)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// ensure makes the folder, and makes every folder on the way durable in its parent. It also syncs
// folders that another process has made: that process may be about to sync the name, while this one
// already relies on it.
func (d *DirStore) ensure(folder string) error {
	if d.isReady(folder) {
		return nil
	}
	if err := d.fs.MkdirAll(folder); err != nil {
		return err
	}
	if err := d.syncNames(folder); err != nil {
		return err
	}
	d.setReady(folder)
	return nil
}

// mostReady bounds the memory for folders: the tables of an archive have one for each minute.
const mostReady = 100_000

func (d *DirStore) setReady(folder string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mu.ready) >= mostReady {
		tables := path.Join(d.root, TablesFolder) + "/"
		maps.DeleteFunc(d.mu.ready, func(folder string, _ bool) bool {
			return strings.HasPrefix(folder, tables)
		})
	}
	d.mu.ready[folder] = true
}

func (d *DirStore) isReady(folder string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.ready[folder]
}

func (d *DirStore) forget(folder string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.ready, folder)
}

// syncNames makes the names of the folders from folder up to the root durable.
func (d *DirStore) syncNames(folder string) error {
	for at := folder; len(at) > len(d.root); at = path.Dir(at) {
		if err := d.fs.SyncDir(path.Dir(at)); err != nil {
			return err
		}
	}
	parent := path.Dir(d.root)
	if parent == d.root {
		return nil
	}
	// The root's own parent may be closed to us if another user made the root for us.
	if err := d.fs.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// Get implements Store.
func (d *DirStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	full := path.Join(d.root, name)
	object, err := d.open(full)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrObjectNotFound, full)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", full, err)
	}
	return object, nil
}

// List implements Store.
func (d *DirStore) List(ctx context.Context, folder string) (Listing, error) {
	full := path.Join(d.root, folder)
	names, err := d.fs.List(full)
	if errors.Is(err, fs.ErrNotExist) {
		return Listing{}, nil
	}
	if err != nil {
		return Listing{}, fmt.Errorf("list %s: %w", full, err)
	}
	var listing Listing
	for _, name := range names {
		if strings.HasPrefix(name, hidden) {
			continue
		}
		if !strings.HasSuffix(name, extension) {
			if err := context.Cause(ctx); err != nil {
				return Listing{}, err
			}
			info, err := d.fs.Stat(path.Join(full, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone since
			}
			if err != nil {
				return Listing{}, fmt.Errorf("list %s: %w", full, err)
			}
			if info.IsDir() {
				listing.Folders = append(listing.Folders, name)
				continue
			}
		}
		listing.Objects = append(listing.Objects, name)
	}
	return listing, nil
}

// After implements Store. It returns all names.
func (d *DirStore) After(
	ctx context.Context, folder, name string,
) (names []string, more bool, err error) {
	listing, err := d.List(ctx, folder)
	at, there := slices.BinarySearch(listing.Objects, name)
	if there {
		at++
	}
	return listing.Objects[at:], false, err
}

// Settle implements Store.
func (d *DirStore) Settle(ctx context.Context, folder string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	full := path.Join(d.root, folder)
	err := d.fs.SyncDir(full)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there was no object to settle
	}
	if err == nil && !d.isReady(full) {
		err = d.syncNames(full)
	}
	if err != nil {
		return fmt.Errorf("sync folder %s: %w", full, err)
	}
	d.setReady(full)
	return nil
}

// Sweep implements Store.
func (d *DirStore) Sweep(ctx context.Context, folder string) error {
	full := path.Join(d.root, folder)
	names, err := d.fs.List(full)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", full, err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, hidden) || !strings.HasSuffix(name, tempSuffix) {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := d.fs.Remove(path.Join(full, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sweep %s: %w", path.Join(full, name), err)
		}
	}
	return nil
}
