//go:build linux

package processes_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/producer"
)

// TestRecordKills runs workers with consumer.Config.Record and Parallel as processes. They are
// killed with -9 at random moments and replaced, one is stopped for longer than the failover time,
// and shards split and merge. Most records are in aggregates of many keys. The workers log
// each handling, and the test reads the lease rows all the time. recordChecker has the promises.
func TestRecordKills(t *testing.T) {
	seeds := max(1, killSeeds()*2/3) // its workers wait for one another's leases: a seed takes 8 s
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed+1), func(t *testing.T) {
			t.Parallel()
			newRecordRun(t, seed+1, 2, 16*time.Millisecond).story()
		})
	}
	t.Run("far ahead", func(t *testing.T) {
		t.Parallel()
		newRecordRun(t, 0, 1, 0).farAhead()
	})
	t.Logf("soak: %d seeds, %d crashes", seeds, seeds*(recordKills+2)+1)
}

const (
	recordKills = 3      // in a story, before both workers are killed at once
	maxAhead    = 10_000 // docs/consumer.md: records of a shard from its lowest unfinished one on
	feedPause   = 25 * time.Millisecond
	feedAtOnce  = 20   // records, each feedPause
	backlog     = 1500 // more records at once, when a worker is stopped
)

// recordRun is a server, two producers, and workers that log what they handle.
type recordRun struct {
	*killRun
	client *kinesis.Client
	table  *lease.Table
	slow   time.Duration // the longest time of a record
	log    string        // the file
	live   []*recordProcess
	names  int

	put map[string]int // the records of each key, numbered from 1 on; of the goroutine that puts

	mu    sync.Mutex
	looks []look
}

// recordProcess is a worker.
type recordProcess struct {
	*process
	name string
}

// look is the lease table at a moment. Everything that the log had before the rows were read is
// before the place size.
type look struct {
	rows []lease.Lease
	size int64
}

