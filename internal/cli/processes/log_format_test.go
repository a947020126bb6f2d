package processes_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// goLogs is a program that runs a command, and then uses Go's own loggers, as the standard library
// and dependencies do.
const goLogs = "go-logs"

func init() {
	programs[goLogs] = func(args []string) error {
		cli.Main(context.Background(), args, cli.Streams{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		})
		log.Print("by the package log")
		slog.Info("by the default logger", "a", 1)
		return nil
	}
}

// wantRecords checks that each line of standard error is a record of the log in JSON. It returns
// their messages by level.
func wantRecords(t *testing.T, stderr string) string {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(stderr) {
		var record struct{ Time, Level, Msg *string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Time == nil ||
			record.Level == nil || record.Msg == nil {
			t.Errorf("%q is no record: %v", line, err)
			continue
		}
		all.WriteString(*record.Level + " " + *record.Msg + "\n")
	}
	return all.String()
}

// TestLogFormatJSON: with --log-format json everything on standard error is JSON, also errors of
// the command line itself.
func TestLogFormatJSON(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	nowhere := []string{"--endpoint", "http://127.0.0.1:1", "--log-format=json"}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"nonsense", "--log-format", "json"}, 2, "ERROR unknown command \"nonsense\""},
		{[]string{"serve", "--adr", "x", "--log-format", "json"}, 2, "ERROR unknown flag: --adr"},
		{[]string{"--log-format", "json", "verify"}, 2, "ERROR 0 arguments given"},
		{[]string{"--log-format=json", "help", "serv"}, 2, "ERROR unknown command \"serv\""},
		{[]string{"--output", "xml", "version", "--log-format", "json"}, 2, "ERROR --output xml"},
		{append([]string{"streams", "list"}, nowhere...), 3, "ERROR "},
		{append([]string{"put", "--stream", "s", "--key", "k", "none"}, nowhere...), 2, "ERROR "},
		{[]string{"fsck", "nowhere", "--log-format", "json"}, 2, "ERROR nowhere: "},
		{[]string{"version", "--log-format", "json"}, 0, ""},
		{[]string{"demo", "--records", "2000", "--log-format", "json"}, 0, "INFO server "},
	} {
		name := strings.Join(c.args, " ")
		process := (&killRun{t: t}).start(c.args...)
		<-process.done
		status, stderr := process.cmd.ProcessState.ExitCode(), process.stderr.String()
		if got := wantRecords(t, stderr); status != c.status || !strings.Contains(got, c.says) {
			t.Errorf("%s: status %d, want %d and %q: %s", name, status, c.status, c.says, stderr)
		}
	}
}

// TestLogFormatText: the flag may have another value, and mean another command's argument.
func TestLogFormatText(t *testing.T) {
	for _, args := range [][]string{
		{"nonsense", "--log-format", "text"},
		{"nonsense", "--log-format"},
		{"nonsense", "--log-format=json", "--log-format=text"},
		{"nonsense", "--", "--log-format=json"},
		{"version", "--log-format", "xml"},
	} {
		_, _, stderr := clitest.Run(t.Context(), args...)
		if !strings.HasPrefix(stderr, "runnel: ") {
			t.Errorf("%v: %s", args, stderr)
		}
	}
}

// TestServeLogsJSON: a server's banner, its calls, and net/http's message about a broken handshake.
func TestServeLogsJSON(t *testing.T) {
	p, at := serveUp(t, "--memory", "--tls", "--verbose", "--log-format", "json")
	server, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", server.Host, &tls.Config{}) // whose authority is not known
	if err == nil {
		conn.Close()
		t.Error("the certificate is trusted")
	}
	clitest.Eventually(t, "the handshake is logged", func() bool {
		return strings.Contains(p.stderr.String(), "TLS handshake error")
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+server.Host, strings.NewReader("{}")) // plain, as this machine may
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "Kinesis_20131202.ListStreams")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	p.stop()
	got := wantRecords(t, p.stderr.String())
	if !strings.Contains(got, "INFO runnel serve: https:") ||
		strings.Count(got, "DEBUG call\n") != 1 ||
		!strings.Contains(p.stderr.String(), answer.Header.Get("X-Amzn-Requestid")) {
		t.Error(p.stderr.String())
	}
}

// TestGoLogsJSON: records of Go's own loggers are JSON as well.
func TestGoLogsJSON(t *testing.T) {
	process := (&killRun{t: t}).start(goLogs, "version", "--log-format", "json")
	<-process.done
	got := wantRecords(t, process.stderr.String())
	if got != "WARN by the package log\nINFO by the default logger\n" {
		t.Errorf("logged %q", got)
	}
}
