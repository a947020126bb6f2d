package dynamo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// fileSize keeps the log's files small: a crash looks at every sector of them.
const fileSize = 256 << 10

// newService returns a service on a log in the folder of a file system.
func newService(t testing.TB, fs vfs.FS, dir string) *Service {
	t.Helper()
	return startService(t, wal.Config{FS: fs, Dir: dir, FileSize: fileSize, Logger: quiet})
}

func startService(t testing.TB, cfg wal.Config) *Service {
	t.Helper()
	log, err := wal.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	items := itemstore.New(itemstore.Config{Log: log})
	t.Cleanup(func() {
		if err := log.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := log.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	service := Config{
		Items: items, Logger: quiet, Now: func() time.Time { return time.UnixMilli(1_500_000_000_250) },
	}
	if err := service.Validate(); err != nil {
		t.Fatal(err)
	}
	return New(service)
}

func call(operation, body string) *wire.Call {
	return &wire.Call{
		Service: "dynamodb", Operation: operation, Body: []byte(body), RequestID: "request",
		World: wire.World{Account: "000000000000", Region: "us-east-1"},
	}
}

// ask returns the answer as text; an error as its code without the namespace, and message.
func (s *Service) ask(t testing.TB, operation, body string) string {
	t.Helper()
	answer, err := s.Serve(t.Context(), call(operation, body))
	var fault *wire.Error
	switch {
	case errors.As(err, &fault):
		text := fault.Code
		for i := range text {
			if text[i] == '#' {
				text = text[i+1:]
				break
			}
		}
		if item, found := fault.Extra["Item"]; found {
			return fmt.Sprintf("%s: %s %s", text, fault.Message, item)
		}
		return text + ": " + fault.Message
	case err != nil:
		t.Fatalf("%s %s: %v", operation, body, err)
	}
	return string(answer.Body)
}

// mustAsk fails the test at an error.
func (s *Service) mustAsk(t testing.TB, operation, body string) string {
	t.Helper()
	answer, err := s.Serve(t.Context(), call(operation, body))
	if err != nil {
		t.Fatalf("%s %s: %v", operation, body, err)
	}
	return string(answer.Body)
}

const leaseTable = `{"TableName":"leases","BillingMode":"PAY_PER_REQUEST",
	"AttributeDefinitions":[{"AttributeName":"leaseKey","AttributeType":"S"}],
	"KeySchema":[{"AttributeName":"leaseKey","KeyType":"HASH"}]}`
