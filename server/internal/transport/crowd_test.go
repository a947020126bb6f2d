package transport

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/server/internal/pause"
)

// At the limit of connections, silent clients and idle ones make room for those that call, in this
// order, and calls under way do not.
func TestCrowd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hold, held := make(chan struct{}), make(chan struct{}, 100)
	pauses := pause.New()
	base := t.Context()
	tr := newTransport(base, listener, Config{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request, err := Begin(r, pauses)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			defer request.End()
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Header.Get("X-Hold") != "" {
				held <- struct{}{}
				<-hold
			}
			w.WriteHeader(http.StatusOK)
		}),
		Pauses: pauses, Date: func() []string { return nil }, Logger: slog.New(slog.DiscardHandler),
	})
	tr.door.most = 20
	tr.door.open()
	go func() { _ = tr.http.Serve(tr.door) }()
	t.Cleanup(func() {
		_ = tr.cut()
		_ = tr.door.Close()
		tr.door.Wait()
	})
	dial := func(text string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(conn, text)
		return conn
	}
	const call = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
	answered := func(conn net.Conn) error {
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	busy := dial(call + "X-Hold: 1\r\n\r\n{}")
	<-held
	idle := dial(call + "\r\n{}")
	if err := answered(idle); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		dial("")
	}
	for range 15 { // in the places of silent ones
		if err := answered(dial(call + "\r\n{}")); err != nil {
			t.Fatalf("a call beside 100 silent sockets: %v", err)
		}
	}
	if _, err := io.WriteString(idle, call+"\r\n{}"); err != nil || answered(idle) != nil {
		t.Error("silent sockets have taken the place of an idle one")
	}
	time.Sleep(idleBefore + 100*time.Millisecond)
	for range 10 { // in the places of those
		if err := answered(dial(call + "\r\n{}")); err != nil {
			t.Errorf("a call beside idle connections: %v", err)
		}
	}
	tr.door.mu.Lock()
	n := len(tr.door.conns)
	tr.door.mu.Unlock()
	if n > 20 {
		t.Errorf("%d connections are open, want 20 at most", n)
	}
	close(hold)
	if err := answered(busy); err != nil {
		t.Errorf("a call under way has made room: %v", err)
	}
}

func TestConnsForFiles(t *testing.T) {
	limit := FileLimit()
	for files, want := range map[int]int{0: min(mostConns, limit), limit: 16, limit - 20: 20} {
		if got := connsFor(files); got != want {
			t.Errorf("%d files of %d for others: %d connections, want %d", files, limit, got, want)
		}
	}
}
