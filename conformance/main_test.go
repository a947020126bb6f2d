package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// cli runs the program.
func cli(t *testing.T, args ...string) (status int, out, diagnostics string) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	var o, d strings.Builder
	status = conformance(t.Context(), args, &o, &d)
	return status, o.String(), d.String()
}

// TestUsage runs refused command lines, and those that call no endpoint.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"", exitUsage, "--endpoint is missing"},
		{"--endpoint 127.0.0.1:1", exitUsage, "want a URL"},
		{"--endpoint http://127.0.0.1:1 --only (", exitUsage, "--only"},
		{"--endpoint http://127.0.0.1:1 --only ^nothing$", exitUsage, "no fact matches"},
		{"--endpoint http://127.0.0.1:1 --output xml", exitUsage, "want text or json"},
		{"--endpoint http://127.0.0.1:1 more", exitUsage, "unknown argument more"},
		{"--endpont x", exitUsage, "unknown flag: --endpont"},
		{"--endpoint aws", exitUsage, "no region"},
		{"--endpoint aws --region eu-west-1 --profile p", exitUsage, "AWS configuration"},
		{"--endpoint http://192.0.2.1", exitUsage, "no credentials"},
		{"--endpoint aws --region eu-west-1", exitUsage, "confirm with --yes"},
		{"--endpoint https://kinesis.eu-west-1.amazonaws.com --region eu-west-1", exitUsage, "no credentials"},
		{"--endpoint aws --region eu-west-1 --cost", exitOK, "shard-hours"},
		{"--cost", exitOK, "shard-hours"},
		{"--list --only ^wire/get$", exitOK, "kinesalite test/connection.js"},
		{"--list --only ^wire/ --skip [^/]$", exitUsage, "no fact matches"},
		{"--endpoint http://127.0.0.1:1 --skip (", exitUsage, "--skip"},
		{"--list --output json --only ^wire/get$", exitOK, `"source":"AWS-validated test"`},
		{"--help", exitOK, "Exit status"},
	} {
		t.Run(c.args, func(t *testing.T) {
			status, out, diagnostics := cli(t, strings.Fields(c.args)...)
			if status != c.status || !strings.Contains(out+diagnostics, c.says) {
				t.Errorf("status %d, want %d with %q\n%s%s", status, c.status, c.says, out, diagnostics)
			}
		})
	}
}

// TestAWSNeedsYes gives AWS's address with credentials in the environment. The command recognizes
// AWS and makes no call without --yes.
func TestAWSNeedsYes(t *testing.T) {
	var out, diagnostics strings.Builder
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	status := conformance(t.Context(), []string{
		"--endpoint", "https://kinesis.eu-west-1.amazonaws.com", "--only", "^wire/get$",
	}, &out, &diagnostics)
	if status != exitUsage || !strings.Contains(diagnostics.String(), "confirm with --yes") {
		t.Errorf("status %d\n%s", status, diagnostics.String())
	}
}

// TestStatus shows the exit status of results.
func TestStatus(t *testing.T) {
	lost := result{outcome: outcomeError, unreachable: true}
	for _, c := range []struct {
		results []result
		status  int
	}{
		{nil, exitOK},
		{[]result{{outcome: outcomeOK}, {outcome: outcomeSkipped}}, exitOK},
		{[]result{{outcome: outcomeOK}, {outcome: outcomeDiffers}}, exitDiffers},
		{[]result{{outcome: outcomeError}}, exitDiffers},
		{[]result{{outcome: outcomeKnown}, {outcome: outcomeStale}}, exitOK},
		{[]result{{outcome: outcomeKnown}, {outcome: outcomeDiffers}}, exitDiffers},
		{[]result{{outcome: outcomeDiffers}, lost}, exitUnreachable},
		{[]result{{outcome: outcomeSkipped}, {outcome: outcomeSkipped}}, exitUsage},
	} {
		if got := summarize(c.results).status(); got != c.status {
			t.Errorf("%v: status %d, want %d", summarize(c.results), got, c.status)
		}
	}
}

// TestRun runs some facts against a server, and against a port without a server.
func TestRun(t *testing.T) {
	server := runneltest.NewServer(t)
	page := filepath.Join(t.TempDir(), "page.md")
	status, out, diagnostics := cli(t, "--endpoint", server.Endpoint(), "--only", "^list-streams/",
		"--output", "json", "--report", page)
	if status != exitOK || strings.Count(out, `"outcome":"ok"`) != 7 {
		t.Errorf("status %d\n%s%s", status, out, diagnostics)
	}
	if data, err := os.ReadFile(page); err != nil || !strings.Contains(string(data), "| list-streams/after |") {
		t.Errorf("the report: %v\n%s", err, data)
	}
	noneLeft(t, server)
	status, _, diagnostics = cli(t, "--endpoint", "http://"+closedPort(t))
	if status != exitUnreachable || !strings.Contains(diagnostics, "does not answer") {
		t.Errorf("no server: status %d\n%s", status, diagnostics)
	}
}

