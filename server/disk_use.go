package server

import "fmt"

// DiskUse is the size of a server's data, in bytes.
type DiskUse struct {
	Log       int64 // log files, which are used again
	Snapshots int64 // of the catalogue, the shards' tables and small tables of items: the newest
	Items     int64 // the files of larger tables of items; rewriting frees them
	Records   int64 // the segments of all shards; retention frees them
}

// DiskUse returns the present size of the data. Errors: ErrClosed, and the file system's.
func (s *Server) DiskUse() (DiskUse, error) {
	s.mu.Lock()
	engine := s.mu.engine
	s.mu.Unlock()
	if engine == nil {
		return DiskUse{}, ErrClosed
	}
	return engine.diskUse()
}

// Bytes returns the sum.
func (u DiskUse) Bytes() int64 { return u.Log + u.Snapshots + u.Items + u.Records }

func (e *engine) diskUse() (DiskUse, error) {
	use, err := e.log.DiskUse()
	if err != nil {
		return DiskUse{}, fmt.Errorf("measure the log: %w", err)
	}
	items, err := e.items.DiskUse()
	if err != nil {
		return DiskUse{}, fmt.Errorf("measure the items: %w", err)
	}
	return DiskUse{
		Log: use.Log, Snapshots: use.Snapshots, Items: items, Records: e.shards.Bytes(),
	}, nil
}
