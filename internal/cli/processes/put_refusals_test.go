package processes_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// front is a reverse proxy of a server, and refuses PutRecords calls as AWS does.
type front struct {
	*httptest.Server
	puts atomic.Int64 // calls so far

	// refuse returns the code for the nth call, from 1 on; "" lets it through.
	refuse atomic.Pointer[func(n int64, body []byte) string]
}

func (r *killRun) front() *front {
	f := &front{}
	to, err := url.Parse(r.endpoint)
	if err != nil {
		r.t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(to)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		if !strings.HasSuffix(in.Header.Get("X-Amz-Target"), ".PutRecords") {
			behind.ServeHTTP(w, in)
			return
		}
		body, err := io.ReadAll(in.Body)
		if err != nil {
			return
		}
		n := f.puts.Add(1)
		if refuse := f.refuse.Load(); refuse != nil {
			if code := (*refuse)(n, body); code != "" {
				w.Header().Set("Content-Type", "application/x-amz-json-1.1")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, `{"__type":%q,"message":"on request"}`, code)
				return
			}
		}
		in.Body = io.NopCloser(bytes.NewReader(body))
		behind.ServeHTTP(w, in)
	}))
	r.t.Cleanup(f.Close)
	return f
}

func (f *front) refusing(refuse func(n int64, body []byte) string) { f.refuse.Store(&refuse) }

// whole archives the stream and checks that it has the events, each once and in order.
func (r *killRun) whole() {
	r.t.Helper()
	r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--once").want(0)
	r.start("verify", r.archive, "--source", r.events, "--id", "id", "--key", "repo").want(0)
}

// The stream refuses the caller for a while. The first run ends with 3 and says how much is open;
// later ones go on exactly there, and end with 0 only when all of the input is in the stream. So it
// is if put is killed with -9 amid all that.
func TestPutGoesOnAfterRefusalsOfTheCaller(t *testing.T) {
	for _, order := range []string{"key", "shard", "none"} {
		t.Run(order, func(t *testing.T) {
			r := newKillRun(t, madeEvents(t), 1)
			server := r.serve("PutRecords:delay=20ms", "--limits", "write-bytes=2MiB")
			f := r.front()
			state := filepath.Join(t.TempDir(), "state")
			put := func() *process {
				return r.start("put", "--endpoint", f.URL, "--stream", "events", "--key", "repo",
					"--order", order, "--resume", state, r.events)
			}
			// The calls of the whole load have more bytes than that, however it is packed.
			var passed, denied atomic.Int64
			f.refusing(func(_ int64, body []byte) string {
				if passed.Add(int64(len(body))) > 2<<20 {
					denied.Add(1)
					return "AccessDeniedException"
				}
				return ""
			})
			refused := put()
			refused.want(3)
			said := refused.stderr.String()
			for _, want := range []string{"AccessDeniedException", "stay open", "run the same command"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in: %s", want, said)
				}
			}
			if calls := denied.Load(); calls > 16 {
				t.Errorf("put made %d calls that were refused", calls)
			}
			put().want(3) // the units that are open are refused too
			for range 3 {
				from := f.puts.Load()
				f.refusing(func(n int64, _ []byte) string {
					if n > from+2 {
						return "KMSAccessDeniedException"
					}
					return ""
				})
				load := put()
				clitest.Eventually(t, "put has put something, or has ended", func() bool {
					select {
					case <-load.done:
						return true
					default:
						return f.puts.Load() > from
					}
				})
				load.kill()
			}
			f.refusing(func(int64, []byte) string { return "" })
			var last struct{ Records, Undelivered, Refused int64 }
			r.start("put", "--endpoint", f.URL, "--stream", "events", "--key", "repo", "--output",
				"json", "--order", order, "--resume", state, r.events).wantJSON(&last)
			if last.Undelivered+last.Refused > 0 {
				t.Errorf("the last put: %+v", last)
			}
			put().want(0)
			if order != "none" {
				r.whole()
			} else {
				r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
					"--failover", killFailover, "--once").want(0)
				r.start("verify", r.archive, "--source", r.events, "--id", "id").want(0)
			}
			server.stop()
		})
	}
}

// Without a state put stops reading at the first refusal of the caller, and says how many records
// are not in the stream.
func TestPutStopsAtRefusalOfTheCaller(t *testing.T) {
	r := newKillRun(t, madeEvents(t), 1)
	server := r.serve("", "--limits", "off")
	f := r.front()
	f.refusing(func(n int64, _ []byte) string { return "ResourceNotFoundException" })
	load := r.start("put", "--endpoint", f.URL, "--stream", "events", "--key", "repo", "--order",
		"plain", r.events)
	load.want(3)
	said := load.stderr.String()
	if !strings.Contains(said, "the rest of the input was not read") ||
		!strings.Contains(said, "runnel streams create events") {
		t.Errorf("%s", said)
	}
	server.stop()
}

// A record that is refused for itself is named with its line, by every run, until its line is in
// the file of --skip-refused.
func TestPutRemembersRefusedRecords(t *testing.T) {
	for _, format := range []string{"ndjson", "csv"} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			events, skipped := filepath.Join(dir, "events"), filepath.Join(dir, "skipped")
			lines := []string{
				`{"id":"1","repo":"a"}`, `{"id":"2","repo":"poison"}`, ``, `{"id":"3","repo":"b"}`,
				`{"id":"4","repo":"poison"}`, `{"id":"5","repo":"a"}`,
			}
			if format == "csv" {
				lines = []string{"id,repo", "2,poison", "", "3,b", "4,poison", "5,a"}
			}
			write := func(lines ...string) {
				text := strings.Join(lines, "\n") + "\n"
				if err := os.WriteFile(events, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(lines...)
			r := newKillRun(t, events, 1)
			server := r.serve("", "--limits", "off")
			f := r.front()
			f.refusing(func(_ int64, body []byte) string {
				if bytes.Contains(body, []byte("poison")) {
					return "ValidationException"
				}
				return ""
			})
			put := func(status int, more ...string) string {
				t.Helper()
				load := r.start(append([]string{
					"put", "--endpoint", f.URL, "--stream", "events", "--key", "repo", "--format", format,
					"--resume", filepath.Join(dir, "state"), events,
				}, more...)...)
				load.want(status)
				return load.stderr.String()
			}
			names := func(said string) {
				t.Helper()
				for _, want := range []string{"line 2: ", "line 5: ", "ValidationException", "--skip-refused"} {
					if !strings.Contains(said, want) {
						t.Errorf("%q is not in: %s", want, said)
					}
				}
			}
			names(put(1))
			before := f.puts.Load()
			names(put(1))
			write(append(lines, lines[len(lines)-1])...) // the input has grown
			names(put(1))
			put(2, "--skip-refused", filepath.Join(dir, "no", "such"))
			names(put(1))
			put(0, "--skip-refused", skipped)
			if said := put(0); !strings.Contains(said, "nothing to do") {
				t.Errorf("%s", said)
			}
			if calls := f.puts.Load() - before; calls != 1 {
				t.Errorf("the later runs made %d calls, want 1", calls)
			}
			content, err := os.ReadFile(skipped)
			want := lines[1] + "\n" + lines[4] + "\n"
			if format == "csv" {
				want = lines[0] + "\n" + want
			}
			if string(content) != want || err != nil {
				t.Errorf("skipped: %q, %v; want %q", content, err, want)
			}
			server.stop()
		})
	}
}
