package processes_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"golang.org/x/sys/unix"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/seam"
)

// paused is a server that the test stops and continues, with TLS, and plain connections too. Its
// requests are written by hand: no client may send one again.
type paused struct {
	t      *testing.T
	server *process
	addr   string
	keys   bool
	roots  *x509.CertPool
}

func startPaused(t *testing.T, h time.Duration, keys bool, data string) *paused {
	t.Helper()
	t.Setenv(seam.EnvH, h.String())
	p := &paused{t: t, keys: keys}
	args := []string{"--tls", "--data", data}
	if keys {
		file := filepath.Join(t.TempDir(), "keys.ini")
		text := "[default]\naws_access_key_id = AKID\naws_secret_access_key = secret\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--auth", "sigv4="+file)
	}
	var url string
	p.server, url = serveUp(t, args...)
	p.addr = strings.TrimPrefix(url, "https://")
	p.roots = x509.NewCertPool()
	authority, err := os.ReadFile(filepath.Join(data, "tls", "ca.pem"))
	if err != nil || !p.roots.AppendCertsFromPEM(authority) {
		t.Fatal("no certificate: ", err)
	}
	return p
}

// request makes a call, signed if the server wants that.
func (p *paused) request(operation string, in any) *http.Request {
	p.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		p.t.Fatal(err)
	}
	scheme := "https://"
	if p.roots == nil {
		scheme = "http://"
	}
	r, err := http.NewRequest(http.MethodPost, scheme+p.addr+"/", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Kinesis_20131202."+operation)
	if p.keys {
		sum := sha256.Sum256(body)
		err := v4.NewSigner().SignHTTP(context.Background(),
			aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, r,
			hex.EncodeToString(sum[:]), "kinesis", "us-east-1", time.Now())
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return r
}

func (p *paused) put(data string) *http.Request {
	return p.request("PutRecord", map[string]any{
		"StreamName": "s", "PartitionKey": "k", "Data": []byte(data),
	})
}

// text is a request as HTTP/1.1 sends it.
func (p *paused) text(r *http.Request) string {
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		p.t.Fatal(err)
	}
	return text.String()
}

func (p *paused) dial(encrypted bool) net.Conn {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if encrypted {
		return tls.Client(conn, &tls.Config{RootCAs: p.roots, ServerName: "127.0.0.1"})
	}
	return conn
}

func (p *paused) write(conn net.Conn, text string) {
	p.t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		p.t.Fatal(err)
	}
}

// ask makes a call over a new connection, and returns its status and answer.
func (p *paused) ask(r *http.Request) (int, string) {
	p.t.Helper()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: p.roots}, DisableKeepAlives: true,
	}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

// stored reads the stream.
func (p *paused) stored() (data []string) {
	p.t.Helper()
	var iterator struct{ ShardIterator string }
	p.decode(p.request("GetShardIterator", map[string]any{
		"StreamName": "s", "ShardId": "0", "ShardIteratorType": "TRIM_HORIZON",
	}), &iterator)
	var page struct{ Records []struct{ Data []byte } }
	p.decode(p.request("GetRecords", iterator), &page)
	for _, record := range page.Records {
		data = append(data, string(record.Data))
	}
	return data
}

func (p *paused) decode(r *http.Request, into any) {
	p.t.Helper()
	code, body := p.ask(r)
	if code != http.StatusOK {
		p.t.Fatalf("%s: %d %s", r.Header.Get("X-Amz-Target"), code, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		p.t.Fatal(err)
	}
}

// logged waits for a line of the server's log.
func (p *paused) logged(text string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(p.server.stderr.String(), text); {
		if time.Now().After(end) {
			p.t.Fatalf("the log does not say %q: %s", text, p.server.stderr.String())
		}
		<-time.After(10 * time.Millisecond)
	}
}

// pause stops the server for that long.
func (p *paused) pause(length time.Duration, meanwhile func()) {
	p.t.Helper()
	pid := p.server.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	for stopped := false; !stopped; { // the signal takes a moment
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			p.t.Skip("there is no /proc here: ", err)
		}
		stopped = bytes.Contains(stat, []byte(") T "))
	}
	meanwhile()
	time.Sleep(length) // the pause itself
}

// waiting is a call that waits for a server that is stopped.
type waiting struct {
	name string
	conn net.Conn
	rest string // of the request, that is written meanwhile
}

