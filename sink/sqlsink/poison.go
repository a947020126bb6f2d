package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// poison divides a batch, under savepoints of one transaction, down to the records that the handler
// cannot process.
type poison struct {
	of  *attempt
	tx  *timedTx
	gap *sink.Gap // before the next record that is handed over
}

// part hands a part of the batch to the handler, and halves it if that fails. depth names the
// savepoint.
func (p *poison) part(ctx context.Context, records []runnel.Record, depth int) error {
	savepoint := fmt.Sprintf("runnel_%d", depth)
	if err := p.exec(ctx, "savepoint "+savepoint); err != nil {
		return err
	}
	err := p.of.call(ctx, p.tx, records, p.gap)
	if err == nil {
		err = p.settle(ctx)
	}
	if err == nil {
		p.gap = nil
		return p.exec(ctx, "release savepoint "+savepoint)
	}
	if !p.of.blames(ctx, p.tx, err) {
		return fmt.Errorf("the handler: %w", err)
	}
	if failed := p.exec(ctx, "rollback to savepoint "+savepoint); failed != nil {
		return failed
	}
	if failed := p.exec(ctx, "release savepoint "+savepoint); failed != nil {
		return failed
	}
	if len(records) == 1 {
		return p.bury(ctx, &records[0], err)
	}
	half := len(records) / 2
	if err := p.part(ctx, records[:half], depth+1); err != nil {
		return err
	}
	return p.part(ctx, records[half:], depth+1)
}

// settle runs the deferred checks of the database now. The rollback defers them again: the next
// part's handler may insert a child before its parent, as in a batch that is not divided.
func (p *poison) settle(ctx context.Context) error {
	settle := p.of.of.sink.cfg.Dialect.Settle
	if settle == "" {
		return nil
	}
	for _, text := range []string{
		"savepoint runnel_settle", settle, "rollback to savepoint runnel_settle",
		"release savepoint runnel_settle",
	} {
		if _, err := p.tx.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (p *poison) exec(ctx context.Context, text string) error {
	if _, err := p.tx.Exec(ctx, text); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// mostError is the size of an error's text in runnel_dead, in bytes.
const mostError = 4 << 10

// bury moves a record to runnel_dead.
func (p *poison) bury(ctx context.Context, record *runnel.Record, cause error) error {
	dialect := &p.of.of.sink.cfg.Dialect
	if dialect.Bury == "" {
		return errors.Join(errors.New("the dialect has no statement for dead letters"), cause)
	}
	reason := cause.Error()
	_, err := p.tx.Exec(ctx, dialect.Bury, p.of.of.place.args(
		record.Position.SortText(), text(record.PartitionKey),
		append([]byte{}, record.Data...), text(reason[:min(len(reason), mostError)]),
		record.ArrivalTime.UTC().Format(time.RFC3339Nano))...)
	if err != nil {
		return fmt.Errorf("insert the dead letter: %w", err)
	}
	p.of.dead = append(p.of.dead, Dead{Record: *record, Err: cause})
	return nil
}

// text returns a text that databases take: PostgreSQL's have no NUL.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
