package processes_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/klauspost/compress/zstd"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/seam"
)

// The files of TestGolden: those that the commands had written when they were killed, and the
// output of commands that read them then.
const (
	goldenFiles  = "testdata/golden/files.tar.zst"
	goldenOutput = "testdata/golden/output.txt"
)

var update = flag.Bool("update", false, "write testdata/golden with the present formats")

// goldenRun is a kill run with the files of an earlier version. Its processes have the clock of
// that time.
type goldenRun struct {
	*killRun
	clock string // a file for seam.EnvClock
}

func newGoldenRun(t *testing.T) *goldenRun {
	t.Setenv(seam.EnvH, "2s")
	r := &goldenRun{killRun: newKillRun(t, "", 1)}
	r.dir = filepath.Dir(r.data)
	r.events = filepath.Join(r.dir, "events.ndjson")
	r.clock = filepath.Join(r.dir, "clock")
	t.Setenv(seam.EnvClock, r.clock)
	return r
}

func (r *goldenRun) up(chaos string) *process {
	return r.serve(chaos, "--stream", "others:1", "--stream-delay", "0")
}

// put starts a put of a stream with the usual flags.
func (r *goldenRun) put(stream string, more ...string) *process {
	return r.start(append([]string{
		"put", "--endpoint", r.endpoint, "--stream", stream, "--key", "repo",
	}, more...)...)
}

func (r *goldenRun) resume() *process { return r.put("events", "--resume", "state", "events.ndjson") }

// TestGolden goes on with the files of an earlier version: a server's data, an archive, the state
// of put --resume, the keys of put --keys in a file and in a table, and a lease table. All of them
// were killed. They read as they did then, the work goes on, and the archive holds each event once.
//
// A new format needs files of the version before it: -update writes them with the present one.
func TestGolden(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	r := newGoldenRun(t)
	written := r.unpack()
	r.setClock(time.Until(written))
	r.start("fsck", r.data).want(0)
	server := r.up("")
	want, err := os.ReadFile(goldenOutput)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.output(); got != string(want) {
		t.Errorf("the files read otherwise than they did: %s", firstDifference(got, string(want)))
	}
	r.start("verify", r.archive).want(0)

	r.resume().want(0)
	r.put("others", "--keys", "keys.ndjson", r.events).want(0)
	if got := r.mapped("--file", "keys.ndjson"); !strings.Contains(string(want), got) {
		t.Errorf("the names have other keys now:\n%s", got)
	}
	r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--once").want(0)
	r.wantEach("key")
	server.stop()
	r.start("fsck", r.data).want(0)
}

