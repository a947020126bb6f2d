package itemstore

import (
	"errors"
	"io/fs"
)

// DiskUse returns the size of the data files, in bytes.
func (s *Store) DiskUse() (int64, error) {
	ids, unfinished, err := s.chain.files.list()
	if err != nil {
		return 0, err
	}
	names := unfinished
	for _, id := range ids {
		names = append(names, s.chain.files.name(id))
	}
	used := int64(0)
	for _, name := range names {
		info, err := s.chain.files.fs.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // renamed or removed concurrently
		}
		if err != nil {
			return 0, err
		}
		used += info.Size()
	}
	return used, nil
}
