package server

import "fmt"

// DiskUse is what a server's data take, in bytes.
type DiskUse struct {
	Log     int64 // log files, which are used again, and the newest snapshot
	Records int64 // the segments of all shards; retention frees them
}

// DiskUse returns what the data take now. Errors: ErrClosed, and the file system's.
func (s *Server) DiskUse() (DiskUse, error) {
	s.mu.Lock()
	engine := s.mu.engine
	s.mu.Unlock()
	if engine == nil {
		return DiskUse{}, ErrClosed
	}
	log, err := engine.log.DiskUse()
	if err != nil {
		return DiskUse{}, fmt.Errorf("measure the log: %w", err)
	}
	return DiskUse{Log: log, Records: engine.shards.Bytes()}, nil
}
