package cli_test

import (
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/runneltest"
)

// TestInputInterrupted: a command that reads input ends at SIGINT, be it that lines never end or
// that none comes.
func TestInputInterrupted(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 2))
	stream := []string{"--endpoint", server.Endpoint(), "--stream", "orders"}
	const line, interrupted = `{"id":"17"}` + "\n", "interrupted before it was finished"
	for _, c := range []struct {
		name    string
		args    []string
		first   string
		endless bool // whether more comes
		says    string
	}{
		{"put", append([]string{"put", "--key", "id"}, stream...), line, true, "interrupted: "},
		{
			"put waits", append([]string{"put", "--key", "id"}, stream...), line, false,
			"interrupted: 1 records are in the stream",
		},
		{"keys hash", []string{"keys", "hash"}, line, true, interrupted},
		{"keys hash waits", []string{"keys", "hash"}, line, false, interrupted},
		{
			"keys skew",
			[]string{"keys", "skew", "--shards", "4", "--key", "id", "-"},
			line, true,
			interrupted,
		},
		{
			"shards apply waits", append([]string{"shards", "apply", "--plan", "-"}, stream...), "",
			false, interrupted,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := clitest.Command(c.args...)
			var stderr clitest.Buffer
			command.Stderr = &stderr
			in, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = command.Process.Kill() }()
			// Blank lines, more than a pipe holds: after them the command reads.
			if _, err := io.WriteString(in, c.first+strings.Repeat("\n", 1<<18)); err != nil {
				t.Fatal(err, stderr.String())
			}
			if c.endless {
				go func() {
					for err := error(nil); err == nil; {
						_, err = io.WriteString(in, c.first)
					}
				}()
			}
			_ = command.Process.Signal(syscall.SIGINT)
			late := time.AfterFunc(30*time.Second, func() { _ = command.Process.Kill() })
			defer late.Stop()
			_ = command.Wait()
			if command.ProcessState.ExitCode() != 130 || !strings.Contains(stderr.String(), c.says) {
				t.Errorf("it ended as %s and says %q", command.ProcessState, stderr.String())
			}
		})
	}
}
