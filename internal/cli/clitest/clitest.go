package clitest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/runnel-stream/runnel/internal/cli"
)

// asCommand is the variable that makes the test binary run as the command.
const asCommand = "RUNNEL_TEST_AS_COMMAND"

// Main runs the tests, or the command if the process was started by Command or by a script.
func Main(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(command())
	}
	testscript.Main(m, map[string]func(){
		"runnel": func() { os.Exit(command()) },
		"sqlite3": func() {
			if err := SQL(os.Stdout, os.Args[1], os.Args[2]); err != nil {
				log.Fatal(err)
			}
		},
	})
}

func command() int {
	return cli.Main(context.Background(), os.Args[1:], cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
	})
}

// Command returns the command as a process, which the caller starts.
func Command(args ...string) *exec.Cmd {
	process := exec.Command(os.Args[0], args...) //nolint:noctx // tests kill it themselves
	process.Env = append(os.Environ(), AsCommand())
	return process
}

// AsCommand returns the variable that makes a process of the test binary run as the command, for
// processes that Command does not start.
func AsCommand() string { return asCommand + "=1" }

// Run runs the command in this process with empty standard input, and returns its exit status
// and its output.
func Run(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = cli.Main(ctx, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return status, out.String(), errs.String()
}

// Scripts runs the scripts of testdata/script. They have a free port in $PORT, the programs runnel
// and sqlite3 (see SQL), and the command "status N PROGRAM ARG…", which runs a program that must
// end with status N.
func Scripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": wantStatus,
		},
		Setup: func(env *testscript.Env) error {
			//nolint:noctx // a test's listener
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

// SQL carries statements out in a SQLite database, as the program sqlite3 does: a query's rows are
// printed, their values with | between them.
func SQL(out io.Writer, file, statements string) (err error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // a transaction is that of a connection
	if !strings.HasPrefix(statements, "select ") {
		_, err = db.Exec(statements) //nolint:noctx // a test's
		return err
	}
	rows, err := db.Query(statements) //nolint:noctx // a test's
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]sql.NullString, len(columns))
	places, texts := make([]any, len(columns)), make([]string, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return err
		}
		for i, v := range values {
			texts[i] = v.String
		}
		if _, err := fmt.Fprintln(out, strings.Join(texts, "|")); err != nil {
			return err
		}
	}
	return rows.Err()
}

func wantStatus(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM ARG…")
	}
	status := 0
	ended := new(exec.ExitError)
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &ended):
		status = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(status) != args[0] {
		ts.Fatalf("ended with %d, want %s", status, args[0])
	}
}

// Healthy returns an error unless the server at the endpoint answers that it is healthy.
func Healthy(endpoint string) error {
	response, err := http.Get(endpoint + "/health") //nolint:noctx // the test's own deadline
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}

// Eventually waits up to 30 seconds until is returns true, and fails the test otherwise.
func Eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so after 30 s: %s", what)
		}
	}
}

// Buffer is a buffer that a process writes while a test reads it.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
