package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/runneltest"
)

// The same command continues a plan that was interrupted again and again, by kill -9 or by a
// request to stop, and takes each step once.
func TestShardsKilled(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1),
		runneltest.WithStreamDelay(50*time.Millisecond))
	run := func(until string, signal os.Signal) (stderr string, err error) {
		cmd := clitest.Command("shards", "apply", "--stream", "orders", "--yes",
			"--plan", "-", "--endpoint", server.Endpoint())
		cmd.Stdin = strings.NewReader(planLines(t))
		out, err := cmd.StderrPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		lines := bufio.NewScanner(io.TeeReader(out, &text))
		for lines.Scan() {
			if until != "" && strings.Contains(lines.Text(), until) {
				_ = cmd.Process.Signal(signal)
				until = ""
			}
		}
		return text.String(), cmd.Wait()
	}
	stopped, text := 0, ""
	for try := 0; ; try++ {
		// Every other run gets a step done, so that this comes to an end.
		until, signal, status := " begun: ", os.Signal(syscall.SIGKILL), -1
		if try%2 == 1 {
			until, signal, status = " done: ", os.Interrupt, 130
		}
		var err error
		if text, err = run(until, signal); err == nil {
			break
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != status || try == 20 ||
			status == 130 && !strings.Contains(text, "; the same command, or a new plan, goes on") {
			t.Fatalf("run %d: %v\n%s", try, err, text)
		}
		stopped++
	}
	if stopped == 0 || !strings.Contains(text, "orders has 6 open shards, as planned") &&
		!strings.Contains(text, "nothing to do") {
		t.Errorf("stopped %d times, in the end:\n%s", stopped, text)
	}
	shards, err := reshard.List(t.Context(), server.Kinesis(), "orders")
	if err != nil || len(shards) != 11 || len(reshard.OpenRanges(shards)) != 6 {
		t.Errorf("%d shards, %d open, want each step taken once: %v", len(shards),
			len(reshard.OpenRanges(shards)), err)
	}
}

// planLines is the plan from one shard to six, by splits.
func planLines(t *testing.T) string {
	t.Helper()
	planned, err := plan.Uniform([]keyspace.Range{keyspace.All()}, 6, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"stream": "orders", "plan": planned})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
