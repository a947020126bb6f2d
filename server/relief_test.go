package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The memory that parsing took goes back, though the bodies themselves were short.
func TestReliefAfterParsing(t *testing.T) {
	s, err := Open(t.Context(), Config{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	s.relief.run()
	before, _ := heap()
	var body strings.Builder
	body.WriteString(`{"TableName":"leases","Item":{"k":{"S":"x"}`)
	for i := range 250_000 {
		fmt.Fprintf(&body, `,"a%d":{"N":"1"}`, i)
	}
	body.WriteString("}}")
	for range 2 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
			strings.NewReader(body.String()))
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	body.Reset()
	if held, _ := heap(); held < before+reliefAbove {
		t.Fatalf("parsing took %d bytes: the test needs more", held-before)
	}
	s.relief.run()
	if held, _ := heap(); held > before+reliefAbove/2 {
		t.Errorf("%d bytes are left", held-before)
	}
}
