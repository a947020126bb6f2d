package cli_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/runneltest"
)

// TestRollupWaitsForItsTable starts a rollup while DynamoDB gives no answer, for longer than one
// call may take. The command waits and goes on.
func TestRollupWaitsForItsTable(t *testing.T) {
	t.Parallel()
	server := runneltest.NewServer(t, runneltest.WithStream("edits", 1))
	silent := silentFor(t, 7*time.Second, strings.TrimPrefix(server.Endpoint(), "http://"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, _, said := clitest.Run(ctx, "rollup", "--endpoint", server.Endpoint(),
		"--dynamodb-endpoint", "http://"+silent, "--stream", "edits", "--dynamodb", "counts",
		"--key", "/k", "--count", "--once")
	if status != 0 {
		t.Errorf("status %d: %s", status, said)
	}
}

// silentFor returns the address of a way to a server that passes nothing on for a while.
func silentFor(t *testing.T, d time.Duration, to string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var passing sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), d)
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		passing.Wait()
	})
	pass := func(client net.Conn) {
		defer client.Close()
		<-ctx.Done()
		server, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
		if err != nil {
			return
		}
		defer server.Close()
		passing.Go(func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		})
		_, _ = io.Copy(server, client)
	}
	passing.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { pass(client) })
		}
	})
	return listener.Addr().String()
}
