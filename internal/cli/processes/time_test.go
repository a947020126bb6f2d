//go:build linux

package processes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/runnel-stream/runnel/internal/seam"
)

// timeH is H in the processes of TestTimeKills, and timePause a pause beyond every time-out that
// hangs on it: no call that was sent before may be stored after it.
const (
	timeH     = 6 * time.Second
	timePause = timeH + timeH/2
)

// TestTimeKills puts a file with --resume while time misbehaves: the server, put and one of two
// archivers are stopped (SIGSTOP) for longer than H, the log has no room for longer than 2H, put is
// killed, and the clocks of all of them step by up to an hour in both directions, between an
// attempt and its retry, and between two runs of put. Nothing may be missing, doubled or out of
// order in the archive.
func TestTimeKills(t *testing.T) {
	t.Parallel() // a run mostly waits
	var seeds errgroup.Group
	seeds.SetLimit(3)
	for seed := range killSeeds() {
		order := []string{"key", "shard", "none"}[seed%3]
		seeds.Go(func() error {
			t.Run(fmt.Sprintf("seed=%d order=%s", seed+1, order), func(t *testing.T) {
				run := newKillRun(t, madeEvents(t), seed+1)
				run.env = []string{seam.EnvH + "=" + timeH.String()}
				run.timeMisbehaves(order)
			})
			return nil
		})
	}
	_ = seeds.Wait() // there is no error
	t.Logf("soak: %d seeds", killSeeds())
}

// clockFile names the file that shifts the clock of all processes of a command.
func (r *killRun) clockFile(command string) string {
	return filepath.Join(filepath.Dir(r.data), "clock-"+command)
}

// step moves the clock of all processes of a command to a random time within an hour of now.
func (r *killRun) step(command string) {
	by := time.Duration(r.random.Int64N(int64(2*time.Hour))) - time.Hour
	next := r.clockFile(command) + ".next"
	if err := os.WriteFile(next, []byte(by.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(next, r.clockFile(command)); err != nil {
		r.t.Fatal(err)
	}
}

// pause stops a process for that long.
func (p *process) pause(length time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(length) // the pause
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// fillDisk lets no file of the process grow, nor be written beyond its first block, for that long.
func (p *process) fillDisk(length time.Duration) {
	p.t.Helper()
	limit := func(bytes uint64) {
		limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
		if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
			p.t.Error(err)
		}
	}
	limit(4096)
	time.Sleep(length) // the disk is full
	limit(unix.RLIM_INFINITY)
}

func (r *killRun) timeMisbehaves(order string) {
	t := r.t
	for _, command := range []string{"serve", "put", "archive"} {
		r.step(command)
	}
	serve := func(more string) *process {
		return r.serve(fmt.Sprintf("seed=%d PutRecords:delay=30ms%%100 PutRecords:lose-answer%%5 %s",
			r.seed, more), "--limits", "write-bytes=40KiB")
	}
	server := serve("")
	first, second := r.archiver(), r.archiver()
	state := filepath.Join(filepath.Dir(r.events), "state")
	put := func() *process {
		return r.start("put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo",
			"--order", order, "--resume", state, "--output", "json", r.events)
	}
	load := put()
	settle := func() { time.Sleep(r.between(500*time.Millisecond, 1500*time.Millisecond)) }
	again := func() { // another run of put, with another clock
		load.kill()
		r.step("put")
		load = put()
	}
	refused := func() { // the caller, for a moment: put ends, and the next run goes on
		server.kill()
		server = serve("PutRecords:refuse=AccessDeniedException@1")
		load.want(3)
		load = put()
	}
	for _, misfortune := range []func(){
		func() { server.pause(timePause) },
		func() { server.fillDisk(2*timeH + timeH/2) },
		func() { load.pause(timePause) },
		func() { first.pause(2 * timePause / 3) },
		func() { r.step("serve"); settle(); r.step("put"); r.step("archive") },
		func() { go server.pause(timePause / 2); settle(); again() },
		func() { server.kill(); r.step("serve"); server = serve("") },
		refused,
		again,
	} {
		settle()
		misfortune()
	}
	select {
	case <-load.done:
		t.Error("put was done before time had misbehaved")
	default:
	}
	r.finishAfterTime(put, load, server, first, second, order)
}

func (r *killRun) finishAfterTime(
	put func() *process, load, server, first, second *process, order string,
) {
	t := r.t
	var last struct{ Records, Skipped, Undelivered, Unknown int64 }
	load.wantJSON(&last)
	t.Logf("the last put: %+v", last)
	put().wantJSON(&last)
	if last.Records+last.Skipped > 0 {
		t.Errorf("a put of what is complete: %+v", last)
	}
	first.stop()
	second.stop()
	r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--once").want(0)
	r.wantEach(order)
	server.stop()
}
