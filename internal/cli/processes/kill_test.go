package processes_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/sink/archive"
)

// The real events of the kill run: 23,402 of 11,075 repositories.
const (
	eventsFile   = "gh-events-20150101.ndjson.gz"
	eventsCount  = 23_402
	eventsKeys   = 11_075
	killFailover = "2s"
)

// verdict has the fields that the kill run reads of `verify --output json`, and counts those of
// `put --output json`.
type verdict struct {
	OK bool `json:"ok"`
	archive.Report
}

type counts struct {
	Records int64 `json:"records"`
	Calls   int64 `json:"calls"`
	Unknown int64 `json:"unknown"`
}

// TestKills is the main job as separate processes on real events: put through four shards while
// the server is killed with -9 and restarted, answers are lost, and one of two archive workers is
// killed with -9. Nothing may be missing, doubled or out of order.
func TestKills(t *testing.T) {
	events := realEvents(t)
	for seed := range killSeeds() {
		t.Run(fmt.Sprintf("seed=%d", seed+1), func(t *testing.T) {
			run := newKillRun(t, events, seed+1)
			got, put := run.withKills()
			if put.Unknown == 0 {
				t.Error("no attempt without an answer: the fixed fault did not happen")
			}
			if doubled := got.Source.Doubled.Count; doubled != 0 {
				t.Errorf("%d records are archived twice, from two places of the stream; want none",
					doubled)
			}
		})
	}
	t.Logf("soak: %d seeds, %d crashes", killSeeds(), 2*killSeeds())
	t.Run("no faults", func(t *testing.T) {
		run := newKillRun(t, events, 0)
		got, put := run.withoutKills()
		if doubled := got.Source.Doubled.Count; doubled != 0 || put.Unknown != 0 {
			t.Errorf("without faults: %d doubled, %d unknown; want none", doubled, put.Unknown)
		}
	})
}

func realEvents(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RUNNEL_DATA")
	if dir == "" {
		t.Skip("RUNNEL_DATA is not set: it names the folder of " + eventsFile)
	}
	return filepath.Join(dir, eventsFile)
}

// soak is how often a random suite repeats its budget.
func soak() int {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	if err != nil {
		return 1
	}
	return max(1, n)
}

// killSeeds is how many seeds a kill loop takes.
func killSeeds() uint64 {
	if underRace {
		return uint64(soak())
	}
	return uint64(3 * soak())
}

type killRun struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	events   string
	data     string
	archive  string
	addr     string
	endpoint string
	env      []string // of every process, besides the test's own
	dir      string   // where every process runs; "": the test's

	table     []string // the archivers' flags for a table
	beforeEnd func()   // called by finish while the server runs
}

func newKillRun(t *testing.T, events string, seed uint64) *killRun {
	dir := t.TempDir()
	return &killRun{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), events: events,
		data: filepath.Join(dir, "data"), archive: filepath.Join(dir, "archive"),
		addr: "127.0.0.1:0",
	}
}

// between draws a moment.
func (r *killRun) between(low, high time.Duration) time.Duration {
	return low + time.Duration(r.random.Int64N(int64(high-low)))
}

func (r *killRun) withKills() (verdict, counts) {
	// The delay keeps put busy for some seconds; one answer is lost after its commit for sure.
	chaos := fmt.Sprintf("seed=%d PutRecords:delay=20ms%%100 PutRecords:lose-answer@%d",
		r.seed, 3+r.random.IntN(20))
	server := r.serve(chaos)
	first, second := r.archiver(), r.archiver()
	put := r.start("put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo",
		"--output", "json", r.events)

	time.Sleep(r.between(500*time.Millisecond, 1500*time.Millisecond)) // the kill's moment
	server.kill()
	server = r.serve(chaos)
	time.Sleep(r.between(0, time.Second)) // the kill's moment
	first.kill()
	return r.finish(server, put, second)
}

func (r *killRun) withoutKills() (verdict, counts) {
	server := r.serve("")
	archiver := r.archiver()
	put := r.start("put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo",
		"--output", "json", r.events)
	return r.finish(server, put, archiver)
}

