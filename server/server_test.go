package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server"
)

var quiet = slog.New(slog.DiscardHandler)

// connect makes a client without retries.
func connect(t *testing.T, endpoint string) client {
	cfg := awsclient.ForServer(endpoint, "", awsclient.LocalRegion, nil)
	t.Cleanup(cfg.HTTPClient.(*awsclient.HTTPClient).CloseIdleConnections)
	return client{Client: awsclient.Kinesis(cfg, awsclient.WithoutRetries())}
}

// served is a server on a loopback port, under the test's control.
type served struct {
	*server.Server
	client
	endpoint string
	stop     context.CancelFunc
	ended    func() error // waits for Serve
}

func serve(t *testing.T, cfg server.Config, options ...seam.Option) *served {
	t.Helper()
	var of seam.Server
	for _, option := range options {
		option(&of)
	}
	if cfg.Streams == nil {
		cfg.Streams = []server.StreamSpec{{Name: "s", Shards: 1}}
	}
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	s, err := server.Open(t.Context(), cfg, options...)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	v := &served{
		Server: s, endpoint: "http://" + listener.Addr().String(), stop: stop,
		ended: sync.OnceValue(func() error { return <-done }),
	}
	v.client = connect(t, v.endpoint)
	t.Cleanup(func() {
		stop()
		if disk, ok := of.FS.(*slowDisk); ok {
			disk.release()
		}
		_ = v.ended()
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil && of.FS == nil {
			t.Error(err)
		}
	})
	return v
}

// TestKill9 kills a server process under load, twice, and opens its directory: every acknowledged
// record is there, once, in order.
func TestKill9(t *testing.T) {
	dir := t.TempDir()
	acknowledged := []string{}
	for life := range 2 {
		acknowledged = append(acknowledged, oneLife(t, dir, life)...)
	}
	v := serve(t, server.Config{Dir: dir})
	stored := v.stored(t)
	next := 0
	for _, text := range stored {
		if next < len(acknowledged) && text == acknowledged[next] {
			next++
		} else if slices.Contains(acknowledged, text) {
			t.Errorf("%s is stored out of order, or twice", text)
		}
	}
	if next != len(acknowledged) {
		t.Errorf("%d records were acknowledged, only the first %d of them are there",
			len(acknowledged), next)
	}
	t.Logf("%d acknowledged, %d stored", len(acknowledged), len(stored))
}

// oneLife starts a server process, puts until it is killed in the middle of it, and returns the
// acknowledged records.
func oneLife(t *testing.T, dir string, life int) (acknowledged []string) {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), serveDir+"="+dir)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v; %v", err, process.Wait())
	}
	c := connect(t, "http://"+strings.TrimSpace(address))
	for n := 0; ; n++ {
		if n == 50 {
			defer time.AfterFunc(20*time.Millisecond, func() {
				_ = process.Process.Signal(syscall.SIGKILL)
			}).Stop()
		}
		text := fmt.Sprintf("%d.%d", life, n)
		if _, err := c.put(t.Context(), text); err != nil {
			_ = process.Wait()
			return acknowledged
		}
		acknowledged = append(acknowledged, text)
	}
}

func TestOneServerForADirectory(t *testing.T) {
	dir := t.TempDir()
	v := serve(t, server.Config{Dir: dir})
	_, err := server.Open(t.Context(), server.Config{Dir: dir, Logger: quiet})
	if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), "is in use by "+
		"another server, or by runnel fsck or backup: stop that, or take another directory: open the log in "+
		dir+": lock ") {
		t.Errorf("a second server: %v", err)
	}
	if _, err := v.put(t.Context(), "one"); err != nil {
		t.Errorf("the first server: %v", err)
	}
}

func health(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health", nil))
	return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
}

func call(t *testing.T, h http.Handler) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Kinesis_20131202.ListStreams")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return fmt.Sprint(w.Code, " ", w.Body.String())
}

