package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/outbox"
)

// printSchema prints the statements of --migrate.
func (f *relayFlags) printSchema(con *console.Console, dialect outbox.Dialect) error {
	statements, err := f.table.Schema(dialect)
	if err == nil {
		var own []string
		own, err = f.table.RelaySchema(dialect)
		statements = append(statements, own...)
	}
	if err != nil {
		return exit.Usage("%w", err)
	}
	for _, text := range statements {
		if _, err := fmt.Fprintf(con.Out, "%s;\n\n", text); err != nil {
			return err
		}
	}
	if dialect == outbox.DialectSQLite {
		_, err = io.WriteString(con.Out, "pragma journal_mode = wal;\n")
		return err
	}
	trigger, err := f.table.Trigger()
	if err != nil {
		return exit.Usage("%w", err)
	}
	_, err = fmt.Fprintf(con.Out, "-- For programs that insert rows by statements of their own, "+
		"and lock no row of the entity before:\n-- %s;\n",
		strings.ReplaceAll(trigger, "\n", "\n-- "))
	return err
}

// makeTables makes the tables, and checks that a relay can use them.
func (f *relayFlags) makeTables(ctx context.Context, con *console.Console, db outbox.DB) error {
	err := outbox.Migrate(ctx, db, f.table)
	if unfit := outbox.Check(ctx, db, f.table); err == nil || errors.Is(unfit, outbox.ErrUnfit) {
		err = unfit
	}
	if err != nil {
		return relayError(err, f.stream)
	}
	con.Say("table %s is ready for runnel relay", f.table.Name)
	return nil
}

// relayStatus is the output of --check.
type relayStatus struct {
	Rows              int64   `json:"rows"`
	OldestSeconds     float64 `json:"oldestSeconds"`
	JournalUnits      int64   `json:"journalUnits"`
	HeldKeys          int64   `json:"heldKeys"`
	DeadLetters       int64   `json:"deadLetters"`
	Inversions        int64   `json:"inversions"`
	Owner             string  `json:"owner"`
	SeenSeconds       float64 `json:"seenSeconds"`
	Stream            string  `json:"stream"`
	TransactionSecond float64 `json:"oldestTransactionSeconds"`
}

// WriteText implements rows.Report.
func (s relayStatus) WriteText(w io.Writer) error {
	owner := "no relay has the lease"
	if s.Owner != "" {
		owner = fmt.Sprintf("relay %s has the lease, and was seen %s ago", s.Owner,
			ago(s.SeenSeconds))
	}
	if s.Stream != "" {
		owner += ", for stream " + s.Stream
	}
	_, err := fmt.Fprintf(w, "the table is sound\n%s rows; age of the oldest: %s; %s units in the "+
		"journal\n%s held keys, %s dead letters\n%s inversions: rows behind a later row of their "+
		"key\n%s\nage of the oldest transaction: %s\n",
		console.Thousands(s.Rows), ago(s.OldestSeconds), console.Thousands(s.JournalUnits),
		console.Thousands(s.HeldKeys), console.Thousands(s.DeadLetters),
		console.Thousands(s.Inversions), owner, ago(s.TransactionSecond))
	return err
}

// ago writes a duration in seconds.
func ago(seconds float64) string {
	if seconds < 0 {
		return "unknown to this role or table"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
}

// checkTables prints the verdict on the tables, and their numbers.
func (f *relayFlags) checkTables(ctx context.Context, con *console.Console, db outbox.DB) error {
	err := outbox.Check(ctx, db, f.table)
	if errors.Is(err, outbox.ErrUnfit) {
		return &exit.Error{Status: exit.StatusNo, Err: err}
	}
	var status outbox.Status
	if err == nil {
		status, err = outbox.ReadStatus(ctx, db, f.table)
	}
	if err != nil {
		return relayError(err, f.stream)
	}
	return rows.Print(con.Out, con.JSON(), relayStatus{
		Rows: status.Rows, OldestSeconds: status.Oldest.Seconds(), JournalUnits: status.Journal,
		HeldKeys: status.Held, DeadLetters: status.Dead, Inversions: status.Inversions,
		Owner: status.Owner, SeenSeconds: status.Seen.Seconds(), Stream: status.Stream,
		TransactionSecond: status.OldestTransaction.Seconds(),
	})
}

// heldKey is a line of --held.
type heldKey struct {
	Key    string    `json:"key"`
	Since  time.Time `json:"since"`
	IDs    []int64   `json:"ids"`
	Reason string    `json:"reason"`
}

// Cells implements rows.Row.
func (h heldKey) Cells() []string {
	return []string{
		h.Key, h.Since.UTC().Format(time.RFC3339), fmt.Sprint(len(h.IDs)), h.Reason,
	}
}

func (f *relayFlags) listHeld(ctx context.Context, con *console.Console, db outbox.DB) error {
	held, err := outbox.Held(ctx, db, f.table)
	if err != nil {
		return relayError(err, f.stream)
	}
	out := rows.New(con.Out, con.JSON())
	if len(held) > 0 {
		err = out.Head("KEY", "SINCE", "ROWS", "REASON")
	}
	for _, h := range held {
		err = errors.Join(err, out.Row(heldKey{h.Key, h.Since, h.IDs, h.Reason}))
	}
	return errors.Join(err, out.Flush())
}

// releaseKey lets a held key go on.
func (f *relayFlags) releaseKey(ctx context.Context, con *console.Console, db outbox.DB) error {
	released, err := outbox.Release(ctx, db, f.table, f.release, f.skip)
	switch {
	case err != nil:
		return relayError(err, f.stream)
	case !released:
		return &exit.Error{Status: exit.StatusNo, Err: fmt.Errorf("--release %q: the key is not "+
			"held; runnel relay --held lists those that are", f.release)}
	case f.skip:
		con.Say("key %q goes on, without the rows that cannot be put: they are in %s_dead",
			f.release, f.table.Name)
	default:
		con.Say("key %q goes on", f.release)
	}
	return nil
}

// waitingRow is a line of --dry-run.
type waitingRow struct {
	ID      int64  `json:"id"`
	Key     string `json:"partitionKey"`
	HashKey string `json:"explicitHashKey,omitempty"`
	Data    []byte `json:"dataBase64"`
}

// Cells implements rows.Row.
func (r waitingRow) Cells() []string {
	return []string{fmt.Sprint(r.ID), r.Key, r.HashKey, string(r.Data)}
}

// printRows prints the rows that a relay would put.
func (f *relayFlags) printRows(ctx context.Context, con *console.Console, db outbox.DB) error {
	out := rows.New(con.Out, con.JSON())
	err := outbox.Pending(ctx, db, f.table, func(r outbox.Waiting) error {
		return out.Row(waitingRow{r.ID, r.Key, r.Hash, r.Data})
	})
	return relayError(errors.Join(err, out.Flush()), f.stream)
}