func newRecordRun(t *testing.T, seed uint64, shards int, slow time.Duration) *recordRun {
	r := &recordRun{
		killRun: newKillRun(t, "", seed), slow: slow, put: map[string]int{},
		log: filepath.Join(t.TempDir(), "log"),
	}
	if err := os.WriteFile(r.log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.serveWith("serve", "--addr", r.addr, "--memory", "--stream", fmt.Sprintf("events:%d", shards))
	cfg, err := awsclient.Load(t.Context(), awsclient.Options{Endpoint: r.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	r.client = kinesis.NewFromConfig(cfg)
	stream, err := r.client.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{
		StreamName: aws.String("events"),
	})
	if err != nil {
		t.Fatal(err)
	}
	created := *stream.StreamDescriptionSummary.StreamCreationTimestamp
	r.table, err = lease.New(lease.Config{
		DynamoDB: dynamodb.NewFromConfig(cfg), Table: "records",
		Stream: lease.Stream{Name: "events", Created: created},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *recordRun) producer(order producer.Order) *producer.Producer {
	p, err := producer.New(r.t.Context(), producer.Config{
		Stream: "events", Kinesis: r.client, Reader: r.client, Order: order,
		Linger: feedPause, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// add puts the next record of a key.
func (r *recordRun) add(p *producer.Producer, key string) {
	r.put[key]++
	err := p.PutFunc(r.t.Context(), nouns.Record{
		PartitionKey: key, Data: []byte(strconv.Itoa(r.put[key])),
	}, nil)
	if err != nil {
		r.t.Errorf("put: %v", err)
	}
}

// close waits until all is put. Producers report an outcome that the program does not look at.
func (r *recordRun) close(p *producer.Producer) {
	if err := p.Close(context.WithoutCancel(r.t.Context())); err != nil {
		r.t.Errorf("close a producer: %v", err)
	}
}

// feed puts records until more is closed: three of four in aggregates of many keys. It puts so many
// further ones at once as more says.
func (r *recordRun) feed(packed, plain *producer.Producer, more <-chan int) {
	keys := rand.New(rand.NewPCG(r.seed, 3)) //nolint:gosec // a test
	tick := time.NewTicker(feedPause)
	defer tick.Stop()
	for n, running := feedAtOnce, true; running; {
		for range n {
			if key := keys.IntN(80); key < 60 {
				r.add(packed, fmt.Sprintf("packed-%d", key))
			} else {
				r.add(plain, fmt.Sprintf("plain-%d", key))
			}
		}
		select {
		case <-tick.C:
			n = feedAtOnce
		case n, running = <-more:
		}
	}
	r.close(packed)
	r.close(plain)
}

func (r *recordRun) worker() *recordProcess {
	r.names++
	name := fmt.Sprintf("w%d", r.names)
	w := &recordProcess{
		r.start(recordWorker, r.endpoint, name, r.log, r.slow.String()), name,
	}
	r.live = append(r.live, w)
	return w
}

// look reads the lease rows, and then how long the log is.
func (r *recordRun) look() []lease.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows, skipped, err := r.table.List(context.WithoutCancel(r.t.Context()))
	if err != nil && len(r.looks) == 0 { // the first worker has not made the table
		return nil
	}
	info, fault := os.Stat(r.log)
	if err != nil || fault != nil || len(skipped) > 0 {
		r.t.Errorf("look: %v, %v, %v", err, fault, skipped)
		return nil
	}
	r.looks = append(r.looks, look{rows, info.Size()})
	return rows
}

// looking looks all the time, until the function that it returns is called.
func (r *recordRun) looking() (end func()) {
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for tick := time.NewTicker(25 * time.Millisecond); ; {
			select {
			case <-tick.C:
				r.look()
			case <-stop:
				tick.Stop()
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		group.Wait()
	})
}

// owned returns how many unended shards a worker holds.
func owned(rows []lease.Lease, name string) (n int) {
	for _, row := range rows {
		if row.Owner == name && !row.Ended() {
			n++
		}
	}
	return n
}

// replace kills a worker, and starts another one. The rows are read just before.
func (r *recordRun) replace(i int) {
	r.live[i].kill()
	r.look()
	r.live = append(r.live[:i], r.live[i+1:]...)
	r.worker()
}

func (r *recordRun) story() {
	more := make(chan int)
	var feeder sync.WaitGroup
	packed, plain := r.producer(producer.OrderShard), r.producer(producer.OrderPlain)
	feeder.Go(func() { r.feed(packed, plain, more) })
	endFeeding := sync.OnceFunc(func() {
		close(more)
		feeder.Wait()
	})
	defer endFeeding()
	end := r.looking()
	defer end()
	r.worker()
	r.worker()
	clitest.Eventually(r.t, "both workers hold a shard", func() bool {
		rows := r.look()
		return owned(rows, "w1") > 0 && owned(rows, "w2") > 0
	})
	for range recordKills {
		time.Sleep(r.between(100*time.Millisecond, 900*time.Millisecond)) // the kill's moment
		r.replace(r.random.IntN(2))
		reshardEvents(r.t, r.client, r.random)
	}
	frozen := r.freeze(more)
	time.Sleep(r.between(100*time.Millisecond, 800*time.Millisecond)) // the kills' moment
	for range 2 {
		r.replace(0)
	}
	endFeeding()
	r.finish(end, frozen)
}

// freeze stops a worker that has records in hand until others have all its shards, and lets it go
// on.
func (r *recordRun) freeze(more chan<- int) *recordProcess {
	more <- backlog
	time.Sleep(r.between(200*time.Millisecond, 400*time.Millisecond)) // the stop's moment
	var frozen *recordProcess
	clitest.Eventually(r.t, "a worker holds a shard", func() bool {
		frozen = r.live[r.random.IntN(2)]
		return owned(r.look(), frozen.name) > 0
	})
	_ = frozen.cmd.Process.Signal(syscall.SIGSTOP)
	defer func() { _ = frozen.cmd.Process.Signal(syscall.SIGCONT) }()
	clitest.Eventually(r.t, "other workers have the shards of the stopped one", func() bool {
		return owned(r.look(), frozen.name) == 0
	})
	time.Sleep(r.between(0, recordFailover)) // the others read on
	return frozen
}

// farAhead keeps one record unfinished, with more than 10,000 of its shard behind it, kills the
// worker, and lets the record be finished by the next one.
func (r *recordRun) farAhead() {
	p := r.producer(producer.OrderShard)
	for n := range maxAhead * 5 / 4 {
		r.add(p, fmt.Sprintf("packed-%d", n%40))
		if n == 100 { // without Flush it could come last
			r.add(p, gateKey)
			if err := p.Flush(r.t.Context()); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	r.close(p)
	end := r.looking()
	defer end()
	r.worker()
	ahead := func() int {
		c := r.checker(nil)
		c.check()
		return c.furthest
	}
	clitest.Eventually(r.t, "records far ahead are handled", func() bool {
		return ahead() >= maxAhead-1
	})
	time.Sleep(r.between(0, recordFailover)) // the kill's moment
	r.replace(0)
	time.Sleep(r.between(0, 2*recordFailover)) // the gate's moment
	if err := os.WriteFile(r.log+".open", nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.finish(end, nil)
	if got := ahead(); got != maxAhead-1 {
		r.t.Errorf("a record was begun %d behind the lowest unfinished one, want %d", got,
			maxAhead-1)
	}
}

// finish waits until each record is handled, and checks the log.
func (r *recordRun) finish(endLooking func(), frozen *recordProcess) {
	t := r.t
	var c *recordChecker
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		c = r.checker(frozen)
		c.check()
		if len(c.missing()) == 0 || time.Now().After(deadline) {
			break
		}
	}
	r.look()
	endLooking()
	for _, w := range r.live {
		w.kill()
	}
	c = r.checker(frozen)
	c.check()
	for _, key := range c.missing() {
		c.fault("of %s only %d records were handled, want %d", key, c.last[key], r.put[key])
	}
	t.Logf("%d records, %d handled again; %d looks at rows, %d inside an aggregate; "+
		"%d ahead at most; again after a lost lease: %v",
		c.handled, c.again, len(r.looks), c.inside, c.furthest, c.ghosts)
	if c.inside == 0 && r.slow > 0 {
		t.Error("no checkpoint was inside an aggregate: the test needs some")
	}
	for i, fault := range c.faults {
		if i == 20 {
			t.Errorf("and %d more", len(c.faults)-i)
			break
		}
		t.Error(fault)
	}
}

// checker returns a checker of the log as it is now.
func (r *recordRun) checker(frozen *recordProcess) *recordChecker {
	shards := r.readStream()
	r.mu.Lock()
	looks := r.looks
	r.mu.Unlock()
	file, err := os.Open(r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(file)
	if err != nil {
		r.t.Fatal(err)
	}
	c := newRecordChecker(r.put, shards, looks, string(text))
	if frozen != nil {
		c.lost[frozen.name] = true
	}
	return c
}
