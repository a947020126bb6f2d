package cli

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/sqldb"
)

// busyTimeout is the time for which a command waits for other users of a database of SQLite.
const busyTimeout = 10 * time.Second

// openSQLite opens the database of --db sqlite:FILE. A file that is not there is made only with
// create; maker is the command that makes it.
func openSQLite(ctx context.Context, db, maker string, create bool) (*sql.DB, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(db, "sqlite:"), "//")
	if name == "" {
		return nil, exit.Usage("--db sqlite: names no file: want sqlite:FILE")
	}
	if name == ":memory:" {
		return nil, exit.Usage("--db sqlite::memory: ends with the command: want sqlite:FILE")
	}
	mode := "rw"
	if create {
		mode = "rwc"
	} else if _, err := os.Stat(name); err != nil {
		return nil, exit.Usage("--db: %w; %s makes the database", err, maker)
	}
	at := url.URL{Scheme: "file", Opaque: (&url.URL{Path: name}).EscapedPath()}
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "synchronous(full)",
	}
	if create { // otherwise the mode is the table's owner's choice
		pragmas = append(pragmas, "journal_mode(wal)")
	}
	query := url.Values{"mode": {mode}, "_pragma": pragmas}
	at.RawQuery = query.Encode()
	opened, err := sql.Open("sqlite", at.String())
	if err == nil {
		err = pingSQLite(ctx, opened)
	}
	if err != nil {
		return nil, exit.Outside(fmt.Errorf("--db: open %s: %w", name, err))
	}
	return opened, nil
}

// pingSQLite opens a connection. SQLite's busy_timeout does not hold for the change to the mode
// wal: of several programs that open a new database at once, one gets SQLITE_BUSY.
func pingSQLite(ctx context.Context, opened *sql.DB) error {
	began := time.Now()
	for {
		err := opened.PingContext(ctx)
		if !sqldb.BusySQLite(err) || time.Since(began) > busyTimeout {
			return err
		}
		if err := retry.Wait(ctx, busyTimeout/500); err != nil {
			return err
		}
	}
}