// finish waits for put, stops the living archiver, lets another one archive the rest, and verifies.
func (r *killRun) finish(server, put, archiver *process) (verdict, counts) {
	var put2 counts
	put.wantJSON(&put2)
	archiver.stop()
	r.start(append([]string{
		"archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--once",
	}, r.table...)...).want(0)
	if r.beforeEnd != nil {
		r.beforeEnd()
	}
	var got verdict
	r.start("verify", r.archive, "--source", r.events, "--id", "id", "--key", "repo",
		"--output", "json").wantJSON(&got)
	var with verdict
	r.start("verify", r.archive, "--endpoint", r.endpoint, "--against-stream", "events",
		"--complete", "--output", "json").wantJSON(&with)
	server.stop()
	if !with.OK || with.Stream.Compared != eventsCount {
		r.t.Errorf("%d records are as in the stream, ok: %v", with.Stream.Compared, with.OK)
	}
	source := got.Source
	r.t.Logf("put: %+v; %d archived, %d doubled in the stream", put2, got.Records,
		source.Doubled.Count)
	if !got.OK || source.Missing.Count+got.Twice.Count+source.OutOfOrder.Count > 0 {
		r.t.Errorf("%d missing, %d archived twice, %d out of order; want none",
			source.Missing.Count, got.Twice.Count, source.OutOfOrder.Count)
	}
	if source.Keys != eventsKeys || put2.Records != eventsCount {
		r.t.Errorf("%d keys and %d records put; want %d and %d",
			source.Keys, put2.Records, eventsKeys, eventsCount)
	}
	return got, put2
}

var listening = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// serve starts the server, on the port of the first start, and waits until it is healthy.
func (r *killRun) serve(chaos string, more ...string) *process {
	return r.serveWith(append([]string{
		"serve", "--addr", r.addr, "--data", r.data, "--stream", "events:4", "--chaos", chaos,
	}, more...)...)
}

func (r *killRun) serveWith(args ...string) *process {
	p := r.start(args...)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if match := listening.FindStringSubmatch(p.stderr.String()); match != nil {
			r.addr, r.endpoint = match[1], "http://"+match[1]
			if err := clitest.Healthy(r.endpoint); err == nil {
				return p
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the server is not up: %s", p.stderr.String())
		}
	}
}

func (r *killRun) archiver() *process {
	return r.start(append([]string{
		"archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--every", "300ms", "--size", "256KiB",
	}, r.table...)...)
}

// process is a runnel of its own: the test binary, run as the command.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	stdout clitest.Buffer
	stderr clitest.Buffer
	done   chan struct{}
	err    error
}

func (r *killRun) start(args ...string) *process {
	r.t.Helper()
	return r.startWith(nil, args...)
}

// startWith starts a process, and passes each line of its standard output on, unless line is nil.
func (r *killRun) startWith(line func([]byte), args ...string) *process {
	r.t.Helper()
	p := &process{t: r.t, name: args[0], done: make(chan struct{})}
	p.cmd = clitest.Command(args...)
	p.cmd.Dir = r.dir
	p.cmd.Env = append(os.Environ(), clitest.AsCommand(), "AWS_EC2_METADATA_DISABLED=true")
	p.cmd.Env = append(p.cmd.Env, r.env...)
	if r.env != nil {
		p.cmd.Env = append(p.cmd.Env, seam.EnvClock+"="+r.clockFile(args[0]))
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if line != nil {
		p.cmd.Stdout = &lineWriter{line: line}
	}
	if err := p.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	r.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if r.t.Failed() {
			r.t.Logf("%s: %v\n%s", strings.Join(args, " "), p.err, tail(p.stderr.String(), 60))
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// stop asks the process to finish; it must end with 0.
func (p *process) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.want(0)
}

func (p *process) want(status int) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(90 * time.Second):
		p.t.Fatalf("%s did not end", p.name)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Fatalf("%s ended with %d, want %d: %s", p.name, got, status,
			tail(p.stdout.String(), 20))
	}
}

func (p *process) wantJSON(into any) {
	p.t.Helper()
	p.want(0)
	lines := bufio.NewScanner(strings.NewReader(p.stdout.String()))
	lines.Buffer(nil, 1<<20)
	var last []byte
	for lines.Scan() {
		last = append(last[:0], lines.Bytes()...)
	}
	if err := json.Unmarshal(last, into); err != nil {
		p.t.Fatalf("%s printed %q: %v", p.name, last, err)
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
