package cli

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/exit"
)

// health prints the reason of a server that serves no calls, also with --quiet. Another program at
// the address is no healthy server, whatever it answers.
func TestHealthOfAnswers(t *testing.T) {
	page := "<!doctype html>\n<title>Welcome</title>\n"
	for _, c := range []struct {
		answer, status int
		body, want     string
	}{
		{http.StatusOK, exit.StatusOK, "ok\n", ": ok\n"},
		{http.StatusOK, exit.StatusOK, "ok\nthe clock is late\n", ": ok\nthe clock is late\n"},
		{
			http.StatusServiceUnavailable, exit.StatusNo, "the disk is full\n",
			"answers 503 Service Unavailable: the disk is full\n",
		},
		{http.StatusOK, exit.StatusOutside, page, "(\"<!doctype html>\"): want a runnel server"},
		{http.StatusOK, exit.StatusOutside, "", "want a runnel server or proxy there: check"},
		{
			http.StatusNotFound, exit.StatusOutside, page,
			"answers GET /health with 404 Not Found (\"<!doctype html>\"): want a runnel server",
		},
		{http.StatusForbidden, exit.StatusOutside, "a foreign host", "(\"a foreign host\")"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.answer)
			_, _ = io.WriteString(w, c.body)
		}))
		status, said := healthOf(t, server.URL)
		if status != c.status || !strings.Contains(said, c.want) {
			t.Errorf("%d, %q: status %d, %q", c.answer, c.body, status, said)
		}
		quiet, said := healthOf(t, server.URL, "--quiet")
		if quiet != status || (said == "") != (status == exit.StatusOK) {
			t.Errorf("%d, %q, --quiet: status %d, %q", c.answer, c.body, quiet, said)
		}
		server.Close()
	}
}

// The error about a certificate of an unknown authority names the remedy, in every command.
func TestUnknownAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	for _, command := range []string{"health", "streams list"} {
		status, said := run(t, command+" --endpoint "+server.URL)
		if status != exit.StatusOutside || strings.Contains(said, "no server answers") ||
			!strings.Contains(said, "unknown authority; name the server's authority with "+
				"AWS_CA_BUNDLE") {
			t.Errorf("%s: status %d, %q", command, status, said)
		}
	}
}

// health asks a server that does not answer for no longer than --wait says.
func TestHealthOfASilentServer(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-end
	}))
	defer server.Close()
	defer close(end)
	began := time.Now()
	status, said := healthOf(t, server.URL, "--wait", "100ms")
	if took := time.Since(began); status != exit.StatusOutside || took > healthTimeout/2 {
		t.Errorf("status %d after %v", status, took)
	}
	if want := "runnel: no answer from " + server.URL + " within 1s\n"; said != want {
		t.Errorf("it said %q, want %q", said, want)
	}
}

// An interrupted health ends with 130, as every command does.
func TestInterruptedHealth(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	status := Main(ctx, []string{"health", "--endpoint", "http://127.0.0.1:1", "--wait", "1m"},
		Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	if status != exit.StatusInterrupted {
		t.Errorf("status %d", status)
	}
}

func healthOf(t *testing.T, url string, flags ...string) (status int, said string) {
	t.Helper()
	return run(t, "health --endpoint "+url+" "+strings.Join(flags, " "))
}

// run runs a command, and returns its status and standard error.
func run(t *testing.T, command string) (status int, said string) {
	t.Helper()
	var errs strings.Builder
	status = Main(t.Context(), strings.Fields(command), Streams{
		In: strings.NewReader(""), Out: io.Discard, Err: &errs,
	})
	return status, errs.String()
}
