package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/server/internal/pause"
	"github.com/runnel-stream/runnel/server/internal/pipes"
)

// carry runs a transport for a handler. It ends with the test.
func carry(
	t testing.TB, listener net.Listener, handler http.Handler, change ...func(*transport),
) *transport {
	t.Helper()
	carried := newTransport(context.WithoutCancel(t.Context()), listener, Config{
		Handler: handler, Pauses: pause.New(), WriteTimeout: time.Minute,
		Date:   func() []string { return []string{time.Now().UTC().Format(http.TimeFormat)} },
		Logger: slog.New(slog.DiscardHandler),
	})
	for _, change := range change {
		change(&carried)
	}
	carried.door.open()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = carried.http.Serve(carried.door)
	}()
	t.Cleanup(func() {
		_ = carried.cut()
		<-ended
		carried.door.Wait()
	})
	return &carried
}

// withoutShortcut leaves every connection to net/http.
func withoutShortcut(t *transport) { t.door.plain = func(conn *earlyConn) { t.door.hand(conn) } }

// socket listens where connections take no ports.
func socket(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// echo answers with its view of a request, and names the path that served it.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if r.Header.Get("Unread") == "" {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	_, short := w.(*shortcutAnswer)
	w.Header().Set("X-Shortcut", strconv.FormatBool(short))
	w.Header().Set("Content-Type", "text/plain")
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s %s %s of %s, %d bytes, %v\n", r.Method, r.RequestURI, r.Proto, r.Host,
		r.ContentLength, r.TransferEncoding)
	_ = r.Header.Write(&text)
	text.Write(body)
	switch r.Header.Get("Answer") {
	case "pieces":
		for piece := range slices.Chunk(text.Bytes(), 7) {
			_, _ = w.Write(piece)
		}
		return
	case "nothing":
		w.WriteHeader(http.StatusForbidden)
		return
	case "large":
		text.Write(make([]byte, 2*joinedBody))
	case "more headers":
		w.Header().Set("X-More", "x")
	case "last":
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	_, _ = w.Write(text.Bytes())
})

// plainCall is a request that takes the shortcut.
func plainCall(header, body string) string {
	return "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: Kinesis_20131202.PutRecord\r\n" + header +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// exchange sends a connection's bytes, ends the sending, and returns the answers, as a text without
// the parts that vary with time, and the path that served each request.
func exchange(t testing.TB, address string, parts ...string) (answers string, short []string) {
	t.Helper()
	conn, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	for i, part := range parts {
		if i > 0 {
			time.Sleep(20 * time.Millisecond) // so that it comes by itself
		}
		if _, err := io.WriteString(conn, part); err != nil {
			break // the server has said its last
		}
	}
	_ = conn.(*net.UnixConn).CloseWrite()
	in := bufio.NewReader(conn)
	var text strings.Builder
	for {
		if _, err := in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
				return text.String(), short
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("no end of %q", parts)
			}
			return text.String() + "broken off", short
		}
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return text.String() + "not HTTP/1", short
		}
		body, err := io.ReadAll(answer.Body)
		if who := answer.Header.Get("X-Shortcut"); who != "" {
			short = append(short, who)
		}
		if answer.Header.Get("Date") == "" && answer.StatusCode == http.StatusOK {
			t.Errorf("an answer without Date: %v", answer.Header)
		}
		answer.Header.Del("X-Shortcut")
		answer.Header.Del("Date")
		fmt.Fprintf(&text, "%s, %d bytes, %v, close %v\n", answer.Status, answer.ContentLength,
			answer.TransferEncoding, answer.Close)
		_ = answer.Header.Write(&text)
		fmt.Fprintf(&text, "%s\n", body)
		if answer.Close {
			return text.String(), short // a reset may come after it
		}
		if err != nil {
			return text.String() + "broken off", short
		}
	}
}

