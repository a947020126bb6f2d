package cli

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/runnel-stream/runnel/internal/exit"
)

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
	query := url.Values{"mode": {mode}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)",
	}}
	if !create { // the mode is the table's owner's choice
		query["_pragma"] = []string{"busy_timeout(10000)", "synchronous(full)"}
	}
	at.RawQuery = query.Encode()
	opened, err := sql.Open("sqlite", at.String())
	if err == nil {
		err = opened.PingContext(ctx)
	}
	if err != nil {
		return nil, exit.Outside(fmt.Errorf("--db: open %s: %w", name, err))
	}
	return opened, nil
}
