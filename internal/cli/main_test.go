package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/runnel-stream/runnel/internal/cli"
	"github.com/runnel-stream/runnel/internal/seam"
)

// runAsCommand makes the test binary be the runnel command, so that tests can kill it.
const runAsCommand = "RUNNEL_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if err := seam.FromEnv(); err != nil {
		panic(err)
	}
	if os.Getenv(runAsCommand) != "" {
		os.Exit(command())
	}
	testscript.Main(m, map[string]func(){"runnel": func() { os.Exit(command()) }})
}

func command() int {
	return cli.Main(context.Background(), os.Args[1:], cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
	})
}

// TestScripts runs testdata/script: the command line as its users meet it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": wantStatus},
		Setup: func(env *testscript.Env) error {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			env.Setenv("PORT", port) // free a moment ago
			return listener.Close()
		},
	})
}

// wantStatus is the script command "status N PROGRAM ARG…": it runs the program, which must end
// with the status N.
func wantStatus(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM ARG…")
	}
	status := 0
	exit := new(exec.ExitError)
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(status) != args[0] {
		ts.Fatalf("ended with %d, want %s", status, args[0])
	}
}

func healthy(endpoint string) error {
	response, err := http.Get(endpoint + "/health")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}
