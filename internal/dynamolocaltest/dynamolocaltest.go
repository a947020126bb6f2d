// Package dynamolocaltest runs Amazon's DynamoDB Local for tests, in memory. `make interop`
// installs it.
package dynamolocaltest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/runnel-stream/runnel/internal/javatest"
)

// Env names the folder of DynamoDB Local, with its classes and the folders lib and native. Without
// it the one that interop/install makes is taken.
const Env = "RUNNEL_DYNAMODB_LOCAL"

// Server is a running server. It is not safe for concurrent use.
type Server struct {
	Addr string // HOST:PORT

	t    testing.TB
	java *javatest.Server
}

// New starts a server, and kills it at the end of the test. It skips the test if there is none.
func New(t testing.TB) *Server {
	t.Helper()
	dir := folder(t)
	if _, err := os.Stat(filepath.Join(dir, "classes", "Local.class")); err != nil {
		t.Skipf("there is no DynamoDB Local: run interop/install, or name its folder with %s (%v)",
			Env, err)
	}
	java := javatest.Start(t, "DynamoDB Local", "-Xmx512m",
		"-Djava.library.path="+filepath.Join(dir, "native"), "-cp",
		filepath.Join(dir, "lib", "*")+":"+filepath.Join(dir, "classes"), "Local")
	t.Cleanup(java.Kill)
	return &Server{Addr: "127.0.0.1:" + java.Port, t: t, java: java}
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

// Pause stops the server, which keeps its connections and answers none, until Resume.
func (s *Server) Pause() {
	s.t.Helper()
	s.java.Pause()
}

// Resume lets the server go on.
func (s *Server) Resume() {
	s.t.Helper()
	s.java.Resume()
}
