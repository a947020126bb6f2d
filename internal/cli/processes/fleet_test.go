package processes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/awsclient"
)

// fleetFailover returns the failover time of these tests, and by how much the limits of time are
// wider than promised. Beside other tests a process may wait for the processor for a second or two,
// so the promises hold by the letter only for RUNNEL_FLEET_FAILOVER=10s, alone on the machine.
func fleetFailover(t *testing.T) (failover, slack time.Duration) {
	text := os.Getenv("RUNNEL_FLEET_FAILOVER")
	if text == "" {
		return 3 * time.Second, 4 * time.Second
	}
	failover, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("RUNNEL_FLEET_FAILOVER: %v", err)
	}
	return failover, 0
}

// fleetRun is a server, a feeder, and workers that print, all but the feeder as processes. Each
// line is stamped when it comes out of its process.
type fleetRun struct {
	*killRun
	workers  []*process
	failover time.Duration
	slack    time.Duration
	feeding  context.CancelFunc
	fed      chan int // how many records the feeder has put

	mu     sync.Mutex
	lines  map[int]int // how often each record was printed
	again  int
	shards map[string]*printed
	owners map[string]string // the worker that printed a shard's last line
}

// printed is what the test knows of one shard.
type printed struct {
	last    time.Time     // when the last new record was printed
	silence time.Duration // the longest time without a new record
}

const fleetShards = 12

// feeder puts records with numbers from 0 on until ctx is done, and returns how many it has put.
type feeder func(ctx context.Context, r *fleetRun) int

// newFleetRun starts a server with a stream of fleetShards shards, and a feeder of 1,000 records a
// second.
func newFleetRun(t *testing.T) *fleetRun {
	return newFleetRunOf(t, fleetShards, func(ctx context.Context, r *fleetRun) int { return r.feed(ctx) })
}

func newFleetRunOf(t *testing.T, shards int, feed feeder, serve ...string) *fleetRun {
	r := &fleetRun{
		killRun: newKillRun(t, "", 1), fed: make(chan int, 1),
		lines: map[int]int{}, shards: map[string]*printed{}, owners: map[string]string{},
	}
	r.failover, r.slack = fleetFailover(t)
	r.serveWith(append([]string{
		"serve", "--addr", r.addr, "--memory", "--stream", fmt.Sprintf("events:%d", shards),
	}, serve...)...)
	ctx, cancel := context.WithCancel(t.Context())
	r.feeding = cancel
	go func() { r.fed <- feed(ctx, r) }()
	return r
}

func (r *fleetRun) client() *kinesis.Client {
	return awsclient.Kinesis(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(r.endpoint),
		Credentials: aws.AnonymousCredentials{},
		HTTPClient:  awsclient.PlainBodies(awshttp.NewBuildableClient()),
	})
}

// feed puts 50 records each 50 ms.
func (r *fleetRun) feed(ctx context.Context) int {
	client, n := r.client(), 0
	for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("events")}
		for range 50 {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				Data: numbered(n, 0), PartitionKey: aws.String(strconv.Itoa(n % 997)),
			})
			n++
		}
		if out, err := client.PutRecords(context.WithoutCancel(ctx), in); err != nil ||
			aws.ToInt32(out.FailedRecordCount) != 0 {
			r.t.Errorf("put: %+v, %v", out, err)
			return n
		}
	}
	return n
}

// numbered returns the data of a record, of at least size bytes.
func numbered(n, size int) []byte {
	return fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, n, strings.Repeat("x", size))
}

// worker starts a worker that prints.
func (r *fleetRun) worker(id string, more ...string) *process {
	p := r.startWith(func(line []byte) { r.see(id, line) }, append([]string{
		"tail", "--endpoint", r.endpoint, "--stream", "events", "--app", "printers",
		"--worker", id, "--failover", r.failover.String(), "--from", "oldest", "--output", "json",
	}, more...)...)
	r.workers = append(r.workers, p)
	return p
}

func (r *fleetRun) see(worker string, line []byte) {
	now := time.Now()
	var record struct {
		Shard string `json:"shardId"`
		Data  struct {
			Number *int `json:"n"`
		} `json:"data"`
	}
	if err := json.Unmarshal(line, &record); err != nil || record.Data.Number == nil {
		r.t.Errorf("%s printed %q: %v", worker, line, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[record.Shard] = worker
	n := *record.Data.Number
	if r.lines[n]++; r.lines[n] > 1 {
		r.again++
		return
	}
	s := r.shards[record.Shard]
	if s == nil {
		s = &printed{last: now}
		r.shards[record.Shard] = s
	}
	s.silence = max(s.silence, now.Sub(s.last))
	s.last = now
}

// silence returns the longest silence of a shard since the last call, until now.
func (r *fleetRun) silence() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var longest time.Duration
	for _, s := range r.shards {
		longest = max(longest, s.silence, time.Since(s.last))
		s.silence = 0
	}
	return longest
}

// shares returns how many shards each worker printed last.
func (r *fleetRun) shares() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[string]int{}
	for _, worker := range r.owners {
		counts[worker]++
	}
	var shares []int
	for _, n := range counts {
		shares = append(shares, n)
	}
	slices.Sort(shares)
	return shares
}

