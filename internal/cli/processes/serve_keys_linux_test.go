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
		if err := server.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); !strings.Contains(server.stderr.String(), says); {
			if time.Since(start) > 20*time.Second {
				t.Fatalf("the server has not said %q: %s", says, server.stderr.String())
			}
			time.Sleep(time.Millisecond)
		}
	}
	want("AKIDONE", 3)
	want("AKIDTWO", 0)
}