func TestHealth(t *testing.T) {
	s, err := server.New(server.Config{Memory: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Handler()
	if got := health(t, h); got != "503 starting" {
		t.Errorf("before the start: %s", got)
	}
	if got := call(t, h); got != `503 {"__type":"ServiceUnavailable","message":`+
		`"runnel is starting: try again in a moment"}` {
		t.Errorf("a call before the start: %s", got)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := health(t, h); got != "200 ok" {
		t.Errorf("started: %s", got)
	}
	if got := call(t, h); !strings.HasPrefix(got, "200 {") {
		t.Errorf("a call: %s", got)
	}
	if err := s.Start(t.Context()); err == nil {
		t.Error("a second start was taken")
	}
	if err := errors.Join(s.Close(t.Context()), s.Close(t.Context())); err != nil {
		t.Error(err)
	}
	if got := health(t, h); got != "503 shutting down" {
		t.Errorf("closed: %s", got)
	}
	if got := call(t, h); !strings.HasPrefix(got, "503 ") {
		t.Errorf("a call after the end: %s", got)
	}
	if err := s.Start(t.Context()); !errors.Is(err, server.ErrClosed) {
		t.Errorf("a start after the end: %v", err)
	}
}

// TestPoisonedLog: when the disk fails, writes are refused, health says so, reads go on.
func TestPoisonedLog(t *testing.T) {
	var broken sync.Map
	disk := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if _, on := broken.Load("on"); on && op.Kind == vfs.OpSync {
			return errors.New("the disk is on fire")
		}
		return nil
	})
	v := serve(t, server.Config{}, seam.OnFS(disk))
	if _, err := v.put(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	broken.Store("on", true)
	for range 2 {
		if _, err := v.put(t.Context(), "two"); code(err) != "500 InternalFailure" {
			t.Errorf("put: %v", err)
		}
	}
	if got := health(t, v.Handler()); !strings.HasPrefix(got, "503 ") ||
		!strings.Contains(got, "the disk is on fire") {
		t.Errorf("health: %s", got)
	}
	v.wantStored(t, "one")
}

// slowDisk is a disk in memory. Once it is armed, its next long write waits for release.
type slowDisk struct {
	vfs.FS
	armed           atomic.Bool
	waits, released chan struct{}
	release         func()
}

func newSlowDisk() *slowDisk {
	d := &slowDisk{waits: make(chan struct{}), released: make(chan struct{})}
	d.release = sync.OnceFunc(func() { close(d.released) })
	d.FS = vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && op.Len >= longText && d.armed.CompareAndSwap(true, false) {
			close(d.waits)
			<-d.released
		}
		return nil
	})
	return d
}

// longText is the length of a put, in bytes, that slowDisk holds: headers of log files are shorter.
const longText = 100_000

// hold starts a call and returns once it waits for the disk.
func (d *slowDisk) hold(call func() error) (answered chan error) {
	d.armed.Store(true)
	answered = make(chan error, 1)
	go func() { answered <- call() }()
	<-d.waits
	return answered
}

// TestGracefulEnd: an accepted call gets its answer, unused connections are closed at once.
func TestGracefulEnd(t *testing.T) {
	disk := newSlowDisk()
	v := serve(t, server.Config{}, seam.OnFS(disk))
	v.wantStored(t) // leaves an idle connection
	address := strings.TrimPrefix(v.endpoint, "http://")
	fresh, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	answered := disk.hold(func() error {
		_, err := v.put(t.Context(), strings.Repeat("x", longText))
		return err
	})
	began := time.Now()
	v.stop()
	for { // until the server takes no more connections
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		conn.Close()
	}
	disk.release()
	if err := <-answered; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	if err := v.ended(); err != nil {
		t.Errorf("serve: %v", err)
	}
	if passed := time.Since(began); passed > 4500*time.Millisecond {
		t.Errorf("the end took %v", passed)
	}
	if _, err := fresh.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlived the server")
	}
	if err := v.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEndCutsOffAtLast(t *testing.T) {
	disk := newSlowDisk()
	v := serve(t, server.Config{ShutdownTimeout: 50 * time.Millisecond}, seam.OnFS(disk))
	answered := disk.hold(func() error {
		_, err := v.put(t.Context(), strings.Repeat("x", longText))
		return err
	})
	v.stop()
	if err := v.ended(); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("serve: %v", err)
	}
	if err := <-answered; code(err) != "cut" {
		t.Errorf("the call under way: %v", err)
	}
}

