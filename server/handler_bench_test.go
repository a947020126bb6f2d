package server

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

// BenchmarkPutRecord executes calls by the handler, without connections: it measures what each call
// costs beside the network. The log is in memory.
func BenchmarkPutRecord(b *testing.B) {
	s, err := Open(b.Context(), Config{Memory: true, Streams: []StreamSpec{{Name: "s", Shards: 1}}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	body := []byte(`{"StreamName":"s","PartitionKey":"k","Data":"dHdlbHZlIGJ5dGVz"}`)
	header := http.Header{
		"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"Kinesis_20131202.PutRecord"},
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://localhost/", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header, r.ContentLength = header, int64(len(body))
	w := &counted{header: http.Header{}}
	handler := s.Handler()
	b.ReportAllocs()
	for b.Loop() {
		r.Body = io.NopCloser(bytes.NewReader(body))
		clear(w.header)
		handler.ServeHTTP(w, r)
	}
	if w.failed > 0 {
		b.Fatalf("%d calls failed", w.failed)
	}
}

// counted is a writer that counts answers other than 200.
type counted struct {
	header http.Header
	failed int
}

func (w *counted) Header() http.Header         { return w.header }
func (w *counted) Write(p []byte) (int, error) { return len(p), nil }
func (w *counted) WriteHeader(status int) {
	if status != http.StatusOK {
		w.failed++
	}
}
