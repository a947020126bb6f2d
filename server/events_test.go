package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/localca"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/pipes"
)

// feed is an event stream under a test's control.
type feed struct {
	events chan wire.Event // closed: the stream's proper end
	fail   chan error      // an error for Next to return in the place of an event
	asked  atomic.Int32    // calls of Next
	gone   chan struct{}   // closed when Next has seen its context end
	closed chan struct{}
}

func newFeed() *feed {
	return &feed{
		events: make(chan wire.Event), fail: make(chan error, 1),
		gone: make(chan struct{}), closed: make(chan struct{}),
	}
}

func (f *feed) Next(ctx context.Context) (wire.Event, error) {
	f.asked.Add(1)
	select {
	case event, ok := <-f.events:
		if !ok {
			return event, io.EOF
		}
		return event, nil
	case err := <-f.fail:
		if err == nil {
			panic("the feed panics")
		}
		return wire.Event{}, err
	case <-ctx.Done():
		close(f.gone)
		return wire.Event{}, ctx.Err()
	}
}

func (f *feed) Close() { close(f.closed) } // a second time panics

func (f *feed) send(t *testing.T, text string) {
	t.Helper()
	select {
	case f.events <- wire.Event{Type: "E", Payload: []byte(text)}:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody takes the event")
	}
}

func wait(t *testing.T, what string, until <-chan struct{}) {
	t.Helper()
	select {
	case <-until:
	case <-time.After(10 * time.Second):
		t.Fatalf("no end of the wait: %s", what)
	}
}

// endless is an event stream that never waits.
type endless struct {
	feed
	payload []byte
}

func (e *endless) Next(ctx context.Context) (wire.Event, error) {
	e.asked.Add(1)
	if ctx.Err() != nil {
		return wire.Event{}, ctx.Err()
	}
	return wire.Event{Type: "E", Payload: e.payload}, nil
}

// largeFeed is a feed whose events take memory of the answers.
type largeFeed struct {
	*feed

	sending *budget.Share
}

const largeEvent = 1 << 20

func (f *largeFeed) Next(ctx context.Context) (wire.Event, error) {
	event, err := f.feed.Next(ctx)
	if err == nil {
		err = f.sending.Grow(ctx, largeEvent)
	}
	return event, err
}

// streams is a service that answers SubscribeToShard with the feeds, in their order. Hold waits for
// its release, Panic panics, Length answers with the body's length; everything else answers {}.
type streams struct{ levers }

type levers struct {
	feeds      chan wire.Events
	holds, let chan struct{}
}

func (s *streams) Serve(_ context.Context, c *wire.Call) (wire.Answer, error) {
	switch c.Operation {
	case "SubscribeToShard":
		events := <-s.feeds
		if large, ok := events.(*largeFeed); ok {
			large.sending = c.Sending
		}
		return wire.Answer{Events: events}, nil
	case "Hold":
		s.holds <- struct{}{}
		<-s.let
	case "Panic":
		panic("the service panics")
	case "Length":
		return wire.Answer{Body: []byte(strconv.Itoa(len(c.Body)))}, nil
	}
	return wire.Answer{Body: []byte("{}")}, nil
}

// streaming is a server of streams, over the given protocol.
type streaming struct {
	*Server
	levers
	client  *http.Client
	url     string
	address string // HOST:PORT
	stop    context.CancelFunc
	served  func() error
}

// protocols are the protocols of the server.
var protocols = []string{"http/1.1", "h2c", "https http/1.1", "https h2"}

func overEachProtocol(
	t *testing.T, cfg Config, test func(t *testing.T, s *streaming), set ...func(*Server),
) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			test(t, serveStreams(t, cfg, protocol, set...))
		})
	}
}

// writeTimeout sets the time that clients have to read.
func writeTimeout(timeout time.Duration) func(*Server) {
	return func(s *Server) { s.writeTimeout = timeout }
}

