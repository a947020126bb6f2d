package processes_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestServeSettles checks that a started server gives back the pages of the binary that only its
// start has used: most of its memory.
func TestServeSettles(t *testing.T) {
	t.Parallel()
	server, _ := serveUp(t, "--memory")
	deadline := time.Now().Add(20 * time.Second)
	for {
		most, now := memoryOf(t, server, "VmHWM"), memoryOf(t, server, "RssFile")
		if now < most/3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d KiB of the binary are in memory, of %d KiB at most", now, most)
		}
		time.Sleep(10 * time.Millisecond)
	}
	server.stop()
}

// memoryOf returns a figure of the process' status in KiB.
func memoryOf(t *testing.T, p *process, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	kib, err := strconv.Atoi(strings.Fields(rest + " none")[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
