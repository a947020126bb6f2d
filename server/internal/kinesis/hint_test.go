package kinesis

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// lockedLog is a log that can be read during writes.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// take returns the log lines since the last call.
func (l *lockedLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

func TestHints(t *testing.T) {
	var log lockedLog
	n := newNode(t, func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	n.create("orders", 1)
	n.world = wire.World{Account: "111111111111", Region: "us-east-1"}
	n.create("orders", 1)
	n.create("mine", 1)
	log.take()
	n.world = wire.World{Account: "111111111111", Region: "eu-west-1"}

	record := m{"StreamName": "orders", "PartitionKey": "k", "Data": ""}
	n.refused("PutRecord", record, codeNotFound,
		"Stream orders under account 111111111111 not found.")
	line := log.take()
	for _, want := range []string{
		"level=WARN", "stream=orders", `caller="account 111111111111 region eu-west-1"`,
		`elsewhere="account 000000000000 region us-east-1, account 111111111111 region us-east-1"`,
		"check the access key id and the region",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("the log says %q, want %s", line, want)
		}
	}
	n.refused("DescribeStream", m{"StreamName": "orders"}, codeNotFound, "")
	if line := log.take(); line != "" {
		t.Errorf("the same hint is given again: %q", line)
	}
	n.refused("DescribeStream", m{"StreamName": "mine"}, codeNotFound, "")
	if line := log.take(); !strings.Contains(line, "stream=mine") {
		t.Errorf("the log says %q", line)
	}
	n.refused("DescribeStream", m{"StreamARN": ordersARN}, codeNotFound,
		"Stream orders under account 000000000000 not found.")
	if line := log.take(); !strings.Contains(line, "region us-east-1") {
		t.Errorf("about an ARN of another world the log says %q", line)
	}
	n.refused("DescribeStream", m{"StreamName": "nowhere"}, codeNotFound, "")
	n.world = here
	n.refused("DescribeStream", m{"StreamName": "nowhere"}, codeNotFound, "")
	n.call("DeleteStream", m{"StreamName": "orders"})
	n.world = wire.World{Account: "111111111111", Region: "us-east-1"}
	n.call("DeleteStream", m{"StreamName": "orders"})
	n.refused("PutRecord", record, codeNotFound, "")
	if line := log.take(); line != "" {
		t.Errorf("a hint leads nowhere: %q", line)
	}
}

// The number of remembered hints is bounded.
func TestHintsAreBounded(t *testing.T) {
	var h hints
	for i := range 3 * maxHints {
		of := hint{here, catalogue.Key{World: here, Name: fmt.Sprint(i)}}
		if !h.first(of) || h.first(of) {
			t.Fatalf("hint %d is not given once", i)
		}
		if len(h.given) > maxHints {
			t.Fatalf("%d hints are remembered", len(h.given))
		}
	}
}
