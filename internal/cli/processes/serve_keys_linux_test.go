package processes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// At SIGHUP the server reads its keys again: a new one is taken, an old one is refused, and a file
// without keys changes nothing.
func TestServeReadsItsKeysAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.ini")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keyOf := func(id string) string {
		return fmt.Sprintf("[%s]\naws_access_key_id = %s\naws_secret_access_key = secret\n", id, id)
	}
	write(keyOf("AKIDONE"))
	server, url := serveUp(t, "--memory", "--auth", "sigv4="+file)
	defer server.stop()
	t.Setenv("AWS_ENDPOINT_URL", url)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	want := func(id string, status int) {
		t.Helper()
		t.Setenv("AWS_ACCESS_KEY_ID", id)
		runnel(t, status, "streams", "list")
	}
	want("AKIDONE", 0)
	for text, says := range map[string]string{
		keyOf("AKIDTWO"): "the keys were read again", "nothing": "the keys stay as they were",
	} {
		write(text)
		server.hangUp(says)
	}
	want("AKIDONE", 3)
	want("AKIDTWO", 0)
}

// A server without keys goes on at SIGHUP, and says that it reads nothing again.
func TestServeGoesOnAtSIGHUP(t *testing.T) {
	server, url := serveUp(t, "--memory")
	server.hangUp("SIGHUP: there is nothing to read again without --auth sigv4=FILE")
	t.Setenv("AWS_ENDPOINT_URL", url)
	if got, _ := runnel(t, 0, "streams", "list"); got != "s\n" {
		t.Errorf("streams list: %q", got)
	}
	server.stop()
}

// A server that is still starting goes on at SIGHUP, and reads the keys again once it is up. Here
// its first reading of the keys waits for this test.
func TestServeStartsBesideSIGHUP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.ini")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	server := (&killRun{t: t}).start("serve", "--addr", "127.0.0.1:0", "--memory",
		"--auth", "sigv4="+file)
	give := func(ids string, then func()) {
		t.Helper()
		pipe, err := os.OpenFile(file, os.O_WRONLY, 0) // once the server reads it
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
		then()
		if _, err := pipe.WriteString(ids); err != nil {
			t.Fatal(err)
		}
	}
	const keys = "[a]\naws_access_key_id = AKIDA\naws_secret_access_key = secret\n"
	give(keys, func() { _ = server.cmd.Process.Signal(syscall.SIGHUP) })
	server.says(", data in memory") // it has read the first keys to their end
	give(keys, func() {})
	server.says("the keys were read again")
	server.stop()
}

// hangUp sends SIGHUP, and waits until the process has said a text.
func (p *process) hangUp(text string) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
	p.says(text)
}

// says waits until the process has said a text on standard error.
func (p *process) says(text string) {
	p.t.Helper()
	for start := time.Now(); !strings.Contains(p.stderr.String(), text); {
		select {
		case <-p.done:
			p.t.Fatalf("it ended, and has not said %q: %v %s", text, p.err, p.stderr.String())
		case <-time.After(time.Millisecond):
		}
		if time.Since(start) > 20*time.Second {
			p.t.Fatalf("it has not said %q: %s", text, p.stderr.String())
		}
	}
}