// TestShortcut: a client gets the same answers as from net/http's server alone, and plain calls
// take the shortcut.
func TestShortcut(t *testing.T) {
	t.Parallel()
	with := carry(t, socket(t), echo).door.Addr().String()
	without := carry(t, socket(t), echo, withoutShortcut).door.Addr().String()
	call := plainCall("", "body")
	for name, c := range map[string]struct {
		parts []string
		want  string // the path that serves each request
	}{
		"a call":                   {[]string{call}, "true"},
		"two calls":                {[]string{call, plainCall("A: b\r\n", "other")}, "true true"},
		"a host with a port":       {[]string{strings.Replace(call, "Host: x", "host: my_kinesis:4567", 1)}, "true"},
		"two calls in one piece":   {[]string{call + call}, "true true"},
		"no body":                  {[]string{plainCall("", "")}, "true"},
		"a body in pieces":         {[]string{call[:len(call)-3], "o", "dy"}, "true"},
		"a body that ends early":   {[]string{call[:len(call)-3]}, ""},
		"a call that ends early":   {[]string{call, "PO"}, "true"},
		"a large body":             {[]string{plainCall("", strings.Repeat("x", 300_000))}, "true"},
		"a large answer":           {[]string{plainCall("Answer: large\r\n", "") + call}, "true true"},
		"an answer in pieces":      {[]string{plainCall("Answer: pieces\r\n", "") + call}, "true true"},
		"an answer without a body": {[]string{plainCall("Answer: nothing\r\n", "") + call}, "true true"},
		"a last answer":            {[]string{plainCall("Answer: last\r\n", "") + call}, "true"},
		"headers of the first":     {[]string{plainCall("Answer: more headers\r\n", "") + call}, "true true"},
		"an unread body":           {[]string{plainCall("Unread: x\r\n", "body") + call}, "true true"},
		"a last one, unread":       {[]string{plainCall("Unread: x\r\nAnswer: last\r\n", strings.Repeat("x", 200_000))}, "true"},
		"line ends between":        {[]string{call + "\r\n" + call, "\n\n" + call}, "true true true"},
		"Upgrade alone":            {[]string{plainCall("Upgrade: h2c\r\n", "x")}, "true"},
		"a trailer's name":         {[]string{plainCall("Trailer: A\r\n", "x")}, "true"},
		"GET":                      {[]string{"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"}, "false"},
		"a call, GET, a call": {
			[]string{call + "GET /x HTTP/1.1\r\nHost: x\r\n\r\n" + call}, "true false false",
		},
		"a head in pieces":   {[]string{call[:30], call[30:]}, "false"},
		"a head too long":    {[]string{plainCall("A: "+strings.Repeat("b", headBuffer)+"\r\n", "")}, "false"},
		"bare line feeds":    {[]string{strings.ReplaceAll(call, "\r", "")}, "false"},
		"another path":       {[]string{strings.Replace(call, "POST /", "POST /a?b", 1)}, "false"},
		"HTTP/1.0":           {[]string{strings.Replace(call, "HTTP/1.1", "HTTP/1.0", 1)}, "false"},
		"an event stream":    {[]string{strings.Replace(call, "PutRecord", "SubscribeToShard", 1)}, "false"},
		"Connection: close":  {[]string{plainCall("Connection: close\r\n", "x")}, "false"},
		"Expect":             {[]string{plainCall("Expect: 100-continue\r\n", "x")}, "false"},
		"Upgrade":            {[]string{plainCall("Upgrade: other\r\nConnection: upgrade\r\n", "x")}, "false"},
		"chunked":            {[]string{plainCall("", "")[:60] + "\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"}, ""},
		"no Host":            {[]string{strings.Replace(call, "Host: x\r\n", "", 1)}, ""},
		"a control":          {[]string{plainCall("A: \x01\r\n", "x")}, ""},
		"a delete":           {[]string{plainCall("A: \x7f\r\n", "x")}, ""},
		"two lengths":        {[]string{plainCall("Content-Length: 7\r\n", "x")}, ""},
		"no HTTP":            {[]string{"POST\r\n\r\n"}, ""},
		"no name":            {[]string{plainCall(": b\r\n", "x")}, ""},
		"a space in a name":  {[]string{plainCall("A b: c\r\n", "x")}, ""},
		"a folded line":      {[]string{plainCall("A: b\r\n c\r\n", "x")}, "false"},
		"P and nothing else": {[]string{"P"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, short := exchange(t, with, c.parts...)
			want, _ := exchange(t, without, c.parts...)
			if got != want {
				t.Errorf("got %q,\nnet/http's is %q", got, want)
			}
			if who := strings.Join(short, " "); who != c.want {
				t.Errorf("took the shortcut: %q, want %q; the answers: %q", who, c.want, got)
			}
		})
	}
}

