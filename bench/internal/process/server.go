package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// Server is a running `runnel serve`.
type Server struct {
	Address string // HOST:PORT; with --tls for TLS and plain
	Dir     string // its folder

	runnel  string
	files   int
	flags   []string
	command *exec.Cmd
}

// CA returns the file of the certificate authority of a server with --tls.
func (s *Server) CA() string { return filepath.Join(s.Dir, "tls", "ca.pem") }

var listening = regexp.MustCompile(`https?://(127\.0\.0\.1:\d+)`)

// Serve starts a server on an empty folder, with more flags of `runnel serve`. The caller ends it.
func Serve(ctx context.Context, runnel string, flags ...string) (*Server, error) {
	return ServeFiles(ctx, runnel, 0, flags...)
}

// ServeFiles is Serve with a limit of open files; 0 is the machine's.
func ServeFiles(
	ctx context.Context, runnel string, files int, flags ...string,
) (*Server, error) {
	dir, err := os.MkdirTemp("", "runnel-bench-")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, runnel: runnel, files: files, flags: flags}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.End())
	}
	return s, nil
}

// Start starts the server again on its folder, after Stop.
func (s *Server) Start(ctx context.Context) error {
	flags := append([]string{
		s.runnel, "serve", "--addr", "127.0.0.1:0", "--data", s.Dir,
	}, s.flags...)
	if s.files > 0 {
		limit := fmt.Sprintf("ulimit -n %d && exec \"$0\" \"$@\"", s.files)
		flags = append([]string{"sh", "-c", limit}, flags...)
	}
	s.command, s.Address = exec.CommandContext(ctx, flags[0], flags[1:]...), ""
	said, err := s.command.StderrPipe()
	if err == nil {
		err = s.command.Start()
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(said)
	for s.Address == "" && lines.Scan() {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			s.Address = match[1]
		}
	}
	if s.Address == "" {
		return errors.Join(errors.New("the server did not start"), lines.Err())
	}
	go io.Copy(io.Discard, said) //nolint:errcheck // until the process has ended
	return nil
}

// Stop ends the server by SIGTERM and waits.
func (s *Server) Stop() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.command.Wait()
}

// Memory returns a figure of Linux's /proc/PID/status in MB: VmRSS, the memory now, or VmHWM, the
// most.
func (s *Server) Memory(name string) float64 { return status(s.command.Process.Pid, name) }

// CPU returns the processor time of the server so far.
func (s *Server) CPU() time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.command.Process.Pid))
	if stat := statFields(text); len(stat) > 13 {
		return processorTime(stat)
	}
	return 0
}

// End kills the server and removes its folder.
func (s *Server) End() error {
	if s.command != nil && s.command.Process != nil {
		_ = s.command.Process.Kill() // it may have ended already
		_ = s.command.Wait()
	}
	return os.RemoveAll(s.Dir)
}
