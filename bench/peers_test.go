package bench

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/bench/internal/plainbody"
)

// connect returns a client of a server on this machine. Every subscription has its own connection,
// and the bodies are plain: see docs/serve.md on the Go SDK.
func connect(addr string) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://" + addr),
		Credentials:  credentials.NewStaticCredentialsProvider("bench", "bench", ""),
		HTTPClient: &http.Client{
			Transport: plainbody.Transport{Next: &http.Transport{MaxIdleConnsPerHost: 64}},
		},
	})
}

// startRunnel runs `runnel serve` as a process, each answer synced to the disk.
func startRunnel(tb testing.TB) *kinesis.Client {
	binary := filepath.Join(tb.TempDir(), "runnel")
	if out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", binary,
		"../cmd/runnel").CombinedOutput(); err != nil {
		tb.Fatalf("build runnel: %v\n%s", err, out)
	}
	command := exec.CommandContext(tb.Context(), binary, "serve", "--addr", "127.0.0.1:0",
		"--data", tb.TempDir())
	messages, err := command.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	spawn(tb, command)
	return connect(listensAt(tb, bufio.NewScanner(messages)))
}

// startFerrokinesis runs the peer, which `make peers` installs, in memory.
func startFerrokinesis(tb testing.TB) *kinesis.Client {
	binary, err := filepath.Abs("../.tools/peers/bin/ferrokinesis")
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		tb.Skipf("%v: make peers installs it", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		tb.Fatal(err)
	}
	spawn(tb, exec.CommandContext(tb.Context(), binary, "--port", fmt.Sprint(port),
		"--create-stream-ms", "20", "--delete-stream-ms", "20", "--update-stream-ms", "20"))
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	var dialer net.Dialer
	for range 200 {
		if conn, err := dialer.DialContext(tb.Context(), "tcp", addr); err == nil {
			_ = conn.Close()
			return connect(addr)
		}
		time.Sleep(20 * time.Millisecond)
	}
	tb.Fatal("ferrokinesis does not answer")
	return nil
}

// spawn starts a process that ends with the test.
func spawn(tb testing.TB, command *exec.Cmd) {
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}
