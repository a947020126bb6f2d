package cli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/runneltest"
)

// tail runs until SIGINT, which ends it with 0, or until the reader of its output is gone, which
// ends it with 0 and without a message.
func TestTailEnds(t *testing.T) {
	for name, end := range map[string]func(*exec.Cmd, *os.File){
		"interrupt":   func(c *exec.Cmd, _ *os.File) { _ = c.Process.Signal(syscall.SIGINT) },
		"broken pipe": func(_ *exec.Cmd, out *os.File) { _ = out.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			server := runneltest.NewServer(t, runneltest.WithStream("orders", 2))
			put := func(n int) {
				if _, err := server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
					StreamName: aws.String("orders"), Data: fmt.Appendf(nil, "record %d", n),
					PartitionKey: aws.String(fmt.Sprint(n)),
				}); err != nil {
					t.Fatal(err)
				}
			}
			put(0)
			command := clitest.Command("tail", "--endpoint", server.Endpoint(),
				"--stream", "orders", "--from", "oldest")
			out, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			var stderr clitest.Buffer
			command.Stdout, command.Stderr = stdout, &stderr
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			_ = stdout.Close()
			defer func() { _ = command.Process.Kill() }()
			line, err := bufio.NewReader(out).ReadString('\n')
			if strings.TrimSpace(line) != "record 0" {
				t.Fatalf("%q, %v: %s", line, err, stderr.String())
			}
			end(command, out)
			ended := make(chan error, 1)
			go func() { ended <- command.Wait() }()
			for n := 1; ; n++ {
				select {
				case err := <-ended:
					if err != nil || stderr.String() != "" {
						t.Errorf("%v: %s", err, stderr.String())
					}
					return
				case <-time.After(100 * time.Millisecond): // so that there is something to write
					if n > 300 {
						t.Fatal("tail does not end")
					}
					put(n)
				}
			}
		})
	}
}

// A full disk ends tail with 3, also as a worker of a fleet: no checkpoint passes what it could not
// print.
func TestTailOntoAFullDisk(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 2))
	for n := range 10 {
		if _, err := server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
			StreamName: aws.String("orders"), Data: []byte("x"), PartitionKey: aws.String(fmt.Sprint(n)),
		}); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"tail", "--endpoint", server.Endpoint(), "--stream", "orders", "--from", "oldest"}
	for _, fleet := range [][]string{nil, {"--app", "tails"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("there is no full device: ", err)
		}
		defer full.Close()
		command := clitest.Command(append(args, fleet...)...)
		var stderr clitest.Buffer
		command.Stdout, command.Stderr = full, &stderr
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(20*time.Second, func() { _ = command.Process.Kill() })
		_ = command.Wait()
		timer.Stop()
		said := stderr.String()
		if command.ProcessState.ExitCode() != 3 || !strings.Contains(said, "no space left on device") {
			t.Errorf("%q: %s: %s", fleet, command.ProcessState, said)
		}
	}
	status, printed, _ := clitest.Run(t.Context(), append(args, "--app", "tails", "--once")...)
	if n := strings.Count(printed, "x\n"); status != 0 || n != 10 {
		t.Errorf("status %d, and %d lines came again", status, n)
	}
}

// An empty value, as of a variable that is not set, is no value that was left out: tail would read
// all shards in the place of one.
func TestTailRefusesEmptyValues(t *testing.T) {
	for _, flag := range []string{"shard", "worker", "fanout"} {
		for _, fleet := range [][]string{nil, {"--app", "tails"}} {
			args := append([]string{"tail", "--local", "--stream", "orders", "--" + flag, ""}, fleet...)
			status, _, said := clitest.Run(t.Context(), args...)
			if status != 2 || !strings.Contains(said, "--"+flag+" is empty") {
				t.Errorf("%q: status %d, %s", args, status, said)
			}
		}
	}
}

// A signal ends tail although nobody reads its output.
func TestTailEndsWithoutAReader(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	if _, err := server.Kinesis().PutRecord(t.Context(), &kinesis.PutRecordInput{
		StreamName: aws.String("orders"), Data: make([]byte, 1<<19), PartitionKey: aws.String("key"),
	}); err != nil {
		t.Fatal(err)
	}
	command := clitest.Command("tail", "--endpoint", server.Endpoint(), "--stream", "orders", "--from",
		"oldest")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it writes more than the pipe takes
		t.Fatal(err)
	}
	_ = command.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(20*time.Second, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	if state, err := command.Process.Wait(); err != nil || !state.Success() {
		t.Errorf("%v, %v", state, err)
	}
}