// FuzzShortcut: for any bytes, in up to two pieces, a client gets the same answers as from
// net/http's server alone.
func FuzzShortcut(f *testing.F) {
	with := carry(f, socket(f), echo).door.Addr().String()
	without := carry(f, socket(f), echo, withoutShortcut).door.Addr().String()
	for _, header := range []string{
		"", "A: b\r\n", "Expect: 100-continue\r\n", "Transfer-Encoding: chunked\r\n",
		"Connection: close\r\n", "Connection: keep-alive, close\r\n", "connection: Close 0\r\n", "Content-Length: 2\r\n",
		"Answer: pieces\r\n", "Answer: last\r\n", "Host: y\r\n", "Trailer: A\r\n", "\r\n",
		"Content-Type: a\r\n\tb\r\n", "\t\r\n",
	} {
		f.Add([]byte(plainCall(header, "body")+plainCall("", "more")), 0)
	}
	f.Add([]byte(plainCall("", "body")+"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 7)
	f.Fuzz(func(t *testing.T, sent []byte, cut int) {
		parts := []string{string(sent)}
		if cut > 0 && cut < len(sent) {
			parts = []string{string(sent[:cut]), string(sent[cut:])}
		}
		if bytes.Contains(sent, []byte("HTTP/2")) {
			t.Skip("it is not to be read as HTTP/1.1")
		}
		var got, want string
		for range 3 { // a reset may overtake the answer to nonsense
			got, _ = exchange(t, with, parts...)
			want, _ = exchange(t, without, parts...)
			if got == want {
				return
			}
		}
		t.Errorf("%q: got %q,\nnet/http's is %q", parts, got, want)
	})
}

// piped runs a transport over connections in memory, for synctest: its time waits for no others.
func piped(
	t *testing.T, handler http.Handler, change ...func(*transport),
) (past *shortcut, dial func() net.Conn) {
	t.Helper()
	listener := pipes.New()
	carried := carry(t, listener, handler, change...)
	return carried.past, func() net.Conn {
		near := listener.Dial()
		t.Cleanup(func() { _ = near.Close() })
		return near
	}
}

// answerTo sends a request and returns the answer.
func answerTo(t *testing.T, conn net.Conn, request string) *http.Response {
	t.Helper()
	go func() { _, _ = io.WriteString(conn, request) }()
	answer, _ := readAnswer(t, conn)
	return answer
}

// readAnswer reads an answer that has been asked for.
func readAnswer(t *testing.T, conn net.Conn) (answer *http.Response, body []byte) {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		body, err = io.ReadAll(answer.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer, body
}

// wantEnd waits until the server has closed the connection, without a further word.
func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	if said, err := io.ReadAll(conn); err != nil || len(said) > 0 {
		t.Errorf("it said %q, %v; want the end", said, err)
	}
}

// TestShortcutTimes: a client that says nothing, or not all, is not waited for longer than net/http
// would, but for an eighth.
func TestShortcutTimes(t *testing.T) {
	call := plainCall("", "body")
	for name, c := range map[string]struct {
		calls int    // before it
		sends string // and then nothing more
		most  time.Duration
	}{
		"no request":           {1, "", idleTimeout},
		"no request for long":  {50, "", idleTimeout},
		"the half of a body":   {0, call[:len(call)-2], readTimeout},
		"the half of the next": {1, call[:len(call)-2], readTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err == nil {
						w.WriteHeader(http.StatusOK)
					}
				}))
				conn := dial()
				for range c.calls {
					answerTo(t, conn, call)
					time.Sleep(idleTimeout / 3)
				}
				began := time.Now()
				go func() { _, _ = io.WriteString(conn, c.sends) }()
				wantEnd(t, conn)
				waited := time.Since(began)
				if c.sends == "" {
					waited += idleTimeout / 3
				}
				if waited < c.most || waited > c.most+c.most/8 {
					t.Errorf("it was waited for %v, want %v", waited, c.most)
				}
			})
		})
	}
}

