package seam

import (
	"time"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/vfs"
)

// Server holds the parts of a server that only tests replace. The zero value of a field means the
// server's own.
type Server struct {
	FS     vfs.FS                                  // has the data directory
	Wall   func() time.Time                        // the system's clock
	Boot   func() (id string, since time.Duration) // names the boot, and the time since
	Faults *fault.Injector                         // replaces Config.Faults, and outlives a restart
}

// Option sets a part of Server. Users of the module cannot name it.
type Option func(*Server)

// OnFS keeps the data directory on a test's file system.
func OnFS(fs vfs.FS) Option { return func(s *Server) { s.FS = fs } }

// WithWall replaces the system's clock by a test's.
func WithWall(wall func() time.Time) Option { return func(s *Server) { s.Wall = wall } }

// WithBoot replaces the name of the machine's boot and the time since by a test's.
func WithBoot(boot func() (id string, since time.Duration)) Option {
	return func(s *Server) { s.Boot = boot }
}

// WithFaults injects the faults of a test's injector.
func WithFaults(faults *fault.Injector) Option { return func(s *Server) { s.Faults = faults } }
