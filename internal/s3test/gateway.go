// Package s3test runs a real server of S3 for tests: versitygw, over a folder. `make interop`
// installs it.
package s3test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Env names the program. Without it New skips the test.
const Env = "RUNNEL_S3_GATEWAY"

// The keys that the server knows, and its bucket.
const (
	AccessKeyID     = "runnelkey"
	SecretAccessKey = "runnelsecret"
	Bucket          = "events"
)

// Gateway is a running server. It is not safe for concurrent use.
type Gateway struct {
	URL  string // of the S3 API
	Data string // the bucket's folder, with one file for each object

	t   testing.TB
	dir string
	cmd *exec.Cmd
}

// New starts a server, and kills it at the end of the test.
func New(t testing.TB) *Gateway {
	t.Helper()
	if os.Getenv(Env) == "" {
		t.Skip(Env + " is not set: make interop installs versitygw and runs this")
	}
	dir := t.TempDir()
	g := &Gateway{t: t, dir: dir, Data: filepath.Join(dir, "data", Bucket)}
	for _, folder := range []string{g.Data, filepath.Join(dir, "meta")} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.URL = "http://" + free.Addr().String()
	_ = free.Close() // the server listens there next
	g.Start()
	t.Cleanup(g.Kill)
	return g
}

// Start starts the server again, at the same address, and waits until it listens.
func (g *Gateway) Start() {
	g.t.Helper()
	addr := g.URL[len("http://"):]
	g.cmd = exec.CommandContext(context.WithoutCancel(g.t.Context()), os.Getenv(Env),
		"--port", addr, "--quiet", "posix", "--sidecar", filepath.Join(g.dir, "meta"),
		filepath.Dir(g.Data))
	g.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKeyID,
		"ROOT_SECRET_KEY="+SecretAccessKey)
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	dialer := net.Dialer{Timeout: time.Second}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := dialer.DialContext(g.t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("versitygw does not listen at %s: %v", addr, err)
		}
	}
}

// Kill kills the server with -9.
func (g *Gateway) Kill() {
	_ = g.cmd.Process.Signal(syscall.SIGKILL)
	_ = g.cmd.Wait() // the error is the signal
}
