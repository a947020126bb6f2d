package processes_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

// TestPutKills puts a file with --resume while put is killed with -9 again and again, and the
// server with it now and then. After each the same command is run again. Nothing may be missing,
// doubled or, if an order was asked for, out of order in the archive.
func TestPutKills(t *testing.T) {
	for seed := range killSeeds() {
		order := []string{"key", "shard", "none"}[seed%3]
		t.Run(fmt.Sprintf("seed=%d order=%s", seed+1, order), func(t *testing.T) {
			t.Parallel()
			run := newKillRun(t, madeEvents(t), seed+1)
			run.resumeAfterKills(order)
		})
	}
	t.Logf("soak: %d seeds", killSeeds())
}

const (
	madeCount = 20_000
	madeKeys  = 997
)

// madeEvents writes a file of events; one key of them is hot.
func madeEvents(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events.ndjson")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewWriter(file)
	for n := range madeCount {
		key := n % madeKeys
		if n%11 == 0 {
			key = 0
		}
		_, _ = fmt.Fprintf(lines, `{"id":"%d","repo":"repo-%d","padding":"%0200d"}`+"\n", n, key, n)
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func (r *killRun) resumeAfterKills(order string) {
	t := r.t
	// The limit keeps put busy for some seconds, and each kill finds calls in flight; some
	// answers are lost.
	serve := func() *process {
		return r.serve(fmt.Sprintf("seed=%d PutRecords:delay=30ms%%100 PutRecords:lose-answer%%3",
			r.seed), "--limits", "write-bytes=256KiB")
	}
	server := serve()
	archiver := r.archiver()
	state := filepath.Join(filepath.Dir(r.events), "state")
	put := func() *process {
		return r.start("put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo",
			"--order", order, "--resume", state, "--output", "json", r.events)
	}
	kills := 0
	for kill := range 6 {
		load := put()
		if kill == 0 {
			clitest.Eventually(t, "the first put has the state", func() bool {
				_, err := os.Stat(state)
				return err == nil
			})
			put().want(2) // two of them at once would double records
		}
		time.Sleep(r.between(100*time.Millisecond, 1200*time.Millisecond)) // the kill's moment
		if kill%3 == 2 {
			server.kill()
		}
		select {
		case <-load.done:
		default:
			kills++
		}
		load.kill()
		if kill%3 == 2 {
			server = serve()
		}
	}
	var last struct {
		Records, Skipped, Undelivered int64
	}
	put().wantJSON(&last)
	t.Logf("%d kills; the last put: %+v", kills, last)
	if kills < 3 || last.Undelivered > 0 {
		t.Error("put was done too early for the kills, or has not delivered")
	}
	put().wantJSON(&last)
	if last.Records+last.Skipped > 0 {
		t.Errorf("a put of what is complete: %+v", last)
	}
	archiver.stop()
	r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--once").want(0)
	r.wantEach(order)
	server.stop()
}

// wantEach verifies that each of the made events is in the archive once, in the order asked for.
func (r *killRun) wantEach(order string) {
	t := r.t
	var got verdict
	verify := []string{"verify", r.archive, "--source", r.events, "--id", "id", "--output", "json"}
	keys := int64(0)
	if order != "none" {
		verify, keys = append(verify, "--key", "repo"), madeKeys
	}
	r.start(verify...).wantJSON(&got)
	source := got.Source
	t.Logf("%d archived, %d unknown, %d doubled", got.Records, source.Unknown.Count,
		source.Doubled.Count)
	if !got.OK || source.Missing.Count+got.Twice.Count+source.OutOfOrder.Count+
		source.Doubled.Count+source.Unknown.Count > 0 || got.Records != madeCount {
		t.Errorf("%d missing, %d archived twice, %d out of order, %d doubled of %d; want none",
			source.Missing.Count, got.Twice.Count, source.OutOfOrder.Count, source.Doubled.Count,
			got.Records)
	}
	if source.Keys != keys {
		t.Errorf("%d keys, want %d", source.Keys, keys)
	}
}
