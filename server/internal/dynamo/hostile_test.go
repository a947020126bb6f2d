package dynamo

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

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

// While long pages are read elsewhere, a long page waits for its turn, and a short one comes at once.
func TestLongPagesTakeTurns(t *testing.T) {
	s := newRangeTable(t)
	put := func(key string, size int) {
		t.Helper()
		body := `{"TableName":"leases","Item":{"leaseKey":{"S":"` + key + `"},` +
			`"v":{"S":"` + strings.Repeat("x", size) + `"}}}`
		if _, err := s.Serve(t.Context(), call("PutItem", body)); err != nil {
			t.Fatal(err)
		}
	}
	put("a", smallPage/2)
	for range cap(s.pages) {
		s.pages <- struct{}{}
	}
	serve := func(within time.Duration, operation, body string) (answer string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		got, err := s.Serve(ctx, call(operation, body))
		return string(got.Body), err
	}
	scan := func(within time.Duration, body string) (answer string, err error) {
		return serve(within, "Scan", body)
	}
	const all, one = `{"TableName":"leases"}`, `{"TableName":"leases","Limit":1}`
	if _, err := scan(time.Minute, all); err != nil {
		t.Errorf("a short page: %v", err)
	}
	for _, key := range []string{"b", "c", "d"} {
		put(key, smallPage/2)
	}
	put("long", smallPage)
	get := func(key string) (string, error) {
		return serve(50*time.Millisecond, "GetItem",
			`{"TableName":"leases","Key":{"leaseKey":{"S":"`+key+`"}}}`)
	}
	if _, err := get("a"); err != nil {
		t.Errorf("a short item: %v", err)
	}
	if _, err := get("long"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a long item did not wait: %v", err)
	}
	if _, err := scan(time.Minute, one); err != nil {
		t.Errorf("a page of one item: %v", err)
	}
	if _, err := scan(50*time.Millisecond, all); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a long page did not wait: %v", err)
	}
	for range cap(s.pages) {
		<-s.pages
	}
	for range 2 * cap(s.pages) { // the turns are given back
		if answer, err := scan(time.Minute, all); err != nil ||
			!strings.Contains(answer, `"ScannedCount":5`) {
			t.Errorf("a long page after the others: %v %.100s", err, answer)
		}
	}
}