// TestPause stops the server by SIGSTOP while puts wait in sockets of every kind and in the accept
// queue: none of them is stored afterwards, all their connections are closed, and new calls work.
func TestPause(t *testing.T) {
	for _, keys := range []bool{false, true} {
		t.Run(fmt.Sprintf("keys=%v", keys), func(t *testing.T) {
			p := startPaused(t, time.Minute, keys, t.TempDir()) // a pause is above 1 s then
			want := []string{}
			var waits []waiting
			// Connections that had a call before, by the shortcut and by net/http, plain and not.
			for name, encrypted := range map[string]bool{"plain": false, "TLS": true} {
				for _, first := range []string{"put", "health"} {
					name := name + " after " + first
					conn := p.dial(encrypted)
					text := "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
					if first == "put" {
						text = p.text(p.put(name))
						want = append(want, name)
					}
					p.write(conn, text)
					if n, err := conn.Read(make([]byte, 4096)); n == 0 {
						t.Fatal(name, err)
					}
					waits = append(waits, waiting{name, conn, p.text(p.put("late: " + name))})
				}
			}
			silent := p.dial(false)
			waits = append(waits, waiting{"silent", silent, p.text(p.put("late: silent"))})
			half := p.text(p.put("late: half of it was read"))
			torn := p.dial(false)
			p.write(torn, half[:len(half)-20])
			waits = append(waits, waiting{"half", torn, half[len(half)-20:]})

			h2 := &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: p.roots}, ForceAttemptHTTP2: true,
			}
			defer h2.CloseIdleConnections()
			client := &http.Client{Transport: h2, Timeout: time.Minute}
			answer, err := client.Do(p.put("h2"))
			if err != nil || answer.ProtoMajor != 2 {
				t.Fatal(answer, err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			want = append(want, "h2")
			late := make(chan error, 1)
			p.pause(3*time.Second, func() {
				for _, w := range waits {
					p.write(w.conn, w.rest)
				}
				request := p.put("late: h2")
				go func() {
					answer, err := client.Do(request)
					if err == nil {
						err = fmt.Errorf("%s", answer.Status)
						_ = answer.Body.Close()
						late <- err
						return
					}
					late <- nil
				}()
				for i := range 20 { // in the accept queue
					conn := p.dial(false)
					p.write(conn, p.text(p.put(fmt.Sprint("late: queue ", i))))
					waits = append(waits, waiting{fmt.Sprint("queue ", i), conn, ""})
				}
			})
			for _, w := range waits {
				_ = w.conn.SetDeadline(time.Now().Add(20 * time.Second))
				got, err := io.ReadAll(w.conn)
				var timeout net.Error
				if w.name == "half" && bytes.Contains(got, []byte("too old")) {
					continue // it was under way
				}
				if len(got) > 0 || errors.As(err, &timeout) && timeout.Timeout() {
					t.Errorf("%s: after the pause: %q, %v; want the end", w.name, got, err)
				}
			}
			if err := <-late; err != nil {
				t.Errorf("h2: after the pause: %v; want the end", err)
			}
			p.logged("the server was paused")
			for i := 0; ; i++ { // the accept queue may still be being emptied
				data := fmt.Sprint("after ", i)
				code, body := p.ask(p.put(data))
				if code == http.StatusOK {
					want = append(want, data)
					break
				}
				if code != 0 || i == 10 {
					t.Fatalf("a new call: %d %s", code, body)
				}
			}
			got := p.stored()
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("stored: %q, want %q", got, want)
			}
			p.server.stop()
		})
	}
}

// TestSlowStart holds a listening server up: it prints a line, and no program reads it. That takes
// longer than the longest pause that goes unnoticed (a second, with this H). A put that has waited
// in the accept queue is not stored.
func TestSlowStart(t *testing.T) {
	const h = 2 * time.Second
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	room, err := unix.FcntlInt(writer.Fd(), unix.F_SETPIPE_SZ, 1<<16)
	if err == nil {
		_, err = writer.Write(make([]byte, room))
	}
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &paused{t: t, addr: free.Addr().String()}
	_ = free.Close()
	server := clitest.Command("serve", "--addr", p.addr, "--memory", "--stream", "s:1")
	server.Env = append(os.Environ(), clitest.AsCommand(), seam.EnvH+"="+h.String())
	server.Stderr = writer
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	listens := func() bool {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			return false
		}
		t.Cleanup(func() { conn.Close() })
		p.write(conn, p.text(p.put("late")))
		return true
	}
	clitest.Eventually(t, "the server listens", listens)
	time.Sleep(h/2 + h/10)
	go func() { _, _ = io.Copy(io.Discard, reader) }() // until the server ends
	clitest.Eventually(t, "the server serves", func() bool {
		code, _ := p.ask(p.put("in time"))
		return code == http.StatusOK
	})
	if got := p.stored(); !slices.Equal(got, []string{"in time"}) {
		t.Errorf("stored: %q", got)
	}
}

