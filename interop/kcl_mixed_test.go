package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// phase1 is the only protocol of a KCL 3 beside which runnel's workers run.
const phase1 = "CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X_PHASE1"

// mixed are the cases of TestMixedFleet. `make interop` runs the first two, `make interop-all` all.
var mixed = []struct {
	begins string   // the language of the first worker
	kcls   []string // the versions of the Java workers
}{
	{"Go", []string{"2.7.2"}},
	{"Java", []string{"3.5.1"}},
	{"Java", []string{"2.7.2"}},
	{"Go", []string{"3.5.1"}},
	{"Go", []string{"2.7.2", "3.5.1"}},
}

// TestMixedFleet runs workers of the Java KCL and `runnel tail --app` on one lease table. Either
// begins the table. Shards split and merge, a Java worker and a Go worker are killed, and one Go
// worker leaves. Every record must be delivered, those of a key in order; every worker gets a
// share; no lease changes its owner while nothing happens; and each repetition must have a cause.
func TestMixedFleet(t *testing.T) {
	cases, quiet := mixed, 2*time.Minute
	switch os.Getenv("RUNNEL_INTEROP") {
	case "":
		t.Skip("make interop installs the KCL and runs this")
	case "all":
	default:
		cases, quiet = mixed[:2], 20*time.Second
	}
	t.Parallel()
	p := serve(t)
	for _, c := range cases {
		name := fmt.Sprintf("%s, %s begins", strings.Join(c.kcls, " and "), c.begins)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleetWithin(t, p, "", polling, 2*fleetTime)
			f.app = "mixed-" + strings.Join(c.kcls, "-") + "-" + c.begins
			f.stream = aws.String(f.app)
			m := &mixedFleet{fleet: f, kcls: c.kcls, quiet: quiet}
			m.story(c.begins == "Go")
		})
	}
}

// mixedFleet is a stream with workers of both languages.
type mixedFleet struct {
	*fleet
	kcls    []string
	quiet   time.Duration // how long no lease may change its owner
	workers []*worker
	history *history
	shares  []string // how long each worker waited for its share
}

// runnel starts a Go worker, in a process of its own.
func (m *mixedFleet) runnel(name string) *worker {
	w := startWorker(m.t, m.goLine, name, m.p.environment("http", ""), m.p.binary, "tail",
		"--stream", *m.stream, "--app", m.app, "--worker", name, "--failover", "3s",
		"--from", "oldest", "--output", "json")
	m.workers = append(m.workers, w)
	return w
}

func (m *mixedFleet) goLine(w *worker, text string) {
	var record struct {
		Shard string          `json:"shardId"`
		Key   string          `json:"partitionKey"`
		Data  json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		m.t.Errorf("%s printed %q: %v", w.name, text, err)
		return
	}
	m.read.add(delivery{w.name, record.Shard, record.Key, string(record.Data), time.Now()})
}

// java starts a worker of each version, or of the first one.
func (m *mixedFleet) java(suffix string, versions ...string) []*worker {
	var started []*worker
	for _, version := range versions {
		var protocol []string
		if strings.HasPrefix(version, "3") {
			protocol = []string{phase1}
		}
		w := m.startKCL(version, "java-"+version+suffix, protocol...)
		started = append(started, w)
	}
	m.workers = append(m.workers, started...)
	return started
}

// shareTime bounds the time from a worker's start to its share, a JVM's own start included.
const shareTime = 90 * time.Second

// haveShares waits until each of these workers has a lease.
func (m *mixedFleet) haveShares(workers ...*worker) {
	m.t.Helper()
	waits := slices.Clone(workers)
	m.until("a share for each new worker", m.puttingUntil(func() (bool, string) {
		owners := m.history.owners()
		waits = slices.DeleteFunc(waits, func(w *worker) bool {
			took := time.Since(w.began)
			if owners[w.name] == 0 && took < shareTime {
				return false
			}
			if owners[w.name] == 0 {
				m.t.Errorf("%s has no share after %s: %v", w.name, shareTime, owners)
			}
			m.shares = append(m.shares, fmt.Sprintf("%s %.1f s", w.name, took.Seconds()))
			return true
		})
		return len(waits) == 0, fmt.Sprint(owners)
	}))
}

func (m *mixedFleet) story(goBegins bool) {
	_, err := m.client.CreateStream(m.ctx, &kinesis.CreateStreamInput{
		StreamName: m.stream, ShardCount: aws.Int32(int32(2 + 2*len(m.kcls))),
	})
	m.must(err)
	m.active()
	m.history = m.watchOwners()
	var ours *worker
	var javas []*worker
	if goBegins {
		ours = m.runnel("go-1")
	} else {
		javas = m.java("", m.kcls...)
	}
	m.readBatch("by the first worker")
	if goBegins {
		javas = m.java("", m.kcls...)
	} else {
		ours = m.runnel("go-1")
	}
	m.haveShares(append(javas, ours)...)
	m.quietTime()

	m.reshard()
	javas[0].kill()
	m.readWithin(20*time.Second, "after a Java worker's death")
	m.merge()
	m.readBatch("after the merge")
	again := m.java("-again", m.kcls[0])
	m.haveShares(again...)
	ours.kill()
	m.readBatch("after a Go worker's death")
	leaver := m.runnel("go-2")
	m.haveShares(leaver)
	leaver.stop()
	m.readBatch("after a Go worker left")
	m.until("the leases are as the shards", m.leasesFit)
	for _, fault := range m.read.disorder() {
		m.t.Error(fault)
	}
	m.causes()
	m.t.Logf("%d records; shares: %s", m.read.count(), strings.Join(m.shares, ", "))
}

// readBatch puts a record of each key, and waits until all have been read.
func (m *mixedFleet) readBatch(when string) {
	m.t.Helper()
	m.putBatch()
	m.until("every record has been read "+when, m.readAll)
}

// readWithin does the same, within a limit.
func (m *mixedFleet) readWithin(limit time.Duration, when string) {
	m.t.Helper()
	began := time.Now()
	m.readBatch(when)
	if took := time.Since(began); took > limit {
		m.t.Errorf("shards were silent for %s %s, want %s", took, when, limit)
	}
}

// quietTime waits until no lease has changed its owner for a while, and then wants none to change
// while only records flow.
func (m *mixedFleet) quietTime() {
	m.t.Helper()
	const settled = 10 * time.Second
	m.until("the fleet has settled", m.puttingUntil(func() (bool, string) {
		last := m.history.last()
		return time.Since(last.at) > settled, fmt.Sprint(last)
	}))
	began := time.Now()
	m.until("the quiet time is over", m.puttingUntil(func() (bool, string) {
		return time.Since(began) > m.quiet, ""
	}))
	if last := m.history.last(); last.at.After(began) {
		m.t.Errorf("in %s without an event: %v", m.quiet, last)
	}
}

func (m *mixedFleet) reshard() {
	shards := m.shards()
	_, err := m.client.SplitShard(m.ctx, &kinesis.SplitShardInput{
		StreamName: m.stream, ShardToSplit: shards[0].ShardId,
		NewStartingHashKey: aws.String("9" + (*shards[0].HashKeyRange.EndingHashKey)[2:]),
	})
	m.must(err)
	m.active()
	m.readBatch("after the split")
}

func (m *mixedFleet) merge() {
	shards := m.shards()
	_, err := m.client.MergeShards(m.ctx, &kinesis.MergeShardsInput{
		StreamName: m.stream, ShardToMerge: shards[2].ShardId,
		AdjacentShardToMerge: shards[3].ShardId,
	})
	m.must(err)
	m.active()
}