// TestShortcutSlowReader: an answer that is not read ends its connection, after three quarters of
// its time at the earliest, and all of it at the latest.
func TestShortcutSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
			echo(w, r)
		}))
		conn := dial()
		for range 5 { // the deadline moves on
			answerTo(t, conn, plainCall("", ""))
			time.Sleep(14 * time.Second)
		}
		_, _ = io.WriteString(conn, plainCall("", ""))
		time.Sleep(44 * time.Second)
		one := make([]byte, 1)
		if _, err := conn.Read(one); err != nil {
			t.Errorf("after 44 s: %v", err)
		}
		time.Sleep(16 * time.Second)
		wantEnd(t, conn) // the rest of the answer is lost
	})
}

// TestShortcutDeadlines: a nearer one holds at once, and none is left to net/http.
func TestShortcutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			switch r.Header.Get("Write") {
			case "soon":
				_ = control.SetWriteDeadline(time.Now().Add(time.Hour))
				_ = control.SetWriteDeadline(time.Now().Add(time.Second))
			case "":
				_ = control.SetWriteDeadline(time.Now().Add(time.Minute))
			case "late":
				time.Sleep(time.Hour)
			}
			if r.RemoteAddr == "" {
				t.Error("a request from nowhere")
			}
			echo(w, r)
		}))
		conn := dial()
		first := answerTo(t, conn, plainCall("", ""))
		time.Sleep(5 * time.Second)
		second := answerTo(t, conn, plainCall("", ""))
		if first.Header.Get("Date") == second.Header.Get("Date") {
			t.Errorf("both at %s", first.Header.Get("Date"))
		}
		late := answerTo(t, conn, "GET / HTTP/1.1\r\nHost: x\r\nWrite: late\r\n\r\n")
		if late.Header.Get("X-Shortcut") != "false" {
			t.Errorf("GET: %v", late.Header)
		}
		conn = dial()
		_, _ = io.WriteString(conn, plainCall("Write: soon\r\n", ""))
		time.Sleep(2 * time.Second)
		wantEnd(t, conn)
	})
}

// TestShortcutEndsBetween: the end that comes between an answer and the wait for the next request.
func TestShortcutEndsBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var past *shortcut
		past, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			echo(w, r)
			past.close()
		}))
		conn, began := dial(), time.Now()
		if answer := answerTo(t, conn, plainCall("", "")); answer.Close {
			t.Error("the answer was sent after the end")
		}
		wantEnd(t, conn)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it lived for another %v", waited)
		}
	})
}

// TestShortcutEnds: at the end idle connections close at once, and calls under way are answered,
// with a note that it was the last one; cut ends them all.
func TestShortcutEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		past, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Wait") != "" {
				<-release
			}
			echo(w, r)
		}))
		idle, busy, more := dial(), dial(), dial()
		answerTo(t, idle, plainCall("", ""))
		answered := make(chan *http.Response)
		go func() { answered <- answerTo(t, busy, plainCall("Wait: x\r\n", "")) }()
		go func() { _, _ = io.WriteString(more, plainCall("Wait: x\r\n", "")) }()
		synctest.Wait()
		past.close()
		wantEnd(t, idle)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := past.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while calls are under way: %v", err)
		}
		_ = more.Close() // its answer cannot be written
		close(release)
		if answer := <-answered; !answer.Close || answer.StatusCode != http.StatusOK {
			t.Errorf("the last answer: %v, close %v", answer.Status, answer.Close)
		}
		wantEnd(t, busy)
		if err := past.wait(t.Context()); err != nil {
			t.Error(err)
		}
		wantEnd(t, dial()) // a new connection
	})
}

func TestShortcutCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		past, dial := piped(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		conn := dial()
		_, _ = io.WriteString(conn, plainCall("", ""))
		synctest.Wait()
		past.cut()
		wantEnd(t, conn)
	})
}

// TestShortcutBreaksOff: a handler that aborts, fails or says nothing leaves no answer, and only a
// failure is logged.
func TestShortcutBreaksOff(t *testing.T) {
	for name, c := range map[string]struct {
		handler func()
		logged  string
	}{
		"aborted": {func() { panic(http.ErrAbortHandler) }, ""},
		"failed":  {func() { panic("no luck") }, "no luck"},
		"silent":  {func() {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			listener := socket(t)
			carried := carry(t, listener, http.HandlerFunc(
				func(http.ResponseWriter, *http.Request) { c.handler() },
			), func(t *transport) { t.past.logger = slog.New(slog.NewTextHandler(&log, nil)) })
			got, _ := exchange(t, listener.Addr().String(), plainCall("", "x"))
			if got != "" {
				t.Errorf("answered with %q", got)
			}
			_ = carried.past.wait(t.Context())
			if text := log.String(); !strings.Contains(text, c.logged) || (c.logged == "") != (text == "") {
				t.Errorf("logged %q, want %q", text, c.logged)
			}
		})
	}
}

// served is a handler as the server's: it reads the body, and then serves the call.
func served(call func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request, err := Begin(r, pause.New())
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer request.End()
		_, _ = io.ReadAll(r.Body)
		request.BodyRead()
		call(w, r)
	}
}

// TestWatchClient: a call that waits notices that its client has gone. If the client stays, the call
// and its connection go on, also if the client sends the next request meanwhile.
func TestWatchClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan time.Duration, 1)
		_, dial := piped(t, served(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			select {
			case <-r.Context().Done():
				gone <- time.Since(began)
			case <-time.After(time.Hour):
				w.WriteHeader(http.StatusOK)
			}
		}))
		conn := dial()
		for range 3 {
			answerTo(t, conn, plainCall("", "x"))
		}
		go func() { _, _ = io.WriteString(conn, plainCall("", "x")+plainCall("", "x")) }()
		in := bufio.NewReader(conn)
		for range 2 {
			if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("a call behind another one: %v, %v", answer, err)
			}
		}
		_, _ = io.WriteString(conn, plainCall("", "x"))
		time.Sleep(time.Minute)
		_ = conn.Close()
		if after := <-gone; after != time.Minute {
			t.Errorf("it learnt of it after %v", after)
		}
	})
}

// TestRefusedBeforeItsBody: a connection goes on after a call with an unread body.
func TestRefusedBeforeItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := served(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
		calls := 0
		_, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls%2 == 1 {
				read(w, r)
				return
			}
			request, err := Begin(r, pause.New())
			if err != nil {
				t.Error(err)
				return
			}
			defer request.End()
			w.WriteHeader(http.StatusForbidden)
		}))
		conn := dial()
		for range 3 {
			answerTo(t, conn, plainCall("", "x"))
			answerTo(t, conn, plainCall("", "x"))
			time.Sleep(2 * watchAfter)
		}
	})
}

// TestAnExpiredConnectionKeepsItsCall: the pause of the process ends the reading of a connection. Its
// call is not cancelled by that, since the client is there.
func TestAnExpiredConnectionKeepsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := piped(t, served(func(w http.ResponseWriter, r *http.Request) {
			conn, _ := r.Context().Value(connKey{}).(*earlyConn)
			time.Sleep(2 * watchAfter)
			conn.expire()
			time.Sleep(time.Minute)
			if err := r.Context().Err(); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusOK)
		}))
		answerTo(t, dial(), plainCall("", "x"))
	})
}