func serveStreams(
	t *testing.T, cfg Config, protocol string, set ...func(*Server),
) *streaming {
	t.Helper()
	cfg.Memory, cfg.Logger = true, slog.New(slog.DiscardHandler)
	url, secure := "http://", strings.Contains(protocol, "https ")
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(strings.HasSuffix(protocol, "http/1.1"))
	transport.Protocols.SetHTTP2(secure && strings.HasSuffix(protocol, "h2"))
	transport.Protocols.SetUnencryptedHTTP2(strings.HasSuffix(protocol, "h2c"))
	if secure {
		url = "https://"
		ca, err := localca.New()
		if err != nil {
			t.Fatal(err)
		}
		cfg.TLS = ca.TLS("127.0.0.1")
		transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(ca.PEM())
	}
	server, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range set {
		set(server)
	}
	s := &streaming{
		Server: server, client: &http.Client{Transport: transport},
		levers: levers{
			feeds: make(chan wire.Events, 10),
			holds: make(chan struct{}), let: make(chan struct{}),
		},
	}
	s.mu.engine.services[wire.Kinesis] = &streams{s.levers}
	listener := listen(t, protocol, transport)
	s.url = url + listener.Addr().String()
	s.address = listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	s.served = sync.OnceValue(func() error { return <-ended })
	t.Cleanup(func() {
		transport.CloseIdleConnections() // or HTTP/2 would wait a second for the client to close
		stop()
		_ = s.served()
		transport.CloseIdleConnections()
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if s.mu.calls != 0 || s.bodies.Used() != 0 {
			t.Error("a call holds something after the end")
		}
	})
	return s
}

// listen opens a port, or in virtual time a substitute for one.
func listen(t *testing.T, protocol string, transport *http.Transport) net.Listener {
	t.Helper()
	if strings.HasPrefix(protocol, "piped ") {
		inside := pipes.New()
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			return inside.Dial(), nil
		}
		return inside
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(protocol, "far ") {
		return farListener{listener}
	}
	return listener
}

func (s *streaming) post(ctx context.Context, operation, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Kinesis_20131202."+operation)
	return s.client.Do(r)
}

// wantAnswer shows that the server answers others.
func (s *streaming) wantAnswer(t *testing.T) {
	t.Helper()
	s.wantAnswerTo(t, "ListStreams", "{}", "{}")
}

func (s *streaming) wantAnswerTo(t *testing.T, operation, body, want string) {
	t.Helper()
	answer, err := s.post(t.Context(), operation, body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got, err := io.ReadAll(answer.Body); err != nil || string(got) != want {
		t.Errorf("%s: %s, %v; want %s", operation, got, err, want)
	}
}

// subscribed is a client's end of a stream.
type subscribed struct {
	body    io.ReadCloser
	decoder *eventstream.Decoder
	leave   context.CancelFunc
}

func (s *streaming) subscribe(t *testing.T, events wire.Events) *subscribed {
	t.Helper()
	s.feeds <- events
	ctx, leave := context.WithCancel(t.Context())
	answer, err := s.post(ctx, "SubscribeToShard", "{}")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(); answer.Body.Close() })
	if got := answer.Header.Get("Content-Type"); got != "application/vnd.amazon.eventstream" {
		t.Errorf("content type %q", got)
	}
	if answer.Header.Get("X-Amzn-Requestid") == "" {
		t.Error("no request id")
	}
	return &subscribed{answer.Body, eventstream.NewDecoder(), leave}
}

// next reads a message: "type:payload".
func (s *subscribed) next() (string, error) {
	message, err := s.decoder.Decode(s.body, nil)
	if err != nil {
		return "", err
	}
	kind := message.Headers.Get(":event-type")
	if kind == nil {
		kind = message.Headers.Get(":exception-type")
	}
	return kind.String() + ":" + string(message.Payload), nil
}

func (s *subscribed) want(t *testing.T, want string) {
	t.Helper()
	if got, err := s.next(); err != nil || got != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

// wantEnd wants a proper end, not a broken connection.
func (s *subscribed) wantEnd(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(s.body); err != nil || len(rest) != 0 {
		t.Errorf("the end: %q, %v", rest, err)
	}
}

func (s *subscribed) wantBroken(t *testing.T) {
	t.Helper()
	if rest, err := io.ReadAll(s.body); err == nil {
		t.Errorf("the stream ended properly, after %q", rest)
	}
}

// TestEventStream: the server asks for an event only after the client has the one before.
func TestEventStream(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		f := newFeed()
		client := s.subscribe(t, f)
		client.want(t, "initial-response:{}")
		long := strings.Repeat("x", 1<<20)
		for _, text := range []string{"{}", `{"a":1}`, long, "{}"} {
			f.send(t, text)
			client.want(t, "E:"+text)
		}
		close(f.events)
		client.wantEnd(t)
		wait(t, "Close", f.closed)
		s.wantAnswer(t)
	})
}

func TestExceptionIsTheLast(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		f := newFeed()
		client := s.subscribe(t, f)
		client.want(t, "initial-response:{}")
		f.events <- wire.Event{Type: "X", Exception: true, Payload: []byte("{}")}
		client.want(t, "X:{}")
		client.wantEnd(t)
		wait(t, "Close", f.closed)
	})
}

