package cli_test

import (
	"bufio"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/runneltest"
)

// An autoscaler that is killed or asked to stop amid a change leaves shards from which the next one
// goes on, and one that is asked to stop ends with 0.
func TestAutoscaleStopped(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 6),
		runneltest.WithStreamDelay(50*time.Millisecond))
	run := func(until string, signal os.Signal) (text string, err error) {
		cmd := clitest.Command("shards", "autoscale", "--stream", "orders", "--yes",
			"--every", "100ms", "--window", "50ms", "--merge-after", "2", "--merge-cooldown", "0",
			"--min", "2", "--endpoint", server.Endpoint())
		reader, writer := io.Pipe()
		cmd.Stdout, cmd.Stderr = writer, writer
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- cmd.Wait()
			_ = writer.Close()
		}()
		var all strings.Builder
		for lines := bufio.NewScanner(io.TeeReader(reader, &all)); lines.Scan(); {
			if until != "" && strings.Contains(lines.Text(), until) {
				_ = cmd.Process.Signal(signal)
				until = ""
			}
		}
		return all.String(), <-ended
	}
	text, err := run(" begun: merge", syscall.SIGKILL)
	if err == nil {
		t.Errorf("killed: status 0\n%s", text)
	}
	text, err = run(" begun: merge", os.Interrupt)
	if err != nil || !strings.Contains(text, "stopped amid a change; the next run goes on") {
		t.Errorf("stopped amid a change: %v\n%s", err, text)
	}
	text, err = run("done: 2 open shards now", os.Interrupt)
	if err != nil || strings.Contains(text, "amid") {
		t.Errorf("stopped: %v\n%s", err, text)
	}
	shards, err := reshard.List(t.Context(), server.Kinesis(), "orders")
	if err != nil || len(shards) != 6+4 || len(reshard.OpenRanges(shards)) != 2 {
		t.Errorf("%d shards, %d open, want each merge once: %v", len(shards),
			len(reshard.OpenRanges(shards)), err)
	}
}
