package dynamo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// TestItemsMemory fills the memory of items: puts and transactions are throttled, leases are
// renewed, and a deletion makes room.
func TestItemsMemory(t *testing.T) {
	log, err := wal.Open(wal.Config{FS: vfs.NewMem(), Dir: "data", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	items := itemstore.New(itemstore.Config{Log: log, MaxMemory: 20 << 10})
	s := New(Config{Items: items, Now: time.Now, Logger: quiet})
	if err := log.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mustAsk(t, "CreateTable", leaseTable)
	s.mustAsk(t, "PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"held"},
		"leaseCounter":{"N":"97"}}}`)
	try := func(operation, body string) error {
		_, err := s.Serve(t.Context(), call(operation, body))
		return err
	}
	big := func(n int) string {
		return fmt.Sprintf(`{"TableName":"leases","Item":{"leaseKey":{"S":"big-%d"},
			"pad":{"S":"%s"}}}`, n, strings.Repeat("x", 1000))
	}
	n := 0
	for err = nil; err == nil && n < 100; n++ {
		err = try("PutItem", big(n))
	}
	throttled := func(err error) bool {
		var fault *wire.Error
		return errors.As(err, &fault) &&
			strings.HasSuffix(fault.Code, "#ProvisionedThroughputExceededException") &&
			strings.Contains(fault.Message, "--items-memory")
	}
	if n < 10 || !throttled(err) {
		t.Fatalf("after %d items: %v", n, err)
	}
	transaction := `{"TransactItems":[{"Put":` + big(n) + `}]}`
	if err := try("TransactWriteItems", transaction); !throttled(err) {
		t.Errorf("a transaction: %v", err)
	}
	for range 10 {
		s.mustAsk(t, "UpdateItem", `{"TableName":"leases","Key":{"leaseKey":{"S":"held"}},
			"UpdateExpression":"SET leaseCounter = leaseCounter + :one",
			"ExpressionAttributeValues":{":one":{"N":"1"}}}`)
	}
	s.mustAsk(t, "DeleteItem", `{"TableName":"leases","Key":{"leaseKey":{"S":"big-0"}}}`)
	if err := try("TransactWriteItems", transaction); err != nil {
		t.Errorf("a transaction after a deletion: %v", err)
	}
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
