package server_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/runnel-stream/runnel/server"
)

// Serve the APIs from a program's own HTTP server. Tests use package runneltest instead.
func Example() {
	ctx := context.Background()
	s, err := server.Open(ctx, server.Config{
		Memory: true, Streams: []server.StreamSpec{{Name: "orders", Shards: 4}},
	})
	if err != nil {
		log.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	answer, err := http.Get(web.URL + "/health")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status, s.Close(ctx))
	// Output: 200 OK <nil>
}

// Check reads a data directory without changing it.
func ExampleCheck() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "data")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := server.Open(ctx, server.Config{
		Dir: dir, Streams: []server.StreamSpec{{Name: "orders", Shards: 4}},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = server.Check(ctx, dir)
	fmt.Println(err == nil)
	if err := s.Close(ctx); err != nil {
		log.Fatal(err)
	}
	report, err := server.Check(ctx, dir)
	fmt.Println(report.OK, err)
	// Output:
	// false
	// true <nil>
}

// Validate reports every fault at once.
func ExampleConfig_Validate() {
	fmt.Println(server.Config{Account: "me", SyncInterval: -1}.Validate())
	// Output:
	// server: Account is "me": want 12 digits
	// server: SyncInterval is -1ns: want 0 or more
}
