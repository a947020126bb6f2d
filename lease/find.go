package lease

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Find returns the table of an application whose stream is not known, for tools that look at it and
// ask for leases. The stream is that of the table's rows; rows of Java workers alone name none. It
// returns ErrTableNotFound if there is no such table.
func Find(ctx context.Context, cfg Config) (*Table, error) {
	t := &Table{cfg: cfg.withDefaults()}
	rows, err := t.scan(ctx, true)
	if err != nil {
		return nil, err
	}
	for _, l := range rows.leases {
		if stream, ok := parseStream(l.Stream); ok {
			t.cfg.Stream = stream
			break
		}
	}
	return t, nil
}

// parseStream reads what Stream.String wrote.
func parseStream(text string) (Stream, bool) {
	name, ms, found := strings.Cut(text, "@")
	created, err := strconv.ParseInt(ms, 10, 64)
	if !found || err != nil || name == "" {
		return Stream{}, false
	}
	return Stream{Name: name, Created: time.UnixMilli(created)}, true
}

// Stream returns the stream of the leases; zero if it is not known.
func (t *Table) Stream() Stream { return t.cfg.Stream }
