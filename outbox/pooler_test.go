package outbox_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/outbox"
)

// newPooler starts a PgBouncer in transaction mode before a server: each transaction may run on
// another of its two connections, which never have a prepared statement.
func newPooler(t *testing.T, target string) (through string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("there is no pgbouncer: make interop installs it")
	}
	at, err := url.Parse(target)
	must(t, err)
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	listen := free.Addr().(*net.TCPAddr)
	_ = free.Close() // the pooler listens there next
	dir, err := os.MkdirTemp("", "pool")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	conf := filepath.Join(dir, "pgbouncer.ini")
	must(t, os.WriteFile(conf, fmt.Appendf(nil, "[databases]\npostgres = host=127.0.0.1 port=%s user=postgres\n"+
		"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"+
		"auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n", at.Port(), listen.Port),
		0o644))
	cmd := exec.CommandContext(t.Context(), program, conf)
	cmd.SysProcAttr = pgtest.Unprivileged(t)
	must(t, cmd.Start())
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

// Relays and writers work through a pooler in transaction mode.
func TestPooler(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	through := newPooler(t, b.url)
	b.db = outbox.Postgres(b.pool(through))
	b.must(outbox.Migrate(t.Context(), b.db, b.table))
	first, stop := b.start()
	second, _ := b.start()
	pool := b.pool(through)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 100 {
				_, err := pool.Exec(t.Context(), "select "+b.table.Function()+"($1, $2)",
					pgx.QueryExecModeExec, fmt.Sprint("key", w), fmt.Sprint(n+1))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	b.until("some rows are sent", func() bool {
		return first.Stats().Sent+second.Stats().Sent > 20
	})
	b.must(stop())
	writers.Wait()
	b.until("all is sent", func() bool { return first.Stats().Sent+second.Stats().Sent == 400 })
	b.wantNumbered(4, 100)
	b.wantEmpty()
}
