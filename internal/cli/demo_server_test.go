package cli_test

import (
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

var demoAt = regexp.MustCompile(`server +(http://\S+)`)

// The demo's server does not outlive the demo, however that ends.
func TestDemoLeavesNothingBehind(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{
		"interrupt": syscall.SIGINT, "kill": syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			var stderr lockedBuffer
			command := exec.Command(os.Args[0], "demo", "--records", "3000000", "--dir", t.TempDir())
			command.Env = append(os.Environ(), runAsCommand+"=1")
			command.Stderr = &stderr
			command.WaitDelay = 20 * time.Second // the server has standard error too
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = command.Process.Kill() }()
			endpoint := ""
			eventually(t, "the demo's server is up", func() bool {
				if match := demoAt.FindStringSubmatch(stderr.String()); match != nil {
					endpoint = match[1]
				}
				return endpoint != "" && healthy(endpoint) == nil
			})
			_ = command.Process.Signal(signal)
			_ = command.Wait()
			if status := command.ProcessState.ExitCode(); signal == syscall.SIGINT && status != 130 {
				t.Errorf("the demo ended with %d: %s", status, stderr.String())
			}
			eventually(t, "the server has ended", func() bool { return healthy(endpoint) != nil })
		})
	}
}

// eventually waits for what must come.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after 30 s: %s", what)
		}
	}
}
