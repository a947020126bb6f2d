package consumer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/retry"
)

// logLines is a log's text.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}

func (l *logLines) into(c *consumer.Config) {
	c.Logger = slog.New(slog.NewTextHandler(l, nil))
}

func limit(n int) func(*consumer.Config) {
	return func(c *consumer.Config) { c.MaxLeases = n }
}

// unclaimedShards returns the shards of the last report, and the number of reports.
func (f *fleet) unclaimedShards() (last []runnel.ShardID, reports int) {
	events := f.happened(consumer.EventUnclaimed)
	if len(events) == 0 {
		return nil, 0
	}
	return events[len(events)-1].Unclaimed, len(events)
}

// A worker with a limit leaves shards unread. It says so after three failover times, and again from
// time to time, until another worker reads them.
func TestUnclaimed(t *testing.T) {
	bubble(t, 3, func(f *fleet) {
		var log logLines
		const warning = "shards are not read"
		f.start("w1", limit(1), log.into)
		<-time.After(2 * failover)
		if _, reports := f.unclaimedShards(); reports > 0 || log.count(warning) > 0 {
			t.Errorf("%d reports after two failover times", reports)
		}
		<-time.After(2 * failover)
		shards, reports := f.unclaimedShards()
		if len(shards) != 2 || reports != 1 || log.count(warning) != 1 ||
			log.count("raise MaxLeases, or add workers") != 1 ||
			log.count(fmt.Sprintf("shards=\"%s %s\" count=2", shards[0], shards[1])) != 1 {
			t.Fatalf("%d reports of %q: %s", reports, shards, &log.text)
		}
		<-time.After(4 * time.Minute)
		if _, reports := f.unclaimedShards(); reports != 1 {
			t.Errorf("%d reports within five minutes", reports)
		}
		<-time.After(2 * time.Minute)
		if shards, reports := f.unclaimedShards(); reports != 2 || len(shards) != 2 {
			t.Errorf("%d reports after six minutes, of %q", reports, shards)
		}
		// A worker with a limit takes one, and then one without takes the other one.
		f.start("w2", limit(1), log.into)
		<-time.After(4 * failover)
		if shards, _ := f.unclaimedShards(); len(shards) != 1 {
			t.Errorf("with two workers %q are unclaimed", shards)
		}
		f.start("w3", log.into)
		<-time.After(4 * failover)
		if shards, _ := f.unclaimedShards(); len(shards) > 0 ||
			log.count("every shard has a worker again") == 0 {
			t.Errorf("with three workers %q are unclaimed", shards)
		}
	})
}

// The shards of a worker that died are reported if the others may not take them.
func TestUnclaimedAfterADeath(t *testing.T) {
	bubble(t, 2, func(f *fleet) {
		f.start("w1", limit(1))
		m := f.start("w2", limit(1))
		<-time.After(5 * failover)
		if _, reports := f.unclaimedShards(); reports > 0 {
			t.Errorf("%d reports while all is read", reports)
		}
		m.kill()
		<-m.err
		<-time.After(6 * failover)
		if shards, reports := f.unclaimedShards(); len(shards) != 1 || reports != 1 {
			t.Errorf("%d reports of %q", reports, shards)
		}
	})
}

// Fleets without limits, and workers with Once, which read shards one after the other, report
// nothing.
func TestNothingUnclaimed(t *testing.T) {
	bubble(t, 6, func(f *fleet) {
		m := f.start("w1")
		f.start("w2", limit(1))
		<-time.After(5 * failover)
		m.kill()
		<-m.err
		f.start("w3")
		<-time.After(8 * failover)
		if _, reports := f.unclaimedShards(); reports > 0 {
			t.Errorf("%d reports", reports)
		}
	})
	bubble(t, 2, func(f *fleet) {
		for range 100 {
			f.stream.put("x", f.stream.keysOf(0, 1)[0], f.stream.keysOf(1, 1)[0])
		}
		slow := func(c *consumer.Config) {
			c.MaxRecords = 10
			c.Handler = func(ctx context.Context, _ *consumer.Batch) error {
				return retry.Wait(ctx, failover)
			}
		}
		m := f.start("once", once, limit(1), slow)
		if err := <-m.err; err != nil {
			t.Fatal(err)
		}
		if _, reports := f.unclaimedShards(); reports > 0 {
			t.Errorf("%d reports of a worker that reads one shard after the other", reports)
		}
	})
}
