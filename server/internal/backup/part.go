package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// incomplete is added to the target's name until the copy is whole and durable.
const incomplete = ".incomplete"

// errReplaced reports that the unfinished copy is another backup's by now.
var errReplaced = errors.New("another backup to the same target has begun, and only that one " +
	"goes on: give each a target of its own")

// part is the unfinished copy: a folder or a file beside the target. A second backup to the same
// target takes it for a leftover and replaces it. So a part keeps its identity, and neither
// publishes nor removes the other one.
type part struct {
	name string
	made *os.File // open, so that no later file gets its number
	was  fs.FileInfo
}

// newPart makes the part in the place of one that a killed backup has left.
func newPart(to string) (*part, error) {
	p := &part{name: filepath.Clean(to) + incomplete}
	if err := removeLeftover(p.name, IsArchive(to)); err != nil {
		return nil, err
	}
	var err error
	if IsArchive(to) {
		// the file may hold the key of the certificate authority
		p.made, err = os.OpenFile(p.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	} else if err = os.Mkdir(p.name, 0o755); err == nil {
		p.made, err = os.Open(p.name)
	}
	if err != nil {
		return nil, err
	}
	if p.was, err = p.made.Stat(); err != nil {
		return nil, errors.Join(err, p.made.Close())
	}
	return p, nil
}

// check returns errReplaced if the part's name leads to another one.
func (p *part) check() error {
	now, err := os.Lstat(p.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(now, p.was) {
		return errReplaced
	}
	return nil
}

// publish gives the complete copy its name, unless something has that name meanwhile.
func (p *part) publish(to string) error {
	if err := p.check(); err != nil {
		return err
	}
	if IsArchive(to) {
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(ErrExists, err)
		}
	} else if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(ErrExists, err)
	}
	if err := p.made.Close(); err != nil { // some systems rename no open file
		return err
	}
	if err := os.Rename(p.name, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(filepath.Clean(to)))
}

// discard removes the part of a failed backup.
func (p *part) discard() error {
	replaced := p.check()
	_ = p.made.Close() // publish may have closed it
	if replaced != nil {
		return nil //nolint:nilerr // the other one is not ours to remove
	}
	return os.RemoveAll(p.name)
}

// removeLeftover removes a killed backup's part. It refuses any other file or folder of that name,
// which is the user's.
func removeLeftover(name string, file bool) error {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	ours := false
	switch {
	case file && info.Mode().IsRegular():
		ours, err = beginsPacked(name)
	case !file && info.IsDir():
		ours, err = holdsData(name)
	}
	if err == nil && !ours {
		err = fmt.Errorf("%s: %w", name, ErrExists)
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(name)
}

// beginsPacked reports whether a file is empty, or begins as packed files do.
func beginsPacked(name string) (bool, error) {
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // only read
	head, err := io.ReadAll(io.LimitReader(file, 4))
	gzip, zstd := []byte{0x1f, 0x8b}, []byte{0x28, 0xb5, 0x2f, 0xfd}
	return len(head) == 0 || bytes.HasPrefix(head, gzip) || bytes.HasPrefix(head, zstd), err
}

// holdsData reports whether all entries of a folder have names of a data directory.
func holdsData(name string) (bool, error) {
	entries, err := os.ReadDir(name)
	return !slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		name := entry.Name()
		return !wal.IsSnapshot(name) && !strings.HasPrefix(name, "lost-") && !slices.Contains(
			[]string{"FORMAT", "clock", "shards", "tls", "wal", itemstore.FolderName}, name)
	}), err
}
