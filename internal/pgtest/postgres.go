// Package pgtest runs a real PostgreSQL for tests, in a folder of its own.
package pgtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Env names the folder with the programs of PostgreSQL: initdb and postgres. Without it they are
// looked for in PATH and where Debian has them; a test without any is skipped.
const Env = "RUNNEL_POSTGRES"

// Server is a running server. It is not safe for concurrent use.
type Server struct {
	URL string // of the database postgres, for the superuser postgres

	t    testing.TB
	bin  string
	dir  string
	port int
	as   *syscall.Credential // nil: the test's own user
	cmd  *exec.Cmd
}

// New starts a server, and ends it with the test. settings are lines of postgresql.conf.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := begin(t, settings...)
	t.Cleanup(s.end)
	return s
}

// shared is the server of Shared.
var shared struct {
	mu     sync.Mutex
	server *Server
	users  int
}

// Shared returns the server that the tests of a program share, so that it starts once. It ends with
// the last test that runs. It has no fsync, so it survives its own end, and not the machine's.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		shared.server = begin(t, "fsync = off", "full_page_writes = off")
	}
	shared.users++
	t.Cleanup(func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.users--; shared.users == 0 {
			shared.server.end()
			shared.server = nil
		}
	})
	return shared.server
}

// begin starts a server.
func begin(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := &Server{t: t, bin: programs(t)}
	dir, err := os.MkdirTemp("", "pg") // a short path: that of a socket has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	if os.Getuid() == 0 {
		s.as = unprivileged(t)
		if err := os.Chown(dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	s.run("cp", "-a", s.template(), s.data())
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = free.Addr().(*net.TCPAddr).Port
	_ = free.Close() // the server listens there next
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"),
		os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conf, "listen_addresses = '127.0.0.1'\nport = %d\n"+
		"unix_socket_directories = '%s'\nmax_connections = 200\n%s\n", s.port, dir,
		strings.Join(settings, "\n"))
	if closeErr := conf.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	s.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", s.port)
	s.Start()
	return s
}

func (s *Server) end() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}

// run carries out a program of PostgreSQL or of the system.
func (s *Server) run(name string, args ...string) {
	s.t.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// template returns a data folder as initdb makes it. It takes a second to make, and so is kept with
// the machine's temporary files, for all tests.
func (s *Server) template() string {
	s.t.Helper()
	uid := os.Getuid()
	if s.as != nil {
		uid = int(s.as.Uid)
	}
	sum := fnv.New64a()
	program, err := os.Stat(filepath.Join(s.bin, "postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = fmt.Fprint(sum, s.bin, uid, program.ModTime(), program.Size()) // it never fails
	at := filepath.Join(os.TempDir(), fmt.Sprintf("runnel-pgtest-%x", sum.Sum64()))
	if _, err := os.Stat(at); err == nil {
		return at
	}
	made := filepath.Join(s.dir, "template")
	s.run("initdb", "-D", made, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8",
		"--locale=C")
	if err := os.Rename(made, at); err != nil { // another test may have been faster
		if _, there := os.Stat(at); there != nil {
			s.t.Fatal(err)
		}
	}
	return at
}

// programs returns the folder with the programs.
func programs(t testing.TB) string {
	t.Helper()
	if bin := os.Getenv(Env); bin != "" {
		return bin
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // its pattern is sound
	slices.Sort(found)
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	t.Skip("there is no PostgreSQL: install it, or name its bin folder with " + Env)
	return ""
}

// unprivileged returns a user for PostgreSQL, which refuses root.
func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	t.Skip("PostgreSQL refuses root, and there is no user postgres or nobody")
	return nil
}

// Unprivileged returns the attributes of a process that runs as another user than root.
func Unprivileged(t testing.TB) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: unprivileged(t)}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	if name != "cp" {
		name = filepath.Join(s.bin, name)
	}
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), name, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "HOME=" + s.dir, "LANG=C"}
	if s.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	}
	return cmd
}

// Start starts the server again, at the same port, and waits until it takes connections.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = s.command("postgres", "-D", s.data())
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		// Some distributions have neither psql nor pg_isready. The server's own file has its state.
		status, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		if lines := strings.Split(string(status), "\n"); err == nil && len(lines) > 7 &&
			strings.TrimSpace(lines[7]) == "ready" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal("PostgreSQL is not ready")
		}
	}
}

// Kill ends the server at once, as an immediate shutdown: it recovers at the next Start.
func (s *Server) Kill() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	_ = s.cmd.Wait() // the error is the signal
}

// Promote ends the server and starts it again on a new timeline, as a replica that was promoted. It
// has all that was committed.
func (s *Server) Promote() {
	s.t.Helper()
	s.Kill()
	s.Start() // it recovers from the kill
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	_ = s.cmd.Wait() // the error is the signal
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"),
		os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = conf.WriteString("restore_command = 'false'\nhot_standby = off\n")
	if closeErr := conf.Close(); err != nil || closeErr != nil {
		s.t.Fatal(err, closeErr)
	}
	signal := filepath.Join(s.data(), "recovery.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if s.as != nil {
		if err := os.Chown(signal, int(s.as.Uid), int(s.as.Gid)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.Start()
}
