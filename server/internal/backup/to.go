package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/fsck"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Errors of To about the target, before anything was written.
var (
	ErrExists = errors.New("it is there already, and a backup overwrites nothing: " +
		"name a new file, or a new or empty folder")
	ErrInside = errors.New("the target is inside the data directory: name one outside it")
	ErrEnding = errors.New("a packed file of that kind cannot be written: " +
		"name a file that ends with .tar.zst, .tar.gz or .tgz, or a folder")
	ErrParent = errors.New("the folder around it is missing")
)

// To copies the data directory dir to a new packed tar file, if the target's name says so, or to a
// new or empty folder. The target gets its name when it is complete and durable. After an
// error there is no target. Errors: ErrExists, ErrInside, ErrEnding, ErrParent, and Run's.
func To(ctx context.Context, dir, to string) (*Report, error) {
	// First, since the target of a folder that is no data directory is often in it.
	if err := wal.CheckFormat(vfs.ReadOnly(vfs.OS{}), filepath.ToSlash(dir)); err != nil {
		return nil, err
	}
	if err := check(dir, to); err != nil {
		return nil, fmt.Errorf("%s: %w", to, err)
	}
	p, err := newPart(to)
	if errors.Is(err, ErrExists) {
		err = fmt.Errorf("%s: %w", to, err)
	}
	if err != nil {
		return nil, err
	}
	report, err := write(ctx, dir, to, p)
	if err == nil {
		err = p.publish(to)
	}
	if err != nil {
		return nil, errors.Join(err, p.discard())
	}
	report.To = to
	return report, nil
}

// check checks the target.
func check(dir, to string) error {
	data, err := resolved(dir)
	if err != nil {
		return err
	}
	target, err := resolved(to)
	if err != nil {
		return err
	}
	if target == data || strings.HasPrefix(target, data+string(filepath.Separator)) {
		return ErrInside
	}
	if !IsArchive(to) && looksPacked(to) {
		return ErrEnding
	}
	if err := checkParent(filepath.Dir(filepath.Clean(to))); err != nil {
		return err
	}
	info, err := os.Stat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir() || IsArchive(to):
		return ErrExists
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) > 0 {
		return errors.Join(err, ErrExists)
	}
	return nil
}

// resolved returns the absolute path without symbolic links, of which the end may be missing.
func resolved(name string) (string, error) {
	full, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	for at := full; ; at = filepath.Dir(at) {
		target, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(target, strings.TrimPrefix(full, at)), nil
		}
		if at == filepath.Dir(at) {
			return full, nil
		}
	}
}

// checkParent checks the folder that the target will be in.
func checkParent(parent string) error {
	info, err := os.Stat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: make %s first", ErrParent, parent)
	case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		return fmt.Errorf("%w: %s is no folder", ErrParent, parent)
	}
	return err
}

func write(ctx context.Context, dir, to string, p *part) (*Report, error) {
	if !IsArchive(to) {
		root, err := os.OpenRoot(p.name)
		if err != nil {
			return nil, err
		}
		target := &folder{root}
		report, err := Run(ctx, vfs.OS{}, filepath.ToSlash(dir), target)
		if err == nil {
			err = target.finish()
		}
		if err = errors.Join(err, root.Close()); err == nil {
			err = report.check(ctx, p.name, to)
		}
		return report, err
	}
	target, err := newArchive(p.made, to)
	if err != nil {
		return nil, err
	}
	report, err := Run(ctx, vfs.OS{}, filepath.ToSlash(dir), target)
	failed := target.finish()
	if err == nil { // otherwise finish repeats it
		err = failed
	}
	if err == nil {
		err = report.check(ctx, dir, dir)
	}
	return report, err
}

// check adds the damage of a data directory, which the report shows under another name. It passes
// over one that a server uses.
func (r *Report) check(ctx context.Context, dir, as string) error {
	found, err := fsck.Check(ctx, vfs.OS{}, filepath.ToSlash(dir))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil
	case err != nil:
		return fmt.Errorf("check %s: %w", as, err)
	}
	r.Checked = true
	for _, d := range found.Damage {
		d.File = as + strings.TrimPrefix(d.File, filepath.ToSlash(dir))
		r.Damage = append(r.Damage, d)
	}
	return nil
}

func syncDir(dir string) error { return vfs.OS{}.SyncDir(filepath.ToSlash(dir)) }