// TestStreamsHoldNoBodies: with memory for one long body, a stream gives the memory of its own body
// back, so that others can have it.
func TestStreamsHoldNoBodies(t *testing.T) {
	overEachProtocol(t, Config{MaxBodies: wire.MaxBody}, func(t *testing.T, s *streaming) {
		f := newFeed()
		s.feeds <- f
		answer, err := s.post(t.Context(), "SubscribeToShard", strings.Repeat(" ", 15<<20))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		again, err := s.post(t.Context(), "ListStreams", strings.Repeat(" ", 15<<20))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Body.Close()
		if again.StatusCode != http.StatusOK {
			t.Errorf("beside the stream: %s", again.Status)
		}
		close(f.events)
		wait(t, "Close", f.closed)
	})
}

func TestBrokenStream(t *testing.T) {
	for name, fail := range map[string]error{"error": errors.New("x"), "panic": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
				f := newFeed()
				client := s.subscribe(t, f)
				client.want(t, "initial-response:{}")
				f.fail <- fail
				client.wantBroken(t)
				wait(t, "Close", f.closed)
				s.wantAnswer(t)
			})
		})
	}
}

func TestSubscriberGoes(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		f := newFeed()
		client := s.subscribe(t, f)
		client.want(t, "initial-response:{}")
		client.leave()
		wait(t, "the context's end", f.gone)
		wait(t, "Close", f.closed)
		s.wantAnswer(t)
	})
}

// TestShutdownEndsStreams: waiting streams and slowly read ones end at once and properly, at an
// event's boundary.
func TestShutdownEndsStreams(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		idle := newFeed()
		busy := &endless{feed: feed{closed: make(chan struct{})}, payload: make([]byte, 100_000)}
		waiting, reading := s.subscribe(t, idle), s.subscribe(t, busy)
		waiting.want(t, "initial-response:{}")
		began := time.Now()
		s.stop()
		waiting.wantEnd(t)
		for {
			if _, err := reading.next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		wait(t, "Close", idle.closed)
		wait(t, "Close", busy.closed)
		s.client.CloseIdleConnections()
		if err := s.served(); err != nil {
			t.Error(err)
		}
		if passed := time.Since(began); passed > 4*time.Second {
			t.Errorf("the end took %v", passed)
		}
	})
}

// TestShutdownCutsStuckStreams: a subscriber that reads nothing does not delay the end.
func TestShutdownCutsStuckStreams(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		stuck := &endless{
			feed: feed{closed: make(chan struct{})}, payload: make([]byte, 1<<20),
		}
		s.subscribe(t, stuck)
		settle(t, &stuck.asked)
		s.stop()
		wait(t, "Close", stuck.closed)
		s.client.CloseIdleConnections()
		if err := s.served(); err != nil {
			t.Error(err)
		}
	})
}

// settle waits until a count no longer grows.
func settle(t *testing.T, count *atomic.Int32) {
	t.Helper()
	for last := int32(-1); ; {
		now := count.Load()
		if now > 0 && now == last {
			return
		}
		last = now
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the count grew on")
		}
	}
}

// TestCloseEndsStreams: also if another server than Serve's own carries them.
func TestCloseEndsStreams(t *testing.T) {
	s := serveStreams(t, Config{}, "http/1.1")
	other := httptest.NewServer(s.Handler())
	defer other.Close()
	s.url = other.URL
	f := newFeed()
	client := s.subscribe(t, f)
	client.want(t, "initial-response:{}")
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	client.wantEnd(t)
	wait(t, "Close", f.closed)
}

// TestSlowSubscriber: a subscriber that reads nothing holds a few events, and is cut off after the
// time for a write. Meanwhile others get theirs, on the same connection too.
func TestSlowSubscriber(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		slow := &endless{
			feed: feed{closed: make(chan struct{})}, payload: make([]byte, 1<<20),
		}
		quick := newFeed()
		stuck, reader := s.subscribe(t, slow), s.subscribe(t, quick)
		reader.want(t, "initial-response:{}")
		settle(t, &slow.asked)
		for range 100 {
			quick.send(t, "{}")
			reader.want(t, "E:{}")
		}
		s.wantAnswer(t)
		wait(t, "Close", slow.closed)
		if asked := slow.asked.Load(); asked > 30 { // the connection's own buffers
			t.Errorf("%d events were taken", asked)
		}
		stuck.wantBroken(t)
		close(quick.events)
		reader.wantEnd(t)
	}, writeTimeout(time.Second))
}

