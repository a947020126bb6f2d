package pgtest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Pooler starts a PgBouncer in transaction mode before a server, and returns the URL through it.
// Each transaction may run on another of its two connections, which never have a prepared
// statement. Without a pgbouncer in PATH the test is skipped.
func Pooler(t testing.TB, target string) (through string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("there is no pgbouncer: make interop installs it")
	}
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at, err := url.Parse(target)
	fatal(err)
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	fatal(err)
	listen := free.Addr().(*net.TCPAddr)
	_ = free.Close() // the pooler listens there next
	dir, err := os.MkdirTemp("", "pool")
	fatal(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	fatal(os.Chmod(dir, 0o755)) // for the other user that it runs as
	conf := filepath.Join(dir, "pgbouncer.ini")
	fatal(os.WriteFile(conf, fmt.Appendf(nil, "[databases]\n"+
		"* = host=127.0.0.1 port=%s user=postgres\n"+
		"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"+
		"auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n",
		at.Port(), listen.Port), 0o644))
	cmd := exec.CommandContext(t.Context(), program, conf)
	cmd.SysProcAttr = Unprivileged(t)
	fatal(cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the error is the signal
	})
	at.Host = listen.String()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.Host)
		if err == nil {
			_ = conn.Close()
			return at.String()
		}
		if time.Now().After(deadline) {
			t.Fatal("pgbouncer does not listen:", err)
		}
	}
}