// TestKnownDifferences runs the command of the README. Known differences of runnel are listed and
// do not fail; another difference fails; a listed fact that does not differ is stale. The same
// differences of another endpoint fail.
func TestKnownDifferences(t *testing.T) {
	server := runneltest.NewServer(t)
	const nonsense = "wire/not-json" // a known difference
	run := func(only string, list map[string]string, endpoint string) (int, string, string) {
		t.Helper()
		was := known
		known = list
		defer func() { known = was }()
		return cli(t, "--endpoint", endpoint, "--only", only)
	}
	with := func(id string) map[string]string { return map[string]string{id: "so it was decided"} }
	status, out, diagnostics := run("^"+nonsense+"$", with(nonsense), server.Endpoint())
	if status != exitOK || !strings.Contains(out, "known    "+nonsense+"\n         so it was decided") ||
		!strings.Contains(diagnostics, "0 ok, 0 differ, 1 known to differ") {
		t.Errorf("known: status %d\n%s%s", status, out, diagnostics)
	}
	status, out, _ = run("^"+nonsense+"$", nil, server.Endpoint())
	if status != exitDiffers || !strings.Contains(out, "differs  "+nonsense) {
		t.Errorf("unknown: status %d\n%s", status, out)
	}
	status, out, diagnostics = run("^wire/get$", with("wire/get"), server.Endpoint())
	if status != exitOK || !strings.Contains(out, "stale    wire/get") ||
		!strings.Contains(diagnostics, "1 listed as a known difference and ok") {
		t.Errorf("stale: status %d\n%s%s", status, out, diagnostics)
	}
	proxy := httputil.NewSingleHostReverseProxy(mustParse(t, server.Endpoint()))
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer other.Close()
	status, out, _ = run("^"+nonsense+"$", with(nonsense), other.URL)
	if status != exitDiffers || !strings.Contains(out, "differs  "+nonsense) {
		t.Errorf("not runnel: status %d\n%s", status, out)
	}
	ids := map[string]bool{}
	for _, f := range facts() {
		ids[f.id] = true
	}
	for id, reason := range known {
		if !ids[id] || reason == "" {
			t.Errorf("%q is a known difference, and no fact, or without a reason", id)
		}
	}
}

// TestAllOfRunnel runs the whole suite with the command.
func TestAllOfRunnel(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStreamDelay(500*time.Millisecond))
	status, out, diagnostics := cli(t, "--endpoint", server.Endpoint())
	if want := fmt.Sprintf(" ok, 0 differ, %d known to differ, ", len(known)); status != exitOK ||
		!strings.Contains(diagnostics, want) {
		t.Errorf("status %d, want 0 and%s\n%s%s", status, want, out, diagnostics)
	}
}

// TestInterrupt interrupts a run after its first fact. The other facts are skipped, and no stream
// is left.
func TestInterrupt(t *testing.T) {
	server := runneltest.NewServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	k := newKit(ctx, target{
		endpoint: mustParse(t, server.Endpoint()), region: "us-east-1",
		credentials: server.AWSConfig().Credentials,
	})
	// The first stream is there when the interrupt comes.
	first := chosenOne(t, "create-stream/arn")
	k.run(ctx, []fact{first}, func(result) { cancel() })
	results := k.run(ctx, facts(), func(result) {})
	if s := summarize(results); s.counts[outcomeSkipped] != len(results) {
		t.Errorf("after the interrupt: %v", s)
	}
	if left := k.deleteStreams(t.Context()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	noneLeft(t, server)
}

// noneLeft checks that every stream is absent or DELETING.
func noneLeft(t *testing.T, server *runneltest.Server) {
	t.Helper()
	names, err := server.Kinesis().ListStreams(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, summary := range names.StreamSummaries {
		if summary.StreamStatus != types.StreamStatusDeleting {
			t.Errorf("left behind: %s", *summary.StreamName)
		}
	}
}

func chosenOne(t *testing.T, id string) fact {
	t.Helper()
	for _, f := range facts() {
		if f.id == id {
			return f
		}
	}
	t.Fatalf("no fact %s", id)
	return fact{}
}

func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestIsAWS recognizes AWS by all of its domains, and no other host.
func TestIsAWS(t *testing.T) {
	for host, want := range map[string]bool{
		"kinesis.us-east-1.amazonaws.com": true, "kinesis.cn-north-1.amazonaws.com.cn": true,
		"kinesis.us-east-1.api.aws": true, "localhost": false, "amazonaws.com.example.org": false,
		"notamazonaws.com": false,
	} {
		if got := isAWS(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}

// TestReport shows that the page has nothing that differs from run to run.
func TestReport(t *testing.T) {
	page := func(prefix, number string) string {
		return report([]result{{
			fact: fact{id: "a/b", says: "It | is.", source: guess("no idea")}, outcome: outcomeDiffers,
			expected: "more than " + number, got: "Stream " + prefix + "main of 1769000000.123\nline",
		}}, prefix, nil)
	}
	a := page("conformance-aaaaaaaa-", strings.Repeat("1", 56))
	b := page("conformance-bbbbbbbb-", strings.Repeat("2", 56))
	if a != b {
		t.Errorf("two pages:\n%s\n%s", a, b)
	}
	for _, want := range []string{
		`| a/b | It \| is. | guess: no idea | **differs**: Stream main of … line instead of more than … |`,
		"| guess | 1 | 0 | 1 | 0 | 0 |", "- a/b: It \\| is. Why so: no idea.",
	} {
		if !strings.Contains(a, want) {
			t.Errorf("the page lacks %s:\n%s", want, a)
		}
	}
}
