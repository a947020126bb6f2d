package server

import (
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// timedFS times the syncs of files.
type timedFS struct {
	vfs.FS
	dir   string
	syncs *prometheus.HistogramVec // by folder within dir, and result
}

// Create implements vfs.FS.
func (f timedFS) Create(name string) (vfs.File, error) { return f.timed(name)(f.FS.Create(name)) }

// Open implements vfs.FS.
func (f timedFS) Open(name string) (vfs.File, error) { return f.timed(name)(f.FS.Open(name)) }

func (f timedFS) timed(name string) func(vfs.File, error) (vfs.File, error) {
	return func(file vfs.File, err error) (vfs.File, error) {
		if err != nil {
			return nil, err
		}
		folder := folderOf(f.dir, name)
		return timedFile{
			File: file, ok: f.syncs.WithLabelValues(folder, "ok"),
			failed: func() prometheus.Observer { return f.syncs.WithLabelValues(folder, "error") },
		}, nil
	}
}

// folderOf returns the first folder below dir that the file is in; "." for dir itself.
func folderOf(dir, name string) string {
	rest := strings.TrimPrefix(path.Clean(name), path.Clean(dir)+"/")
	folder, _, below := strings.Cut(rest, "/")
	if !below || strings.HasPrefix(rest, "/") {
		return "."
	}
	return folder
}

// timedFile times its syncs. Of a vfs.SyncFiles it sees the sync of one file.
type timedFile struct {
	vfs.File
	ok     prometheus.Observer
	failed func() prometheus.Observer // there is no such series before it is needed
}

// Unwrap implements vfs.Wrapper.
func (f timedFile) Unwrap() vfs.File { return f.File }

// Sync implements vfs.File.
func (f timedFile) Sync() error {
	began := time.Now()
	err := f.File.Sync()
	took := time.Since(began).Seconds()
	if err != nil {
		f.failed().Observe(took)
		return err
	}
	f.ok.Observe(took)
	return nil
}