func (r *goldenRun) setClock(by time.Duration) {
	r.t.Helper()
	if err := os.WriteFile(r.clock, []byte(by.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// output returns the output of commands that read the files.
func (r *goldenRun) output() string {
	r.t.Helper()
	var b strings.Builder
	for _, args := range [][]string{
		{"streams", "list"},
		{"streams", "describe", "events"},
		{"streams", "describe", "others"},
		{"shards", "list", "--stream", "others"},
		{"tail", "--stream", "events", "--once", "--doubles"},
		{"tail", "--stream", "others", "--once", "--doubles"},
	} {
		fmt.Fprintln(&b, "#", strings.Join(args, " "))
		p := r.start(append(args, "--endpoint", r.endpoint, "--output", "json")...)
		p.want(0)
		lines := strings.Split(strings.TrimSpace(p.stdout.String()), "\n")
		slices.Sort(lines) // tail interleaves the shards
		if text := strings.Join(lines, "\n"); len(lines) < 100 {
			fmt.Fprintln(&b, text)
		} else {
			fmt.Fprintf(&b, "%d lines, SHA-256 %x\n", len(lines), sha256.Sum256([]byte(text)))
		}
	}
	fmt.Fprintf(&b, "# keys map --file\n%s", r.mapped("--file", "keys.ndjson"))
	fmt.Fprintf(&b, "# keys map --table\n%s", r.mapped("--table", "keys", "--endpoint", r.endpoint))
	for _, table := range []string{"events-archive", "keys"} {
		fmt.Fprintf(&b, "# table %s\n%s", table, r.items(table))
	}
	return b.String()
}

// mapped prints the keys of some names.
func (r *goldenRun) mapped(where ...string) string {
	r.t.Helper()
	p := r.start(append([]string{"keys", "map", "--output", "json", "repo-1", "repo-2"}, where...)...)
	p.want(0)
	return p.stdout.String()
}

// items returns the items of a table, a line each.
func (r *goldenRun) items(table string) string {
	r.t.Helper()
	cfg, err := awsclient.Load(r.t.Context(), awsclient.Options{Endpoint: r.endpoint})
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := awsclient.DynamoDB(cfg).Scan(r.t.Context(), &dynamodb.ScanInput{
		TableName: aws.String(table), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	for _, item := range out.Items {
		line, err := json.Marshal(plainOf(&types.AttributeValueMemberM{Value: item}))
		if err != nil {
			r.t.Fatal(err)
		}
		lines = append(lines, string(line)+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// plainOf returns an attribute as JSON knows it, with the name of its type.
func plainOf(value types.AttributeValue) any {
	switch v := value.(type) {
	case *types.AttributeValueMemberM:
		fields := map[string]any{}
		for name, field := range v.Value {
			fields[name] = plainOf(field)
		}
		return fields
	case *types.AttributeValueMemberSS:
		slices.Sort(v.Value)
		return v.Value
	default:
		return fmt.Sprintf("%T %v", v, v)
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(got, want string) string {
	lines := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			return fmt.Sprintf("line %d is\n%s\nand was\n%s", i+1, line,
				strings.Join(lines[min(i, len(lines)):min(i+1, len(lines))], ""))
		}
	}
	return fmt.Sprintf("%d bytes are missing", len(want)-len(got))
}

// writeGolden writes the files, and kills the commands in the middle of their work.
func writeGolden(t *testing.T) {
	t.Helper()
	r := newGoldenRun(t)
	if err := os.Rename(madeEvents(t), r.events); err != nil {
		t.Fatal(err)
	}
	server := r.up("")
	small := filepath.Join(r.dir, "small.ndjson")
	if err := os.WriteFile(small, firstLines(t, r.events, 20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, order := range []string{"key", "plain", "shard", "none"} {
		r.put("others", "--order", order, small).want(0)
	}
	r.mapped("--file", "keys.ndjson")
	r.put("others", "--keys", "keys.ndjson", small).want(0)
	r.put("others", "--keys", "keys", small).want(0) // a name without a dot is a table's
	r.start("shards", "split", "shardId-000000000000", "--endpoint", r.endpoint,
		"--stream", "others", "--yes").want(0)
	r.put("others", small).want(0)
	server.stop()

	server = r.up("seed=1 PutRecords:delay=30ms%100 PutRecords:lose-answer%3")
	archiver := r.archiver()
	load := r.resume()
	clitest.Eventually(t, "half of the events are archived", func() bool { return archived(r.archive) > 3 })
	load.kill()
	archiver.kill()
	server.kill()
	written := time.Now()
	server = r.up("")
	if err := os.WriteFile(goldenOutput, []byte(r.output()), 0o644); err != nil {
		t.Fatal(err)
	}
	server.kill()
	for _, extra := range []string{small, r.clock} {
		_ = os.Remove(extra)
	}
	r.pack(written)
}

func firstLines(t *testing.T, name string, n int) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join(bytes.SplitAfterN(text, []byte("\n"), n+1)[:n], nil)
}

// archived counts the files of an archive.
func archived(dir string) (files int) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files++
		}
		return nil
	})
	return files
}

// pack writes the run's folder into goldenFiles. The folder itself has the time of writing.
func (r *goldenRun) pack(written time.Time) {
	t, dir := r.t, r.dir
	t.Helper()
	var text bytes.Buffer
	compressed, err := zstd.NewWriter(&text, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewWriter(compressed)
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		err = files.WriteHeader(&tar.Header{
			Name: relative, Mode: 0o600, Size: int64(len(content)), ModTime: written,
		})
		if err == nil {
			_, err = files.Write(content)
		}
		return err
	})
	if err == nil {
		err = files.Close()
	}
	if err == nil {
		err = compressed.Close()
	}
	if err == nil {
		err = os.WriteFile(goldenFiles, text.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unpack makes the run's folder of goldenFiles, and returns when they were written.
func (r *goldenRun) unpack() (written time.Time) {
	t, dir := r.t, r.dir
	t.Helper()
	file, err := os.Open(goldenFiles)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	expanded, err := zstd.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer expanded.Close()
	files := tar.NewReader(expanded)
	for {
		header, err := files.Next()
		if err == io.EOF {
			return written
		}
		if err != nil {
			t.Fatal(err)
		}
		written = header.ModTime
		name := filepath.Join(dir, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err == nil {
			err = os.WriteFile(name, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