// TestSlowRequest: a put takes longer than H to come, from its first byte to its last, and is
// refused.
func TestSlowRequest(t *testing.T) {
	const h = 4 * time.Second
	p := startPaused(t, h, false, t.TempDir())
	text := p.text(p.request("PutRecords", map[string]any{
		"StreamName": "s", "Records": []any{map[string]any{
			"PartitionKey": "k", "Data": base64.StdEncoding.EncodeToString([]byte("slow")),
		}},
	}))
	type slow struct {
		name string
		conn net.Conn
		rest string
	}
	var requests []slow
	for name, encrypted := range map[string]bool{"plain": false, "TLS": true} {
		for part, length := range map[string]int{"head": 10, "body": len(text) - 5} {
			conn := p.dial(encrypted)
			if encrypted { // a call before, so that the connection is no part of the request
				p.write(conn, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
				if _, err := conn.Read(make([]byte, 4096)); err != nil {
					t.Fatal(err)
				}
			}
			p.write(conn, text[:length])
			requests = append(requests, slow{name + ", slow " + part, conn, text[length:]})
		}
	}
	time.Sleep(h + h/2) // less than a head may take
	for _, r := range requests {
		p.write(r.conn, r.rest)
		_ = r.conn.SetDeadline(time.Now().Add(30 * time.Second))
		answer := make([]byte, 4096)
		n, err := r.conn.Read(answer)
		if !bytes.Contains(answer[:n], []byte("200 OK")) ||
			!bytes.Contains(answer[:n], []byte(`"ErrorCode":"InternalFailure"`)) ||
			!bytes.Contains(answer[:n], []byte("too old")) {
			t.Errorf("%s: %q, %v", r.name, answer[:n], err)
		}
	}
	if code, body := p.ask(p.put("quick")); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	if got := p.stored(); !slices.Equal(got, []string{"quick"}) {
		t.Errorf("stored: %q", got)
	}
	p.server.stop()
}

// TestServerTime steps the server's clock, stops it and kills it: neither Date nor an arrival ever
// steps back. Clients go on working, though their clock is an hour off the server's.
func TestServerTime(t *testing.T) {
	data := t.TempDir()
	var p *paused
	var last time.Time
	clock := filepath.Join(t.TempDir(), "clock")
	step := func(by string) {
		t.Helper()
		if err := os.WriteFile(clock+".new", []byte(by), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(clock+".new", clock); err != nil {
			t.Fatal(err)
		}
	}
	put := 0
	date := func(what string, conn net.Conn, request string) {
		t.Helper()
		p.write(conn, request)
		answer := make([]byte, 4096)
		n, _ := conn.Read(answer)
		_, text, _ := strings.Cut(string(answer[:n]), "Date: ")
		text, _, _ = strings.Cut(text, "\r\n")
		now, err := http.ParseTime(text)
		if !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 200 OK") || err != nil {
			t.Fatalf("%s: %q, %v", what, answer[:n], err)
		}
		if now.Before(last) {
			t.Errorf("%s: Date is %v back", what, last.Sub(now))
		}
		last = now
	}
	health := func(what string) {
		t.Helper()
		date(what, p.dial(true), "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	look := func(what string) {
		t.Helper()
		put++
		date(what, p.dial(false), p.text(p.put(fmt.Sprint(put))))
		health(what)
	}
	startAt := func() {
		t.Helper()
		p = startPaused(t, time.Minute, false, data)
		look("a start")
	}
	t.Setenv(seam.EnvClock, clock) // of the server alone: this process has read it before
	startAt()
	for _, by := range []string{"15m", "-15m", "0s", "1h"} {
		step(by)
		look("a step to " + by)
		time.Sleep(50 * time.Millisecond) // the record of the step
		look("a step to " + by)
	}
	if ahead := time.Until(last); ahead < 59*time.Minute {
		t.Errorf("the server's clock does not follow a step forward: it is %v ahead", ahead)
	}
	step("2h")
	health("a step to 2h")
	time.Sleep(50 * time.Millisecond)
	health("a step to 2h") // there is no record of this time
	p.server.kill()
	step("0s")
	startAt()
	p.server.stop()
	step("-1h")
	startAt()
	if !strings.Contains(p.server.stderr.String(), "is behind the times in this data directory") {
		t.Errorf("the log does not say by how much the clock is off: %s", p.server.stderr.String())
	}
	if ahead := time.Until(last); ahead < 119*time.Minute {
		t.Errorf("the clock has stepped back over a restart: it is %v ahead", ahead)
	}
	p.server.stop()
}
