package processes_test

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	nouns "github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/producer"
)

// lost returns the lines in which the workers report lost leases.
func (r *fleetRun) lost() []string {
	var lines []string
	for _, w := range r.workers {
		for line := range strings.Lines(w.stderr.String()) {
			if strings.Contains(line, "lease-lost") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// byLetter is true if the promises are measured with their own numbers.
func byLetter() bool { return os.Getenv("RUNNEL_FLEET_FAILOVER") != "" }

// One in twenty writes to the lease table has no answer for longer than a lease lasts. No lease is
// lost.
func fleetHangs(t *testing.T) {
	r := newFleetRunOf(t, fleetShards, func(ctx context.Context, r *fleetRun) int {
		return r.feed(ctx)
	}, "--chaos", "seed=1 UpdateItem:hang=20s%5")
	r.worker("w1")
	r.worker("w2")
	r.awaitShares(2, 15*time.Second)
	time.Sleep(4 * r.failover)
	if again := r.finish(); again != 0 {
		t.Errorf("%d records were printed again", again)
	}
	if lost := r.lost(); len(lost) > 0 {
		t.Errorf("leases were lost:\n%s", strings.Join(lost, ""))
	}
}

// units returns a feeder of perSecond records of size bytes from a number of producers.
func units(producers, perSecond, size int) feeder {
	return func(ctx context.Context, r *fleetRun) int {
		var all []*producer.Producer
		for range producers {
			p, err := producer.New(r.t.Context(), producer.Config{
				Stream: "events", Kinesis: r.client(), Reader: r.client(),
				Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				r.t.Error(err)
				return 0
			}
			all = append(all, p)
		}
		n, began := 0, time.Now()
		var failed atomic.Int64
		for ctx.Err() == nil {
			for n < int(time.Since(began).Seconds()*float64(perSecond)) {
				err := all[n%producers].PutFunc(context.WithoutCancel(ctx), nouns.Record{
					Data: numbered(n, size), PartitionKey: strconv.Itoa(n % 997),
				}, func(result producer.Result) {
					if result.Err != nil {
						failed.Add(1)
					}
				})
				if err != nil {
					failed.Add(1)
				}
				n++
			}
			time.Sleep(5 * time.Millisecond)
		}
		for _, p := range all {
			if err := p.Close(context.WithoutCancel(ctx)); err != nil {
				r.t.Errorf("close a producer: %v", err)
			}
		}
		if failed.Load() > 0 {
			r.t.Errorf("%d records were not put", failed.Load())
		}
		return n
	}
}

// One in twenty puts is done without an answer, so the stream has doubles, and the workers are
// restarted all the time. Each record is printed once.
func fleetOnce(t *testing.T) {
	r := newFleetRunOf(t, 4, units(4, 1000, 16), "--chaos", "seed=1 PutRecords:lose-answer%5")
	workers := []*process{r.worker("w1"), r.worker("w2")}
	restarts, pause := 4, 2*time.Second
	if byLetter() {
		restarts, pause = 10, 10*time.Second
	}
	for n := range restarts {
		time.Sleep(pause)
		workers[n%2].stop()
		workers[n%2] = r.worker("w" + strconv.Itoa(n%2+1))
	}
	if again := r.finish(); again != 0 {
		t.Errorf("%d records were printed again", again)
	}
}

// One shard has nine tenths of the bytes that AWS allows, in units of 100 producers. Its worker is
// replaced politely, and then the next one is killed while another runs.
func fleetBusyShard(t *testing.T) {
	r := newFleetRunOf(t, 1, units(100, 100, 9<<10), "--limits", "aws")
	pause := 5 * time.Second
	if byLetter() {
		pause = 2 * time.Minute
	}
	first := r.worker("w1")
	time.Sleep(pause)
	first.stop()
	r.worker("w2")
	r.firstLine(4*time.Second, "after a polite restart")
	time.Sleep(pause)
	r.mu.Lock()
	again := r.again
	r.mu.Unlock()
	if again > 0 {
		t.Errorf("%d records were printed again", again)
	}
	r.worker("w3")
	time.Sleep(r.failover)
	r.mu.Lock()
	owner := r.owners["shardId-000000000000"]
	r.mu.Unlock()
	for _, w := range r.workers[1:] {
		if strings.Contains(strings.Join(w.cmd.Args, " "), "--worker "+owner) {
			w.kill()
		}
	}
	r.firstLine(r.failover*3/2+30*time.Second, "after SIGKILL")
	again = r.finish()
	// A checkpoint is F/2 old at most, and one beside it may fail: a call to the table gets F/8.
	if most := int((r.failover + r.slack).Seconds() * 100); again > most {
		t.Errorf("%d records were printed again, want those since the last checkpoint: %d at most",
			again, most)
	}
}

// firstLine waits for the next line.
func (r *fleetRun) firstLine(limit time.Duration, when string) {
	r.t.Helper()
	began := time.Now()
	limit += r.slack
	for {
		r.mu.Lock()
		last := r.shards["shardId-000000000000"].last
		r.mu.Unlock()
		if last.After(began) {
			r.t.Logf("%s: the first line after %s", when, last.Sub(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > limit {
			r.t.Fatalf("%s: no line within %s", when, limit)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
