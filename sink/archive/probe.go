package archive

import (
	"context"
	"crypto/rand"
	"fmt"
	"path"
)

// prober is a Store that can test its place before the first record.
type prober interface {
	Probe(ctx context.Context) error
}

// Probe does once every operation that a commit needs in the archive's folder. So a program learns
// at its start that the folder cannot work, while a writer would retry for ever. It does nothing on
// a Store without a Probe of its own.
func (a *Archive) Probe(ctx context.Context) error {
	store, ok := a.store.(prober)
	if !ok {
		return nil
	}
	if err := store.Probe(ctx); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// probeSize is the length of the file that a probe writes, in bytes: one block of most disks, so
// that a full disk refuses it.
const probeSize = 4096

// Probe makes the folder, writes and syncs a file in it, links it to a second name, and removes
// both. Readers do not see either.
func (d *DirStore) Probe(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := d.ensure(d.root); err != nil {
		return err
	}
	name := path.Join(d.root, hidden+"probe."+rand.Text())
	temp := name + tempSuffix
	err := d.writeSynced(temp, make([]byte, probeSize))
	if err == nil {
		if err = d.fs.Link(temp, name); err == nil {
			err = d.fs.SyncDir(d.root)
		}
		_ = d.fs.Remove(name) // hidden and harmless
	}
	_ = d.fs.Remove(temp)
	return err
}
