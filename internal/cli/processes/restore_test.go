package processes_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// TestRestoreKills restores an archive with splits into another stream. The restore is killed with
// -9 again and again, and once the stream's server; answers are lost. The copy's archive must have
// each record once, in order.
func TestRestoreKills(t *testing.T) {
	for seed := range killSeeds() {
		t.Run(fmt.Sprintf("seed=%d", seed+1), func(t *testing.T) {
			t.Parallel()
			r := newKillRun(t, madeEvents(t), seed+1)
			r.archived()
			r.restoreAfterKills()
			r.wantEach("key")
		})
	}
	t.Logf("soak: %d seeds", killSeeds())
}

// archived puts the events and archives them, while shards split.
func (r *killRun) archived() {
	server := r.serve("")
	archiver := r.archiver()
	put := r.start("put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo", r.events)
	for _, shard := range []int{0, 3} {
		r.start("shards", "split", fmt.Sprintf("shardId-%012d", shard), "--stream", "events",
			"--endpoint", r.endpoint, "--yes").want(0)
	}
	put.want(0)
	archiver.stop()
	r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--once").want(0)
	server.stop()
}

// restoreAfterKills restores the archive into a new stream of eight shards, on a server of its own,
// and archives that stream in the archive's place, under another name.
func (r *killRun) restoreAfterKills() {
	r.addr, r.data = "127.0.0.1:0", filepath.Join(r.t.TempDir(), "copy")
	serve := func() *process {
		return r.serveWith("serve", "--addr", r.addr, "--data", r.data, "--stream", "copy:8",
			"--limits", "write-bytes=128KiB", "--chaos", fmt.Sprintf(
				"seed=%d PutRecords:delay=30ms%%100 PutRecords:lose-answer%%3", r.seed))
	}
	server := serve()
	state := filepath.Join(r.t.TempDir(), "state")
	restore := func() *process {
		return r.start("restore", r.archive, "--endpoint", r.endpoint, "--stream", "copy",
			"--resume", state, "--output", "json")
	}
	kills := 0
	for kill := range 5 {
		load := restore()
		time.Sleep(r.between(100*time.Millisecond, 1000*time.Millisecond)) // the kill's moment
		if kill == 2 {
			server.kill()
		}
		select {
		case <-load.done:
		default:
			kills++
		}
		load.kill()
		if kill == 2 {
			server = serve()
		}
	}
	var last struct{ Records, Skipped, Undelivered int64 }
	restore().wantJSON(&last)
	r.t.Logf("%d kills; the last restore: %+v", kills, last)
	if kills < 2 || last.Undelivered > 0 {
		r.t.Error("the restore was done too early for the kills, or has not delivered")
	}
	restore().wantJSON(&last)
	if last.Records+last.Skipped > 0 {
		r.t.Errorf("a restore of what is complete: %+v", last)
	}
	r.archive += "-copy"
	r.start("archive", "--endpoint", r.endpoint, "--stream", "copy", "--to", r.archive,
		"--failover", killFailover, "--once").want(0)
	server.stop()
}
