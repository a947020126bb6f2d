// Package mongotest runs a stand-in for MongoDB for tests: mongo-java-server over a file, which
// `make interop` installs. It passes for a single server without replication (wire version 8), so
// a driver retries no writes and opens no transactions. It ignores write concerns, and removes no
// documents by an index's expireAfterSeconds. In an ordered bulk it goes on after an error, and it
// ends the connection over a document above 16 MiB.
package mongotest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runnel-stream/runnel/internal/javatest"
)

// Env names the folder of the stand-in, with its classes and the folder lib of jars. Without it New
// skips the test.
const Env = "RUNNEL_MONGO"

// Server is a running server. It is not safe for concurrent use.
type Server struct {
	URI string // mongodb://127.0.0.1:PORT

	t    testing.TB
	dir  string // of Env
	file string // with the documents
	port string
	java *javatest.Server
}

const name = "mongo-java-server"

// New starts a server, and kills it at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	dir := os.Getenv(Env)
	if dir == "" {
		t.Skip(Env + " is not set: make interop installs mongo-java-server and runs this")
	}
	if _, err := os.Stat(filepath.Join(dir, "classes", "Mongo.class")); err != nil {
		t.Skipf("%s has no mongo-java-server: run interop/install (%v)", Env, err)
	}
	javatest.Java(t, name)
	s := &Server{t: t, dir: dir, file: filepath.Join(t.TempDir(), "mongo.mv"), port: "0"}
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

// Start starts the server again, at the same port and with its documents, and waits until it
// listens.
func (s *Server) Start() {
	s.t.Helper()
	// With these settings a JVM starts in 220 ms instead of 250, and takes little from the test.
	s.java = javatest.Start(s.t, name, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		// With more threads a document is written to the one connection while another changes it: a
		// reader gets the new version with the old values.
		"-Dio.netty.eventLoopThreads=1", "-cp",
		filepath.Join(s.dir, "lib", "*")+":"+filepath.Join(s.dir, "classes"),
		"Mongo", s.file, s.port)
	s.port = s.java.Port
	s.URI = "mongodb://127.0.0.1:" + s.port
}

// Kill ends the server at once. Every write that it answered is there at the next Start; an
// unfinished bulk may be there in part.
func (s *Server) Kill() { s.java.Kill() }

// Pause stops the server, which keeps its connections and answers none, until Resume or Kill.
func (s *Server) Pause() {
	s.t.Helper()
	s.java.Pause()
}

// Resume lets the server go on.
func (s *Server) Resume() {
	s.t.Helper()
	s.java.Resume()
}
