package shardlog

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
)

// Orphan is a shard with whole records that the catalogue does not know: the change that made it is
// lost.
type Orphan struct {
	Shard   ID
	Records uint64
	Arrival int64 // of the oldest record, in ms since 1970
}

// Adopt makes the shards known that the catalogue does not know, and that it did not delete: those
// of the log's frames, and those with a folder and an id from next on. next is the catalogue's next
// id in the snapshot. A folder with a lower id is the rest of a deleted shard. Call it before Plan.
func (r *Repairer) Adopt(next ID) error {
	names, err := r.store.cfg.FS.List(r.store.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var ids []ID
	for id := range r.shards {
		ids = append(ids, id)
	}
	for _, name := range names {
		id, err := strconv.ParseUint(name, 10, 64)
		if err == nil && ID(id) >= next && name == strconv.FormatUint(id, 10) {
			ids = append(ids, ID(id))
		}
	}
	for _, id := range ids {
		if r.store.Shard(id) == nil && !r.deleted[id] {
			r.adopted = append(r.adopted, id)
			r.store.Create(id)
		}
	}
	slices.Sort(r.adopted)
	return nil
}

// Orphans returns the adopted shards of which records are left. It forgets the others. Call it
// after Plan.
func (r *Repairer) Orphans() (orphans []Orphan) {
	r.planned = slices.DeleteFunc(r.planned, func(sh *repair) bool {
		if !slices.Contains(r.adopted, sh.image.id) {
			return false
		}
		found := Orphan{Shard: sh.image.id}
		for _, p := range sh.kept {
			if p.end <= sh.image.oldest {
				continue
			}
			if found.Records == 0 {
				found.Arrival = p.firstArrival
			}
			found.Records += p.end - max(p.first, sh.image.oldest)
		}
		if found.Records > 0 {
			orphans = append(orphans, found)
		}
		return found.Records == 0
	})
	return orphans
}
