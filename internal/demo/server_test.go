package demo_test

import (
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
)

var demoAt = regexp.MustCompile(`server +(http://\S+)`)

// The demo's server does not outlive the demo, however that ends.
func TestDemoLeavesNothingBehind(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{
		"interrupt": syscall.SIGINT, "kill": syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			var stderr clitest.Buffer
			command := clitest.Command("demo", "--records", "3000000", "--dir", t.TempDir())
			command.Stderr = &stderr
			command.WaitDelay = 20 * time.Second // the server has standard error too
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = command.Process.Kill() }()
			endpoint := ""
			clitest.Eventually(t, "the demo's server is up", func() bool {
				if match := demoAt.FindStringSubmatch(stderr.String()); match != nil {
					endpoint = match[1]
				}
				return endpoint != "" && clitest.Healthy(endpoint) == nil
			})
			_ = command.Process.Signal(signal)
			_ = command.Wait()
			if status := command.ProcessState.ExitCode(); signal == syscall.SIGINT && status != 130 {
				t.Errorf("the demo ended with %d: %s", status, stderr.String())
			}
			clitest.Eventually(t, "the server has ended", func() bool { return clitest.Healthy(endpoint) != nil })
		})
	}
}
