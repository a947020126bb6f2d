// Package dynamolocaltest runs Amazon's DynamoDB Local for tests, in memory. `make interop`
// installs it.
package dynamolocaltest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Env names the folder of DynamoDB Local, with its classes and the folders lib and native. Without
// it the one that interop/install makes is taken.
const Env = "RUNNEL_DYNAMODB_LOCAL"

// Server is a running server. It is not safe for concurrent use.
type Server struct {
	Addr string // HOST:PORT

	t   testing.TB
	cmd *exec.Cmd
}

// New starts a server, and kills it at the end of the test. It skips the test if there is none.
func New(t testing.TB) *Server {
	t.Helper()
	dir := folder(t)
	if _, err := os.Stat(filepath.Join(dir, "classes", "Local.class")); err != nil {
		t.Skipf("there is no DynamoDB Local: run interop/install, or name its folder with %s (%v)",
			Env, err)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skipf("DynamoDB Local needs Java: %v", err)
	}
	output, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	s := &Server{t: t}
	s.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), java, "-Xmx512m",
		"-Djava.library.path="+filepath.Join(dir, "native"), "-cp",
		filepath.Join(dir, "lib", "*")+":"+filepath.Join(dir, "classes"), "Local")
	var messages bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = written, &messages
	_, err = s.cmd.StdinPipe() // the server ends with it, and so with the test
	if err == nil {
		err = s.cmd.Start()
	}
	_ = written.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := output.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); s.Addr == "" && lines.Scan(); {
		if port, found := strings.CutPrefix(lines.Text(), "listening on "); found {
			s.Addr = "127.0.0.1:" + port
		}
	}
	if s.Addr == "" {
		s.kill()
		t.Fatalf("DynamoDB Local does not say where it listens:\n%s", &messages)
	}
	t.Cleanup(s.kill)
	return s
}

// folder returns the folder of DynamoDB Local, which may be absent.
func folder(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(Env); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for { // up to the module's root
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil || !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir) {
			return filepath.Join(dir, ".tools", "interop", "dynamodblocal")
		}
		dir = filepath.Dir(dir)
	}
}

func (s *Server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // the error is the signal
}

// Pause stops the server, which keeps its connections and answers none, until Resume.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus // the signal is on its way: wait until all threads have stopped
	_, err := syscall.Wait4(s.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	if err != nil || !status.Stopped() {
		s.t.Fatalf("DynamoDB Local has not stopped: %v", err)
	}
}

// Resume lets the server go on.
func (s *Server) Resume() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
}

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}