// TestStuckConnection: a client that no longer reads an HTTP/2 connection at all, whatever its
// streams' windows allow, is cut off.
func TestStuckConnection(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "h2c", writeTimeout(time.Second))
	transport := s.client.Transport.(*http.Transport)
	var deaf deafConn
	deaf.heard.Add(1)
	defer deaf.heard.Done()
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		deaf.Conn = conn
		return &deaf, err
	}
	var stuck []*endless
	for range 8 { // 4 MiB each, by the client's windows: more than the kernel holds
		e := &endless{feed: feed{closed: make(chan struct{})}, payload: make([]byte, 1<<20)}
		stuck = append(stuck, e)
		s.feeds <- e
	}
	for range stuck {
		answer, err := s.post(t.Context(), "SubscribeToShard", "{}")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
	}
	deaf.on.Store(true)
	for _, e := range stuck {
		wait(t, "Close", e.closed)
	}
}

// deafConn stops reading once it is switched on.
type deafConn struct {
	net.Conn
	on    atomic.Bool
	heard sync.WaitGroup
}

func (c *deafConn) Read(p []byte) (int, error) {
	if c.on.Load() {
		c.heard.Wait()
	}
	return c.Conn.Read(p)
}

// TestQuietStream: a silence longer than a write may take breaks nothing.
func TestQuietStream(t *testing.T) {
	overEachProtocol(t, Config{}, func(t *testing.T, s *streaming) {
		f := newFeed()
		client := s.subscribe(t, f)
		client.want(t, "initial-response:{}")
		<-time.After(2 * s.writeTimeout)
		f.send(t, "{}")
		client.want(t, "E:{}")
		close(f.events)
		client.wantEnd(t)
	}, writeTimeout(500*time.Millisecond))
}

// TestLongStream: no time-out of a connection, of a request or of HTTP/2 ends a stream that lives
// longer than Kinesis' five minutes, silent or not.
func TestLongStream(t *testing.T) {
	for _, protocol := range []string{"piped http/1.1", "piped h2c"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveStreams(t, Config{}, protocol)
				f := newFeed()
				client := s.subscribe(t, f)
				client.want(t, "initial-response:{}")
				for range 100 {
					f.send(t, "{}")
					client.want(t, "E:{}")
					time.Sleep(5 * time.Second)
				}
				time.Sleep(10 * time.Minute)
				f.send(t, "{}")
				client.want(t, "E:{}")
				close(f.events)
				client.wantEnd(t)
			})
		})
	}
}

// An event's memory goes back when it has been sent, and with its subscriber.
func TestEventsGiveMemoryBack(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := serveStreams(t, Config{}, protocol, func(s *Server) {
				s.answers = budget.New(largeEvent, 0)
			})
			used := func(want int64) {
				t.Helper()
				for start := time.Now(); s.answers.Used() != want; time.Sleep(time.Millisecond) {
					if time.Since(start) > 10*time.Second {
						t.Fatalf("%d bytes are in use, want %d", s.answers.Used(), want)
					}
				}
			}
			reads := &largeFeed{feed: newFeed()}
			client := s.subscribe(t, reads)
			client.want(t, "initial-response:{}")
			for range 3 {
				reads.send(t, "{}")
				client.want(t, "E:{}")
				used(0)
			}
			deaf := &largeFeed{feed: newFeed()}
			leaving := s.subscribe(t, deaf) // and never reads
			deaf.send(t, strings.Repeat("x", 30*largeEvent))
			used(largeEvent)
			leaving.leave()
			wait(t, "Close", deaf.closed)
			used(0)
			reads.send(t, "{}")
			client.want(t, "E:{}")
		})
	}
}

func TestCutStream(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := serveStreams(t, Config{Faults: "SubscribeToShard:cut-stream=300ms@1"}, protocol)
			f := newFeed()
			client := s.subscribe(t, f)
			client.want(t, "initial-response:{}")
			f.send(t, "{}")
			client.want(t, "E:{}")
			began := time.Now()
			client.wantBroken(t)
			if passed := time.Since(began); passed > 5*time.Second {
				t.Errorf("it broke off after %v", passed)
			}
			wait(t, "Close", f.closed)
			whole := newFeed()
			client = s.subscribe(t, whole)
			close(whole.events)
			client.want(t, "initial-response:{}")
			client.wantEnd(t)
		})
	}
}

// TestUnheardStreams: a stream without a receiver is closed.
func TestUnheardStreams(t *testing.T) {
	for _, spec := range []string{"lose-answer", "commit-late=1ms"} {
		s := serveStreams(t, Config{Faults: "SubscribeToShard:" + spec}, "h2c")
		f := newFeed()
		s.feeds <- f
		if answer, err := s.post(t.Context(), "SubscribeToShard", "{}"); err == nil {
			answer.Body.Close()
			t.Errorf("%s: an answer came", spec)
		}
		wait(t, "Close", f.closed)
	}
}
