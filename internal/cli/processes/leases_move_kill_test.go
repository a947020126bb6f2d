package processes_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// A shard is moved to a worker that is paused. The command waits until that worker has taken it,
// and says so if it does not; the shard goes to another one.
func TestMoveToAPausedWorker(t *testing.T) {
	if underRace {
		t.Skip("the detector makes processes too slow for it")
	}
	t.Parallel()
	r := newFleetRun(t)
	r.worker("w1")
	w2 := r.worker("w2")
	r.awaitShares(2, 15*time.Second)
	time.Sleep(r.failover)
	r.mu.Lock()
	shard := ""
	for id, owner := range r.owners {
		if owner == "w1" {
			shard = id
		}
	}
	r.mu.Unlock()
	_ = w2.cmd.Process.Signal(syscall.SIGSTOP)
	move := r.start("leases", "move", shard, "--to", "w2", "--app", "printers", "--endpoint", r.endpoint,
		"--failover", r.failover.String(), "--wait", "20s")
	move.want(3)
	if text := move.stderr.String(); !strings.Contains(text, "was passed to w2, which has not taken it") {
		t.Errorf("it says %q", text)
	}
	_ = w2.cmd.Process.Signal(syscall.SIGCONT)
	r.awaitShares(2, 15*time.Second)
	r.finish()
}
