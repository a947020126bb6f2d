// Package javatest runs servers in Java for tests: stand-ins for databases.
package javatest

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Java returns the program java. It skips the test if there is none.
func Java(t testing.TB, server string) string {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skipf("%s needs Java: %v", server, err)
	}
	return java
}

// Server is a running server. It is not safe for concurrent use.
type Server struct {
	Port string // of 127.0.0.1

	t      testing.TB
	name   string
	cmd    *exec.Cmd
	errors bytes.Buffer // its standard error, once it has ended
}

// Start starts a server, and waits until it has said "listening on PORT". It ends with the test's
// process. The name is for messages; the arguments are java's.
func Start(t testing.TB, name string, arguments ...string) *Server {
	t.Helper()
	output, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	s := &Server{t: t, name: name}
	s.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), Java(t, name), arguments...)
	s.cmd.Stdout, s.cmd.Stderr = written, &s.errors
	_, err = s.cmd.StdinPipe() // the server ends with it
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
	for lines := bufio.NewScanner(output); s.Port == "" && lines.Scan(); {
		s.Port, _ = strings.CutPrefix(lines.Text(), "listening on ")
		if s.Port == lines.Text() {
			s.Port = ""
		}
	}
	if s.Port == "" {
		s.Kill()
		t.Fatalf("%s does not say where it listens:\n%s", name, &s.errors)
	}
	return s
}

// Kill ends the server at once.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // the error is the signal
}

// Pause stops the server, which keeps its connections and answers none, until Resume or Kill.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus // the signal is on its way: wait until all threads have stopped
	_, err := syscall.Wait4(s.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	if err != nil || !status.Stopped() {
		s.t.Fatalf("%s has not stopped: %v", s.name, err)
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