// awaitShares waits until n workers print even shares, and returns how long it took.
func (r *fleetRun) awaitShares(n int, limit time.Duration) time.Duration {
	r.t.Helper()
	began := time.Now()
	limit += r.slack
	for {
		shares := r.shares()
		if len(shares) == n && shares[0] == fleetShards/n {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			r.t.Fatalf("not within %s: %d even shares, but %v", limit, n, shares)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// finish stops the feeder, waits until every record was printed, and returns the repetitions.
func (r *fleetRun) finish() int {
	r.t.Helper()
	r.feeding()
	put := <-r.fed
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		seen, again := len(r.lines), r.again
		r.mu.Unlock()
		if seen == put {
			r.t.Logf("%d records, %d again", put, again)
			return again
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d of %d records were printed", seen, put)
		}
	}
}

func (r *fleetRun) quiet(limit time.Duration, when string) {
	r.t.Helper()
	longest := r.silence()
	limit += r.slack
	r.t.Logf("%s: the longest silence was %s", when, longest.Round(time.Millisecond))
	if longest > limit {
		r.t.Errorf("%s, a shard was silent for %s, want %s at most", when, longest, limit)
	}
}

// TestFleetKills runs fleets as processes, which come and go, politely and otherwise. Each line
// that a worker prints is stamped outside of it.
func TestFleetKills(t *testing.T) {
	if underRace {
		t.Skip("the detector makes processes too slow for it; the fleets of package consumer, in " +
			"virtual time, show it the same code")
	}
	t.Parallel() // beside TestTimeKills, which mostly waits
	for _, run := range []struct {
		name string
		test func(*testing.T)
	}{
		{"grows and shrinks", fleetGrowsAndShrinks},
		{"death and pause", fleetDeathAndPause},
		{"rolling restart", fleetRollingRestart},
		{"calls that hang", fleetHangs},
		{"each unit once", fleetOnce},
		{"a busy shard of 100 producers", fleetBusyShard},
	} {
		t.Run(run.name, func(t *testing.T) {
			if os.Getenv("RUNNEL_FLEET_FAILOVER") == "" {
				t.Parallel()
			}
			run.test(t)
		})
	}
}

// A fleet of two grows to four and shrinks to two, politely.
func fleetGrowsAndShrinks(t *testing.T) {
	r := newFleetRun(t)
	workers := []*process{r.worker("w1"), r.worker("w2")}
	r.awaitShares(2, 15*time.Second)
	time.Sleep(r.failover)
	r.silence()
	for n := 3; n <= 4; n++ {
		workers = append(workers, r.worker(fmt.Sprintf("w%d", n)))
		took := r.awaitShares(n, 8*time.Second)
		t.Logf("worker %d has its share after %s", n, took.Round(time.Millisecond))
		time.Sleep(r.failover)
		r.quiet(2*time.Second, "when a worker came")
	}
	for n := 4; n > 2; n-- {
		left := make(chan struct{})
		go func() {
			defer close(left)
			workers[n-1].stop()
		}()
		took := r.awaitShares(n-1, 2*time.Second)
		t.Logf("the leaver's shards are elsewhere after %s", took.Round(time.Millisecond))
		<-left
		time.Sleep(r.failover)
		r.quiet(2*time.Second, "when a worker left")
	}
	if again := r.finish(); again != 0 {
		t.Errorf("%d records were printed again", again)
	}
}

// A worker of three is killed, and later one is paused for twice the failover time. The paused one
// prints no line of a shard that another worker has by then.
func fleetDeathAndPause(t *testing.T) {
	r := newFleetRun(t)
	workers := map[string]*process{}
	for _, id := range []string{"w1", "w2", "w3"} {
		workers[id] = r.worker(id)
	}
	r.awaitShares(3, 15*time.Second)
	time.Sleep(r.failover)
	limit := r.failover*3/2 + 1500*time.Millisecond
	r.silence()
	workers["w1"].kill()
	time.Sleep(2 * r.failover)
	r.quiet(limit, "when a worker was killed")
	workers["w4"] = r.worker("w4")
	r.awaitShares(3, 8*time.Second)
	time.Sleep(r.failover)
	r.silence()
	r.mu.Lock()
	before := r.again
	r.mu.Unlock()
	_ = workers["w2"].cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(2 * r.failover)
	r.quiet(limit, "when a worker was paused")
	r.mu.Lock()
	taken := r.again // what came again from its shards' last checkpoints
	r.mu.Unlock()
	_ = workers["w2"].cmd.Process.Signal(syscall.SIGCONT)
	time.Sleep(3 * r.failover)
	r.mu.Lock()
	after := r.again
	r.mu.Unlock()
	t.Logf("%d records came again after the pause of a worker, %d when it went on", taken-before,
		after-taken)
	if after != taken {
		t.Errorf("%d records came again when the paused worker went on", after-taken)
	}
	r.awaitShares(3, 8*time.Second)
	r.finish()
}

// Four static workers are restarted one after the other. No shard moves.
func fleetRollingRestart(t *testing.T) {
	r := newFleetRun(t)
	var workers []*process
	for n := range 4 {
		workers = append(workers, r.worker(fmt.Sprintf("w%d", n), "--static"))
	}
	r.awaitShares(4, 15*time.Second)
	time.Sleep(r.failover)
	r.mu.Lock()
	before := fmt.Sprint(r.owners)
	r.mu.Unlock()
	r.silence()
	for n, w := range workers {
		w.stop()
		time.Sleep(time.Second)
		r.worker(fmt.Sprintf("w%d", n), "--static")
		time.Sleep(r.failover)
		r.mu.Lock()
		if now := fmt.Sprint(r.owners); now != before {
			t.Errorf("shards have moved from %s to %s", before, now)
		}
		r.mu.Unlock()
	}
	r.quiet(2*time.Second+r.failover/10, "in a rolling restart with one second down")
	if again := r.finish(); again != 0 {
		t.Errorf("%d records were printed again", again)
	}
}

// lineWriter passes each line on.
type lineWriter struct {
	rest []byte
	line func([]byte)
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.line(w.rest[:i])
		w.rest = w.rest[i+1:]
	}
}
