package processes_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/seam"
)

// lossRun is a server with a clock that the test steps, and commands.
type lossRun struct {
	*killRun
	clock   string
	kinesis *kinesis.Client
	tables  *dynamodb.Client
}

func newLossRun(t *testing.T) *lossRun {
	r := &lossRun{killRun: newKillRun(t, "", 1), clock: filepath.Join(t.TempDir(), "clock")}
	t.Setenv(seam.EnvClock, r.clock)
	r.serve("", "--stream", "one:1")
	t.Setenv(seam.EnvClock, "") // the commands have another machine's clock
	cfg, err := awsclient.Load(t.Context(), awsclient.Options{Endpoint: r.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	r.kinesis, r.tables = awsclient.Kinesis(cfg), awsclient.DynamoDB(cfg)
	return r
}

// step moves the server's clock, and returns when the server gives the new time: it notes a step
// on the disk first. A text as "25h passed" moves the time since the boot, too.
func (r *lossRun) step(by string) {
	r.t.Helper()
	before := time.Now()
	if err := os.WriteFile(r.clock, []byte(by), 0o600); err != nil {
		r.t.Fatal(err)
	}
	clitest.Eventually(r.t, "the server's clock has stepped", func() bool {
		response, err := http.Get(r.endpoint + "/health")
		if err != nil {
			r.t.Fatal(err)
		}
		_ = response.Body.Close()
		date, err := http.ParseTime(response.Header.Get("Date"))
		return err == nil && date.Sub(before) > time.Hour
	})
}

// put puts n records.
func (r *lossRun) put(n int) { r.putAs(n, "plain") }

func (r *lossRun) putAs(n int, order string) {
	r.t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "{\"id\":%d}\n", i)
	}
	file := filepath.Join(r.t.TempDir(), "records.ndjson")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.start("put", "--endpoint", r.endpoint, "--stream", "one", "--key", "id",
		"--order", order, file).want(0)
}

func (r *lossRun) once() *process {
	return r.start("archive", "--endpoint", r.endpoint, "--stream", "one", "--to", r.archive,
		"--failover", killFailover, "--once")
}

// trim makes the server remove expired records now.
func (r *lossRun) trim() {
	r.t.Helper()
	name := aws.String("one")
	_, err := r.kinesis.IncreaseStreamRetentionPeriod(r.t.Context(),
		&kinesis.IncreaseStreamRetentionPeriodInput{
			StreamName: name, RetentionPeriodHours: aws.Int32(24),
		})
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestArchiverThatWasAway is the story of an archiver that was away for longer than the stream
// keeps records: 1,000 of 3,000 are gone. The command says so, and the archive does.
func TestArchiverThatWasAway(t *testing.T) {
	r := newLossRun(t)
	r.put(10)
	r.once().want(0)
	r.put(1000)
	r.step("25h passed")
	r.put(2000)
	r.trim()
	again := r.once()
	again.want(0)
	if said := again.stderr.String(); !strings.Contains(said, "1 gaps, where the stream removed") ||
		!strings.Contains(said, "level=WARN") {
		t.Errorf("archive said:\n%s", said)
	}
	verify := r.start("verify", r.archive)
	verify.want(1)
	if said := verify.stdout.String(); !strings.Contains(said, "gaps: 1") ||
		!strings.Contains(said, "2,010 records") {
		t.Errorf("verify said:\n%s", said)
	}
	r.start("verify", r.archive, "--allow-gaps").want(0)
}

// TestRecreatedUnderTheArchiver deletes and makes a stream again of which nothing was read: the
// archiver ends with 3 and a sentence, and takes nothing of the new stream.
func TestRecreatedUnderTheArchiver(t *testing.T) {
	r := newLossRun(t)
	archiver := r.start("archive", "--endpoint", r.endpoint, "--stream", "one", "--to", r.archive,
		"--failover", killFailover, "--verbose")
	r.await("the shard's lease is held", func() bool {
		out, err := r.tables.Scan(t.Context(), &dynamodb.ScanInput{
			TableName: aws.String("one-archive"), FilterExpression: aws.String(
				"attribute_exists(leaseOwner)"),
		})
		return err == nil && out.Count == 1
	})
	name := aws.String("one")
	_, err := r.kinesis.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: name})
	if err != nil {
		t.Fatal(err)
	}
	r.await("the stream is made again", func() bool {
		_, err := r.kinesis.CreateStream(t.Context(), &kinesis.CreateStreamInput{
			StreamName: name, ShardCount: aws.Int32(1),
		})
		return err == nil
	})
	r.await("the new stream takes a record", func() bool {
		_, err := r.kinesis.PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: name, PartitionKey: aws.String("k"), Data: []byte("new"),
		})
		return err == nil
	})
	archiver.want(3)
	said := archiver.stderr.String()
	if !strings.Contains(said, "created again") && !strings.Contains(said, "no such stream") {
		t.Errorf("archive said:\n%s", said)
	}
	if links := r.links(); len(links) > 0 {
		t.Errorf("archived: %q", links)
	}
}

// await polls until the condition holds.
func (r *lossRun) await(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// links returns the archive's objects.
func (r *lossRun) links() (names []string) {
	_ = filepath.WalkDir(r.archive, func(name string, _ fs.DirEntry, _ error) error {
		if strings.HasSuffix(name, ".ndjson.gz") {
			names = append(names, name)
		}
		return nil
	})
	return names
}

// TestDeletedTableOfTheArchiver deletes the lease table under an archiver.
func TestDeletedTableOfTheArchiver(t *testing.T) {
	r := newLossRun(t)
	r.put(10)
	archiver := r.start("archive", "--endpoint", r.endpoint, "--stream", "one", "--to", r.archive,
		"--failover", killFailover, "--every", "100ms")
	r.await("a commit", func() bool { return len(r.links()) > 0 })
	if _, err := r.tables.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{
		TableName: aws.String("one-archive"),
	}); err != nil {
		t.Fatal(err)
	}
	archiver.want(3)
	if said := archiver.stderr.String(); !strings.Contains(said, "was deleted while") {
		t.Errorf("archive said:\n%s", said)
	}
	r.once().want(0)
	r.start("verify", r.archive).want(0)
}

// TestOnceIntoADamagedArchive loses the first link of an archive; the second one has a change only.
// archive --once reports that and ends.
func TestOnceIntoADamagedArchive(t *testing.T) {
	r := newLossRun(t)
	for range 2 {
		r.putAs(10, "key")
		r.once().want(0)
	}
	links := r.links()
	if len(links) != 2 {
		t.Fatalf("links: %q", links)
	}
	if err := os.Remove(links[0]); err != nil {
		t.Fatal(err)
	}
	again := r.start("archive", "--endpoint", r.endpoint, "--stream", "one", "--to", r.archive,
		"--failover", "300ms", "--once")
	again.want(3)
	if said := again.stderr.String(); !strings.Contains(said, "runnel verify") {
		t.Errorf("archive said:\n%s", said)
	}
	r.start("verify", r.archive).want(1)
}
