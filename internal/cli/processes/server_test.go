package processes_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// serverKills is how often a seed's server is killed, beside the kills while it starts.
const serverKills = 5

// TestServerKills kills a server with -9, over and over on one data directory, at moments drawn
// from the seed, while clients put, read, subscribe, reshard, create and delete streams, and
// write items under conditions. The directory must be sound after each kill, and after each
// restart every answer that a client got must hold:
//
//   - an acknowledged record is there, in its shard, under its number; a record is there as often
//     as it was acknowledged, and at most once more for each attempt that had no answer
//   - a shard still begins with the records that a reader or a subscriber has seen of it, without
//     a gap, byte by byte
//   - a number is higher than all numbers of its shard in answers before its record was sent
//   - the open shards' ranges tile the key space; a known shard does not change; an acknowledged
//     reshard, CreateStream or DeleteStream has happened
//   - an item's counter has counted each acknowledged increment, and nothing but attempts; the
//     first writer of an item stays the first
//
// One seed in three syncs at intervals, which a kill cannot undo either: the operating system
// has the data. RUNNEL_SEED repeats a run, as far as a kill's moment can be repeated.
func TestServerKills(t *testing.T) {
	base := rand.Uint64() >> 16
	if text := os.Getenv("RUNNEL_SEED"); text != "" {
		base, _ = strconv.ParseUint(text, 10, 64)
	}
	total := map[string]int{}
	for i := range killSeeds() {
		t.Run(fmt.Sprintf("seed=%d", base+i), func(t *testing.T) {
			run := newServerRun(t, base+i)
			run.all()
			for what, n := range run.tally() {
				total[what] += n
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("soak: %d seeds, %d crashes, %d operations", killSeeds(), total["kills"],
		total["records acknowledged"]+total["increments acknowledged"]+total["items claimed"])
	for _, what := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%s: %d", what, total[what])
		if total[what] == 0 && what != "snapshots" && what != "records unanswered" {
			t.Errorf("no %s: the test has not tested it", what)
		}
	}
}

// serverRun is one data directory, its clients, and the answers that they got.
type serverRun struct {
	killRun
	sync    string
	aws     aws.Config
	kinesis *kinesis.Client
	dynamo  *dynamodb.Client
	ctx     context.Context // of the calls
	kills   int
	// snapshots are those that were found after kills: one for each checkpoint. From the first
	// one on there are no more large records.
	snapshots    map[string]bool
	checkpointed atomic.Bool

	records  *ledger
	layout   *layout
	streams  *streamBook
	counters []*counter
	claims   *claims
	consumer string // the ARN of the subscriber

	// clients run until stopped ends; they finish their calls. They begin none while the gate
	// is shut: while there is no server, and while it is checked.
	clients sync.WaitGroup
	stopped context.Context
	stop    context.CancelFunc
	gate    gate
}

func newServerRun(t *testing.T, seed uint64) *serverRun {
	r := &serverRun{killRun: *newKillRun(t, "", seed), sync: "always", ctx: t.Context()}
	if seed%3 == 0 {
		r.sync = "interval=20ms"
	}
	r.addr = ownAddress(t)
	r.stopped, r.stop = context.WithCancel(t.Context())
	t.Cleanup(func() {
		r.stop()
		r.clients.Wait()
	})
	r.records, r.layout = newLedger(t), newLayout()
	r.streams, r.claims = newStreamBook(), newClaims()
	r.snapshots = map[string]bool{}
	return r
}

// all is the whole story of a seed.
func (r *serverRun) all() {
	server := r.restart()
	r.connect()
	r.prepareItems()
	r.prepareConsumer()
	r.employ()
	for i := range serverKills {
		r.moment(i)
		r.down(server)
		for r.random.IntN(3) == 0 { // again, while it starts
			server = r.launch()
			r.pause(r.between(0, 200*time.Millisecond))
			r.down(server)
		}
		server = r.restart()
		r.check(false)
		if r.t.Failed() {
			r.t.FailNow()
		}
	}
	r.stop()
	r.clients.Wait()
	r.down(server)
	server = r.restart()
	r.settle()
	r.check(true)
	server.stop()
	r.sound()
}

func (r *serverRun) connect() {
	r.aws = awsclient.ForServer(r.endpoint, "", "us-east-1", nil)
	r.kinesis = r.kinesisClient()
	r.dynamo = dynamodb.NewFromConfig(r.aws, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
	})
}

func (r *serverRun) kinesisClient() *kinesis.Client {
	return kinesis.NewFromConfig(r.aws, func(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} })
}

// employ starts the clients.
func (r *serverRun) employ() {
	for i := range 4 {
		r.client(r.writer(fmt.Sprint("w", i), i))
	}
	r.client(r.bulkWriter())
	for range 2 {
		r.client(r.reader())
	}
	r.client(r.subscriber())
	r.client(r.resharder())
	r.client(r.streamMaker())
	for i := range 3 {
		r.client(r.incrementer(uint64(i)))
		r.client(r.claimer(fmt.Sprint("c", i)))
	}
}

// client runs a step over and over.
func (r *serverRun) client(step func() outcome) {
	r.clients.Go(func() {
		for r.gate.pass(r.stopped) && !r.t.Failed() {
			if o := step(); o == unsent || o == unanswered {
				r.pause(5 * time.Millisecond)
			}
		}
	})
}

// source is a client's own source, so that its draws do not depend on the others.
func (r *serverRun) source(name string) *rand.Rand {
	return rand.New(rand.NewPCG(r.seed, hashOf(name)))
}

// launch starts the server, and waits for nothing: clients call it as soon as it listens.
func (r *serverRun) launch() *process {
	p := r.start("serve", "--addr", r.addr, "--data", r.data, "--sync", r.sync,
		"--stream", "events:4,bulk:1", "--stream-delay", "30ms")
	r.gate.open()
	return p
}

// restart starts the server and waits until it is healthy.
func (r *serverRun) restart() *process {
	p := r.launch()
	for deadline := time.Now().Add(60 * time.Second); ; r.pause(5 * time.Millisecond) {
		if match := listening.FindStringSubmatch(p.stderr.String()); match != nil {
			r.addr, r.endpoint = match[1], "http://"+match[1]
			if err := clitest.Healthy(r.endpoint); err == nil {
				return p
			}
		}
		if p.ended() || time.Now().After(deadline) {
			r.t.Fatalf("the server is not up: %s", p.stderr.String())
		}
	}
}

// down kills the server and checks its data directory.
func (r *serverRun) down(p *process) {
	if p.ended() {
		r.t.Fatalf("the server ended by itself: %s", p.stderr.String())
	}
	p.kill()
	r.gate.shut()
	r.kills++
	found, _ := filepath.Glob(filepath.Join(r.data, "snapshot-*"))
	for _, name := range found {
		r.snapshots[name] = true
		r.checkpointed.Store(true)
	}
	if strings.Contains(p.stderr.String(), "DATA RACE") {
		r.t.Errorf("the server has a data race: %s", p.stderr.String())
	}
	r.sound()
}

// sound has runnel fsck look through the directory.
func (r *serverRun) sound() { r.start("fsck", r.data).want(0) }

// moment waits until the next kill: some time, and twice until the log has gone so far that
// files come and go: for the next file, which begins a checkpoint, and for its snapshot.
func (r *serverRun) moment(kill int) {
	if files := map[int]string{1: "wal/*", 2: "snapshot-*"}[kill]; files != "" {
		r.untilChanged(filepath.Join(r.data, files))
		r.pause(r.between(0, 20*time.Millisecond))
		return
	}
	r.pause(r.between(10*time.Millisecond, 400*time.Millisecond))
}

// untilChanged waits until there are other files, for as long as there are large records, and not
// for long: with the race detector the server may be too slow to get there.
func (r *serverRun) untilChanged(files string) {
	before, _ := filepath.Glob(files)
	end := time.Now().Add(3 * time.Second)
	for !r.checkpointed.Load() && time.Now().Before(end) {
		if now, _ := filepath.Glob(files); !slices.Equal(now, before) {
			return
		}
		r.pause(time.Millisecond)
	}
}

// pause waits, unless the test is over.
func (r *serverRun) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.ctx.Done():
	}
}

// settle waits until no stream is being created, changed or deleted.
func (r *serverRun) settle() {
	for deadline := time.Now().Add(60 * time.Second); ; r.pause(10 * time.Millisecond) {
		statuses := r.listStreams()
		delete(statuses, "")
		if !slices.ContainsFunc(slices.Collect(maps.Values(statuses)), func(status string) bool {
			return status != "ACTIVE"
		}) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the streams do not settle: %v", statuses)
		}
	}
}

// check compares the server's contents with the clients' answers. Calls that are under way and the
// subscription continue meanwhile, except at the end.
func (r *serverRun) check(over bool) {
	r.gate.shut()
	defer r.gate.open()
	r.checkLayout(over)
	r.checkRecords(over)
	r.checkStreams(over)
	r.checkCounters()
	r.checkClaims()
}

// tally counts the events of the run, for the log.
func (r *serverRun) tally() map[string]int {
	tally := map[string]int{"kills": r.kills, "snapshots": len(r.snapshots)}
	r.records.count(tally)
	r.layout.count(tally)
	r.streams.count(tally)
	r.claims.count(tally)
	for _, c := range r.counters {
		c.count(tally)
	}
	return tally
}
