package keys

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// assignment is a name and its key: a line of the file of `keys map`.
type assignment struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	Rate uint64 `json:"rate"` // 1 if a line has none
}

// Cells implements rows.Row.
func (l assignment) Cells() []string { return []string{l.Key, printable(l.Name)} }

// keyFile is a file of assignments. Its lock lets one process at a time open it.
type keyFile struct {
	name      string
	lock      io.Closer
	lines     []assignment
	byName    map[string]assignment
	allocator *allocate.Allocator
}

// openKeyFile locks a file of assignments and reads it. A missing file counts as empty.
func openKeyFile(
	ctx context.Context, name string, space allocate.Space,
) (f *keyFile, err error) {
	if name == "" {
		return nil, exit.Usage("--file or --table is missing: it has the names and their keys")
	}
	f = &keyFile{
		name: filepath.ToSlash(name), byName: map[string]assignment{},
		allocator: allocate.New(space),
	}
	if f.lock, err = (vfs.OS{}).Lock(f.name + ".lock"); err != nil {
		return nil, exit.Outside(fmt.Errorf("%s: %w: run it again", name, err))
	}
	if _, err = (vfs.OS{}).Stat(f.name); errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err = input.EachLineOfFile(ctx, name, f.readLine); err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}
	return f, nil
}

func (f *keyFile) readLine(text string) error {
	line := assignment{Rate: 1}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields() // save would lose them
	err := decoder.Decode(&line)
	if err == nil && decoder.More() {
		err = errors.New("more than one object")
	}
	if err != nil {
		return exit.Usage(`want {"name":…,"key":…,"rate":…}: %w`, err)
	}
	key, err := keyspace.Parse(line.Key)
	if err == nil {
		err = f.add(line, key)
	}
	if err != nil {
		return exit.Usage("%w", err)
	}
	return nil
}

func (f *keyFile) add(line assignment, key keyspace.Key) error {
	if _, known := f.byName[line.Name]; known {
		return fmt.Errorf("the name %q is there twice", line.Name)
	}
	if err := f.allocator.AddRated(allocate.Rated{Key: key, Rate: line.Rate}); err != nil {
		return err
	}
	f.lines = append(f.lines, line)
	f.byName[line.Name] = line
	return nil
}

// assign gives a name a key, unless it has one.
func (f *keyFile) assign(name string, rate uint64) (assignment, error) {
	if line, known := f.byName[name]; known {
		return line, nil
	}
	key, err := f.allocator.AllocateRated(rate)
	if err != nil {
		return assignment{}, exit.Usage("%q: %w", name, err)
	}
	line := assignment{Name: name, Key: key.String(), Rate: rate}
	f.lines = append(f.lines, line)
	f.byName[name] = line
	return line, nil
}

// save replaces the file atomically and durably: after a crash there is either the old file or
// the new one.
func (f *keyFile) save() error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, line := range f.lines {
		if err := encoder.Encode(line); err != nil {
			return exit.Outside(err)
		}
	}
	return exit.Outside(replaceFile(vfs.OS{}, f.name, text.Bytes()))
}

func replaceFile(fsys vfs.FS, name string, data []byte) error {
	draft := name + ".new"
	file, err := fsys.Create(draft)
	if err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = fsys.Rename(draft, name)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.ToSlash(filepath.Dir(name)))
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

func (f *keyFile) close() error { return exit.Outside(f.lock.Close()) }
