package dynamo

import (
	"runtime"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
)

// A body of the greatest length whose values are the shortest is refused, for a small multiple of
// its own memory.
func TestBodiesOfShortValues(t *testing.T) {
	for _, c := range []struct{ operation, before, value, behind string }{
		{"TransactWriteItems", `{"TransactItems":[`, `{},`, `{}]}`},
		{"Scan", `{"TableName":"leases","AttributesToGet":[`, `"",`, `""]}`},
		{"PutItem", `{"TableName":"leases","Item":{"k":{"S":"a"},"v":{"L":[`, `{"L":[]},`, `{"S":""}]}}}`},
		{"PutItem", `{"TableName":"leases","Item":{"k":{"S":"a"},"v":{"SS":[`, `"",`, `""]}}}`},
		{"PutItem", `{"TableName":"leases","Item":{"k":{"S":"a"},"v":{"NS":[`, `"1",`, `"2"]}}}`},
	} {
		t.Run(c.operation+" "+c.value, func(t *testing.T) {
			s := newRangeTable(t)
			fill := (wire.MaxBody - len(c.before) - len(c.behind)) / len(c.value)
			body := c.before + strings.Repeat(c.value, fill) + c.behind
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Serve(t.Context(), call(c.operation, body))
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("it was taken")
			}
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 60 {
				t.Errorf("%d MiB for a body of %d: %v", got, len(body)>>20, err)
			}
		})
	}
}
