package processes_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/seam"
)

// glitchRun is a server whose machine's clock goes wrong.
type glitchRun struct {
	*lossRun
	server *process
}

// serve starts the server with its machine's clock.
func (r *glitchRun) serve(more ...string) {
	r.t.Helper()
	r.t.Setenv(seam.EnvClock, r.clock)
	r.server = r.killRun.serve("", append([]string{"--stream", "one:1"}, more...)...)
	r.t.Setenv(seam.EnvClock, "")
}

// set sets the machine's clock, and calls the server, which sees it.
func (r *glitchRun) set(by string) {
	r.t.Helper()
	if err := os.WriteFile(r.clock, []byte(by), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.health()
}

// health returns the page /health.
func (r *glitchRun) health() string {
	r.t.Helper()
	response, err := http.Get(r.endpoint + "/health")
	if err != nil {
		r.t.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK {
		r.t.Fatalf("/health: %d, %v", response.StatusCode, err)
	}
	return string(page)
}

// wantHealth fails unless /health has a text beside "ok"; "": none.
func (r *glitchRun) wantHealth(when, text string) {
	r.t.Helper()
	if _, second, _ := strings.Cut(r.health(), "\n"); !strings.Contains(second, text) ||
		(second == "") != (text == "") {
		r.t.Errorf("%s /health has %q, want %q", when, second, text)
	}
}

// created makes a stream and returns when it is ACTIVE.
func (r *glitchRun) created(name string) {
	r.t.Helper()
	if _, err := r.kinesis.CreateStream(r.t.Context(), &kinesis.CreateStreamInput{
		StreamName: &name, ShardCount: aws.Int32(1),
	}); err != nil {
		r.t.Fatal(err)
	}
	clitest.Eventually(r.t, name+" is ACTIVE", func() bool {
		out, err := r.kinesis.DescribeStreamSummary(r.t.Context(),
			&kinesis.DescribeStreamSummaryInput{StreamName: &name})
		return err == nil && out.StreamDescriptionSummary.StreamStatus == "ACTIVE"
	})
}

// wantRecords lets the server remove what has expired and counts the records.
func (r *glitchRun) wantRecords(when string, want int) {
	r.t.Helper()
	r.trim()
	it, err := r.kinesis.GetShardIterator(r.t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("one"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: "TRIM_HORIZON",
	})
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := r.kinesis.GetRecords(r.t.Context(), &kinesis.GetRecordsInput{
		ShardIterator: it.ShardIterator,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if len(out.Records) != want {
		r.t.Errorf("%s the stream has %d records, want %d", when, len(out.Records), want)
	}
}

func (r *glitchRun) putOne() {
	r.t.Helper()
	if _, err := r.kinesis.PutRecord(r.t.Context(), &kinesis.PutRecordInput{
		StreamName: aws.String("one"), PartitionKey: aws.String("k"), Data: []byte("x"),
	}); err != nil {
		r.t.Fatal(err)
	}
}

// TestServerClockGlitch sets the clock of a running server a year ahead and corrects it, also while
// the server is down, and after --accept-clock has made the server follow. No record is lost, and
// streams become ACTIVE. /health names the difference and the way out.
func TestServerClockGlitch(t *testing.T) {
	const yearAhead = "8760h"
	r := &glitchRun{lossRun: &lossRun{
		killRun: newKillRun(t, "", 1), clock: filepath.Join(t.TempDir(), "clock"),
	}}
	r.serve()
	cfg, err := awsclient.Load(t.Context(), awsclient.Options{Endpoint: r.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	r.kinesis = awsclient.Kinesis(cfg)
	r.putOne()
	r.set(yearAhead)
	r.putOne()
	r.wantHealth("a year ahead,", "behind the system's clock: no data expire")
	r.created("ahead")
	r.wantRecords("a year ahead,", 2)
	r.set("0s")
	r.wantHealth("corrected,", "")
	r.created("corrected")
	r.wantRecords("corrected,", 2)

	r.server.kill()
	r.set0(yearAhead)
	r.serve()
	r.putOne()
	r.wantHealth("started a year ahead,", "restart with --accept-clock")
	r.wantRecords("started a year ahead,", 3)

	r.server.stop()
	r.serve("--accept-clock")
	r.putOne()
	r.wantHealth("with --accept-clock", "")
	r.created("accepted")
	r.wantRecords("with --accept-clock", 4)
	r.set("0s")
	r.wantHealth("accepted and then corrected,", "ahead of the system's clock: no data expire")
	r.created("afterwards")
	r.wantRecords("accepted and then corrected,", 4)

	r.server.kill()
	r.serve("--accept-clock")
	r.wantHealth("after the second --accept-clock", "which --accept-clock says is right")
	r.created("again")
	r.wantRecords("after the second --accept-clock", 4)
	r.set("26h passed")
	r.putOne()
	time.Sleep(50 * time.Millisecond)
	r.wantRecords("26 hours later", 1)
	r.server.stop()
}

// set0 sets the machine's clock while no server runs.
func (r *glitchRun) set0(by string) {
	r.t.Helper()
	if err := os.WriteFile(r.clock, []byte(by), 0o600); err != nil {
		r.t.Fatal(err)
	}
}
