package server_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/runnel-stream/runnel/server"
)

// serveDir makes the test binary a server on that directory, so that it can be killed.
const serveDir = "RUNNEL_TEST_SERVE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		if err := serveForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serveForever prints its address and serves until it is killed.
func serveForever(dir string) error {
	ctx := context.Background()
	s, err := server.Open(ctx, server.Config{
		Dir: dir, Streams: []server.StreamSpec{{Name: "s", Shards: 1}},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return s.Serve(ctx, listener)
}
