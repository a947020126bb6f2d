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
)

// Server is a running `runnel serve`.
type Server struct {
	Address string // HOST:PORT; with --tls for TLS and plain
	Dir     string // its folder

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
	s := &Server{Dir: dir}
	flags = append([]string{runnel, "serve", "--addr", "127.0.0.1:0", "--data", dir}, flags...)
	if files > 0 {
		limit := fmt.Sprintf("ulimit -n %d && exec \"$0\" \"$@\"", files)
		flags = append([]string{"sh", "-c", limit}, flags...)
	}
	s.command = exec.CommandContext(ctx, flags[0], flags[1:]...)
	said, err := s.command.StderrPipe()
	if err == nil {
		err = s.command.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	lines := bufio.NewScanner(said)
	for s.Address == "" && lines.Scan() {
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			s.Address = match[1]
		}
	}
	if s.Address == "" {
		return nil, errors.Join(errors.New("the server did not start"), lines.Err(), s.End())
	}
	go io.Copy(io.Discard, said) //nolint:errcheck // until the process has ended
	return s, nil
}

// Memory returns a figure of Linux's /proc/PID/status in MB: VmRSS, the memory now, or VmHWM, the
// most.
func (s *Server) Memory(name string) float64 { return status(s.command.Process.Pid, name) }

// End kills the server and removes its folder.
func (s *Server) End() error {
	_ = s.command.Process.Kill() // it may have ended already
	_ = s.command.Wait()
	return os.RemoveAll(s.Dir)
}