// TestBodiesAreBounded: with room for one long body, the second call waits for the first, and
// gives up with its client.
func TestBodiesAreBounded(t *testing.T) {
	disk := newSlowDisk()
	v := serve(t, server.Config{MaxBodies: 15 << 20}, seam.OnFS(disk))
	long := make([]string, 10)
	for i := range long {
		long[i] = strings.Repeat("x", 1000<<10)
	}
	first := disk.hold(func() error {
		_, err := v.put(t.Context(), long...)
		return err
	})
	impatient, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := v.put(impatient, long...); code(err) != "timeout" {
		t.Errorf("a second long call: %v, want a time-out", err)
	}
	disk.release()
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	if _, err := v.put(t.Context(), long...); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

// TestGoneClientsLeave: a put whose client has gone ends although the disk is slow.
func TestGoneClientsLeave(t *testing.T) {
	disk := newSlowDisk()
	v := serve(t, server.Config{}, seam.OnFS(disk))
	first := disk.hold(func() error {
		_, err := v.put(t.Context(), strings.Repeat("x", longText))
		return err
	})
	impatient, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := v.put(impatient, "second"); code(err) != "timeout" {
		t.Errorf("a second call: %v, want a time-out", err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		running := of(scrape(t, v.get, v.endpoint), "runnel_calls_running", "")
		if running == 1 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("%v calls are under way, want the first alone", running)
			break
		}
	}
	shown := scrape(t, v.get, v.endpoint)
	for result, want := range map[string]float64{"ClientGone": 1, "InternalFailure": -1} {
		if n := of(shown, "runnel_calls_total", "result="+result); n != want {
			t.Errorf("%v calls count as %s, want %v (-1: no line)", n, result, want)
		}
	}
	disk.release()
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
}

func TestClosedListener(t *testing.T) {
	s, err := server.Open(t.Context(), server.Config{Memory: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("serve on a closed listener: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTooLongBody is refused before it is read, and the connection does not hang.
func TestTooLongBody(t *testing.T) {
	v := serve(t, server.Config{Memory: true})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.endpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("")), 16<<20
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 16<<20)
	answer, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%s, want 413", answer.Status)
	}
}

func TestConfigFaults(t *testing.T) {
	_, err := server.New(server.Config{
		Account: "me", Region: "Mars!", MaxBodies: 1, SyncInterval: -1, ShutdownTimeout: -1,
		ItemsMemory: 1,
		Streams:     []server.StreamSpec{{Name: "s"}}, Limits: "none", Faults: "x", Credentials: "x",
	})
	for _, want := range []string{
		`Account is "me"`, `Region is "Mars!"`, "MaxBodies is 1", "SyncInterval is -1", "ShutdownTimeout is -1",
		"ItemsMemory is 1: want at least 1048576 bytes, 1MiB",
		`Streams is "s" with 0 shards`, `Limits is "none": `, `Faults is "x": `, "Credentials is 1 bytes long",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not name %s", err, want)
		}
	}
	_, err = server.Open(t.Context(), server.Config{
		Memory: true, Logger: quiet,
		Streams: []server.StreamSpec{{Name: "not a name", Shards: 1}},
	})
	if err == nil || !strings.Contains(err.Error(), "not a name") {
		t.Errorf("a stream that cannot be: %v", err)
	}
}

// Streams of the configuration whose shards do not fit into the memory are refused before a start.
func TestStreamsBeyondTheMemory(t *testing.T) {
	for _, c := range []struct {
		shards []int
		want   string
	}{
		{shards: []int{3072}},
		{[]int{3073}, `Streams is "s0" with 3073 shards: want fewer shards, or a larger MemoryLimit`},
		{[]int{3000, 73}, `Streams is "s1" with 73 shards: want fewer shards`},
	} {
		cfg := server.Config{Memory: true, MemoryLimit: 16 << 20, Logger: quiet}
		for i, shards := range c.shards {
			cfg.Streams = append(cfg.Streams, server.StreamSpec{
				Name: "s" + strconv.Itoa(i), Shards: shards,
			})
		}
		if err := cfg.Validate(); (err != nil) != (c.want != "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v shards: %v, want %q", c.shards, err, c.want)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "localhost": true, "LocalHost:80": true, "::1": true, "[::1]:80": true,
		"127.1.2.3:4567": true, "": false, ":4567": false, "0.0.0.0": false, "10.0.0.1": false,
		"[::]:4567": false, "example.com": false,
	} {
		if got := server.IsLoopback(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func TestWorldsOfAccounts(t *testing.T) {
	v := serve(t, server.Config{Memory: true})
	mine := awsclient.ForServer(v.endpoint, "111122223333", "eu-west-1", nil)
	defer mine.HTTPClient.(*awsclient.HTTPClient).CloseIdleConnections()
	out, err := awsclient.Kinesis(mine).ListStreams(t.Context(), &kinesis.ListStreamsInput{})
	if err != nil || len(out.StreamNames) != 0 {
		t.Errorf("another world sees %v, %v", out, err)
	}
	ours, err := v.ListStreams(t.Context(), &kinesis.ListStreamsInput{})
	if err != nil || !slices.Equal(ours.StreamNames, []string{"s"}) {
		t.Errorf("this world sees %v, %v", aws.ToString(ours.NextToken), err)
	}
}
