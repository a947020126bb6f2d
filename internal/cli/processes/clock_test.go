package processes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
)

// clockRun is a kill run with a short H. Its put, and no other of its processes, has a wrong clock.
type clockRun struct{ *killRun }

func newClockRun(t *testing.T, seed uint64) *clockRun {
	r := &clockRun{newKillRun(t, madeEvents(t), seed)}
	r.env = []string{seam.EnvH + "=2s"}
	return r
}

// put starts a put with a clock that is off by a duration.
func (r *clockRun) put(off string, more ...string) *process {
	r.t.Helper()
	if err := os.WriteFile(r.clockFile("put"), []byte(off), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return r.start(append([]string{
		"put", "--endpoint", r.endpoint, "--stream", "events", "--key", "repo", "--output", "json",
		r.events,
	}, more...)...)
}

// verify archives the stream and holds it against the input.
func (r *clockRun) verify(server *process) {
	r.t.Helper()
	r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--once").want(0)
	var got verdict
	r.start("verify", r.archive, "--source", r.events, "--id", "id", "--key", "repo",
		"--output", "json").wantJSON(&got)
	server.stop()
	source := got.Source
	if !got.OK || source.Missing.Count+got.Twice.Count+source.OutOfOrder.Count+
		source.Doubled.Count+source.Unknown.Count > 0 || got.Records != madeCount {
		r.t.Errorf("%d missing, %d archived twice, %d out of order, %d doubled of %d; want none",
			source.Missing.Count, got.Twice.Count, source.OutOfOrder.Count, source.Doubled.Count,
			got.Records)
	}
}

// TestPutWithAWrongClock puts with a clock that is an hour off. Answers are lost for longer than H,
// so that put has to look units up, by the stream's clock.
func TestPutWithAWrongClock(t *testing.T) {
	for _, off := range []string{"1h", "-1h"} {
		t.Run(off, func(t *testing.T) {
			t.Parallel()
			r := newClockRun(t, 1)
			server := r.serve("PutRecords:lose-answer@1-16")
			var got counts
			r.put(off).wantJSON(&got)
			if got.Records != madeCount || got.Unknown == 0 {
				t.Errorf("%+v", got)
			}
			r.verify(server)
		})
	}
}

// TestResumeAcrossClocks kills put --resume again and again amid lost answers, and corrects its
// clock between the runs, by hours.
func TestResumeAcrossClocks(t *testing.T) {
	t.Parallel() // beside TestTimeKills, which mostly waits
	for seed := range killSeeds() {
		t.Run(fmt.Sprintf("seed=%d", seed+1), func(t *testing.T) {
			t.Parallel()
			r := newClockRun(t, seed+1)
			server := r.serve(fmt.Sprintf("seed=%d PutRecords:delay=30ms%%100 "+
				"PutRecords:lose-answer%%40", r.seed), "--limits", "write-bytes=256KiB")
			state := filepath.Join(t.TempDir(), "state")
			kills := 0
			for _, off := range []string{"1h", "-1h", "20m", "0s"} {
				load := r.put(off, "--resume", state)
				select {
				case <-load.done:
				case <-time.After(r.between(500*time.Millisecond, 3*time.Second)): // the kill's moment
					kills++
				}
				load.kill()
				time.Sleep(r.between(0, 2*time.Second)) // below H, and near it
			}
			var last counts
			r.put("-20m", "--resume", state).wantJSON(&last)
			t.Logf("%d kills; the last put: %+v", kills, last)
			if kills < 3 {
				t.Error("put was done too early for the kills")
			}
			r.verify(server)
		})
	}
}
