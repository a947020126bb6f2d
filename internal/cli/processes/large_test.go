package processes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// Records of up to 10 MiB go through put, the proxy and archive, into a stream with a limit
// of that. A state of put keeps the ones that have no room for an identity as refused.
func TestLargeRecords(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "events.ndjson")
	line := func(id, bytes int) string { // bytes with the key, which is one byte
		head := fmt.Sprintf(`{"id":"%d","repo":"%d","pad":"`, id, id%2)
		return head + strings.Repeat("x", bytes-1-len(head)-2) + `"}`
	}
	lines := []string{
		line(1, 10<<20), line(2, 100), line(3, 10<<20-300), line(4, 1<<20), line(5, 1<<20+1), line(6, 100),
	}
	if err := os.WriteFile(events, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newKillRun(t, events, 1)
	server := r.serve("", "--limits", "off", "--stream-delay", "0")
	put := func(status int, endpoint string, more ...string) string {
		t.Helper()
		load := r.start(append([]string{
			"put", "--endpoint", endpoint, "--stream", "events", "--key", "repo", events,
		}, more...)...)
		load.want(status)
		return load.stderr.String()
	}
	if said := put(2, r.endpoint); !strings.Contains(said, "line 1") ||
		!strings.Contains(said, "limit is 1048576") {
		t.Errorf("%s", said)
	}
	raise(t, r.endpoint)
	proxy := r.start("proxy", "--addr", "127.0.0.1:0", "--endpoint", r.endpoint)
	through := ""
	clitest.Eventually(t, "the proxy is up", func() bool {
		if match := listening.FindStringSubmatch(proxy.stderr.String()); match != nil {
			through = "http://" + match[1]
		}
		return through != ""
	})
	put(0, through, "--order", "plain")
	r.whole()
	proxy.stop()

	// With a state, all but the one that has no room for an identity.
	said := put(1, r.endpoint, "--resume", filepath.Join(dir, "state"))
	if !strings.Contains(said, "line 1: not in the stream: ") || strings.Contains(said, "line 3") ||
		!strings.Contains(said, "identity") {
		t.Errorf("%s", said)
	}
	put(0, r.endpoint, "--resume", filepath.Join(dir, "state"), "--skip-refused",
		filepath.Join(dir, "refused"))
	refused, err := os.ReadFile(filepath.Join(dir, "refused"))
	if string(refused) != lines[0]+"\n" || err != nil {
		t.Errorf("%d bytes were written as refused, want line 1: %v", len(refused), err)
	}
	put(0, r.endpoint)
	server.stop()
}

// raise raises the record limit of the stream events to 10 MiB.
func raise(t *testing.T, endpoint string) {
	t.Helper()
	cfg, err := awsclient.Load(t.Context(), awsclient.Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	client := awsclient.Kinesis(cfg)
	described, err := client.DescribeStreamSummary(t.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("events")})
	if err == nil {
		_, err = client.UpdateMaxRecordSize(t.Context(), &kinesis.UpdateMaxRecordSizeInput{
			StreamARN:          described.StreamDescriptionSummary.StreamARN,
			MaxRecordSizeInKiB: aws.Int32(10 << 10),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); {
		described, err = client.DescribeStreamSummary(t.Context(),
			&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("events")})
		if err == nil && described.StreamDescriptionSummary.StreamStatus == "ACTIVE" {
			return
		}
	}
	t.Fatal(err)
}
