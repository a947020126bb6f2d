package processes_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

const ordersARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"

// refuseNames is a front of a server that refuses calls of Kinesis with a StreamName. It returns
// its address.
func refuseNames(t *testing.T, endpoint string) string {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	back := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if bytes.Contains(body, []byte("StreamName")) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"AccessDeniedException","message":"by a name: `+
				r.Header.Get("X-Amz-Target")+`"}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		back.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// Every command with --stream takes an ARN, makes its calls by it, and keeps the name.
func TestARNs(t *testing.T) {
	t.Parallel()
	r := newKillRun(t, "", 1)
	r.serve("", "--stream", "orders:1")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("orders.ndjson", "{\"id\":\"a\",\"n\":1}\n{\"id\":\"b\",\"n\":2}\n")
	write("keys.txt", "a\nb\n")
	var out strings.Builder
	if err := clitest.SQL(&out, in("app.db"), "pragma journal_mode = wal"); err != nil {
		t.Fatal(err)
	}
	front := refuseNames(t, r.endpoint)
	run := func(endpoint, stream, line string) string {
		t.Helper()
		args := strings.Fields(line)
		for i, arg := range args {
			arg = strings.ReplaceAll(arg, "STREAM", stream)
			args[i] = strings.ReplaceAll(arg, "DIR", dir)
		}
		args = append(args, "--endpoint", endpoint)
		status, stdout, stderr := clitest.Run(t.Context(), args...)
		if status != 0 {
			t.Fatalf("%q: status %d\n%s%s", args, status, stdout, stderr)
		}
		return stdout + stderr
	}
	run(front, ordersARN, "relay --stream STREAM --db sqlite:DIR/app.db --migrate")
	if err := clitest.SQL(&out, in("app.db"), "insert into outbox (partition_key, record_data) "+
		"values ('a', '{}')"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, words string }{
		{"streams describe STREAM", "orders  ACTIVE"},
		{"put --stream STREAM --key id --resume DIR/put.state DIR/orders.ndjson", ""},
		{"tail --stream STREAM --once", `"n":2`},
		{"tail --stream STREAM --once --from oldest --app tails", `"n":2`},
		{
			"archive --stream STREAM --once --to DIR/archive --table t --layout hour",
			"archive of orders: 2 records read",
		},
		{"verify DIR/archive --against-stream STREAM --table t", ""},
		{
			"rollup --stream STREAM --once --db sqlite:DIR/rows.db --table counts --key /id --count",
			"rollup of orders: 2 records",
		},
		{
			"rollup --stream STREAM --once --dynamodb sums --key /id --count",
			"rollup of orders: 2 records",
		},
		{"relay --stream STREAM --db sqlite:DIR/app.db --once", ""},
		{"leases reset --app tails --stream STREAM --to oldest --yes", ""},
		{"keys hash --stream STREAM DIR/keys.txt", "shardId-000000000000"},
		{"keys skew --stream STREAM --shards 2 --sample 1s", ""},
		{"shards list --stream STREAM", "shardId-000000000000"},
		{"shards plan --stream STREAM --sample 1s", ""},
		{
			"shards split shardId-000000000000 --stream STREAM --yes --output json",
			`"stream":"orders"`,
		},
		{"shards merge shardId-000000000001 shardId-000000000002 --stream STREAM --yes", "orders"},
		{"shards scale --to 2 --stream STREAM --yes", "orders"},
		{"shards autoscale --stream STREAM --once --window 1s", "stream orders"},
	} {
		if said := run(front, ordersARN, c.line); !strings.Contains(said, c.words) {
			t.Errorf("%s: want %q, got %s", c.line, c.words, said)
		}
	}
	if folders, _ := filepath.Glob(in("archive/orders@*")); len(folders) != 1 {
		t.Errorf("the archive has %v", folders)
	}
	// By the name, the same applications have nothing left to do.
	for _, c := range []struct{ line, words string }{
		{"put --stream STREAM --key id --resume DIR/put.state DIR/orders.ndjson", ""},
		{
			"archive --stream STREAM --once --to DIR/archive --table t --layout hour",
			"archive of orders: 1 records read",
		},
		{
			"rollup --stream STREAM --once --db sqlite:DIR/rows.db --table counts --key /id --count",
			"rollup of orders: 1 records",
		},
		{
			"rollup --stream STREAM --once --dynamodb sums --key /id --count",
			"rollup of orders: 1 records",
		},
		{"relay --stream STREAM --db sqlite:DIR/app.db --once", ""},
		{"verify DIR/archive --against-stream STREAM --complete", ""},
		{"verify DIR/archive --stream " + ordersARN, ""},
	} {
		if said := run(r.endpoint, "orders", c.line); !strings.Contains(said, c.words) {
			t.Errorf("%s: want %q, got %s", c.line, c.words, said)
		}
	}
	run(front, ordersARN, "restore DIR/archive --stream STREAM --resume DIR/restore.state")
	run(front, ordersARN, "streams delete STREAM --yes")
}

// A malformed ARN is refused before any call, in a sentence that names the flag.
func TestMalformedARNs(t *testing.T) {
	for _, line := range []string{
		"put --key id", "tail", "archive --to x", "rollup", "relay", "leases reset --app a", "restore x",
		"verify x", "keys hash", "keys skew", "keys rebalance", "shards list", "shards autoscale",
	} {
		args := append(strings.Fields(line), "--stream",
			"arn:aws:kinesis:us-east-1:000000000000:stream/orders/consumer/app:1")
		status, _, stderr := clitest.Run(t.Context(), args...)
		if status != 2 || !strings.Contains(stderr, `"--stream"`) ||
			!strings.Contains(stderr, "not a stream's ARN, since it is a consumer's") {
			t.Errorf("%s: status %d, %s", line, status, stderr)
		}
	}
}
