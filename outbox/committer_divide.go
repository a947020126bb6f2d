package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runnel-stream/runnel/internal/sqldb"
)

const (
	// againAfter is the time after which a refused deletion is tried again.
	againAfter = 10 * time.Second
	// divideTries is the number of refusals after which the rest of a division is put off. If every
	// deletion is refused, dividing helps nothing.
	divideTries = 64
)

// refused reports whether the database has refused a change for its content: a foreign key to a
// row, or an error raised by a trigger. Another attempt at once would fail likewise.
func refused(err error) bool {
	if err == nil {
		return false
	}
	const constraint = 19 // SQLITE_CONSTRAINT; the higher bits say which
	var sqlite interface{ Code() int }
	if errors.As(err, &sqlite) {
		return sqlite.Code()&0xff == constraint
	}
	code := sqldb.State(err)
	if len(code) < 2 || errors.As(err, new(*pgconn.ConnectError)) {
		return false
	}
	switch code[:2] { // the connection, rights to connect, a conflict, the server
	case "08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX":
		return code == lockNotAvailable // of a row; see mineSQL
	}
	return true
}

// divisible reports whether a change has parts that a database may refuse for single rows.
func (c *change) divisible() bool { return len(c.deleted)+len(c.dead) > 0 }

// holdDead holds the keys of rows that cannot become dead letters.
func (c *change) holdDead(cause error) {
	for _, d := range c.dead {
		c.held = append(c.held, HeldKey{
			Key: d.key, IDs: []int64{d.id},
			Reason: fmt.Sprintf("%s; it cannot become a dead letter: %v", d.reason, cause),
		})
	}
	c.dead = nil
	c.held = mergeHeld(c.held)
}

// divide makes a change whose deletions were refused. It commits everything else, and then the
// deletions in smaller and smaller parts. Units whose rows cannot be deleted stay in the journal: a
// later owner sends them again, and readers drop that. They are tried again from time to time.
func (c *committer) divide(
	ctx context.Context, next *change, cause error, opened func(),
) error {
	rest := *next
	rest.deleted, rest.dead = nil, nil
	if !rest.empty() {
		if err := c.repeat(ctx, &rest); err != nil {
			return err
		}
	}
	opened()
	for _, d := range next.dead {
		part := &change{dead: []deadRow{d}}
		err := c.repeat(ctx, part)
		if refused(err) {
			part.holdDead(err)
			c.holdDead(d.key, d.id)
			err = c.repeat(ctx, part)
		}
		if err != nil {
			return err
		}
	}
	tries := divideTries
	if err := c.deleteParts(ctx, next.deleted, &tries); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if stuck := slices.Concat(c.stuck, c.later); len(stuck) > 0 {
		c.stuckUntil = time.Now().Add(againAfter)
		c.log("rows that are in the stream cannot be deleted; the relay continues with the "+
			"others, and tries again", "units", len(stuck),
			"row", stuck[0].rows[0].id, "error", cause)
	}
	return nil
}

// deleteParts commits deletions. Those that are refused become stuck.
func (c *committer) deleteParts(ctx context.Context, units []sentRows, tries *int) error {
	if len(units) == 0 {
		return nil
	}
	part := &change{deleted: units}
	err := c.repeat(ctx, part)
	switch {
	case !refused(err):
		return err
	case len(units) == 1:
		c.mu.Lock()
		c.stuck = append(c.stuck, units...)
		c.mu.Unlock()
		*tries--
		return nil
	case *tries <= 0:
		c.mu.Lock()
		c.later = append(c.later, units...)
		c.mu.Unlock()
		return nil
	}
	*tries--
	half := len(units) / 2
	if err := c.deleteParts(ctx, units[:half], tries); err != nil {
		return err
	}
	return c.deleteParts(ctx, units[half:], tries)
}

// stuckRows returns how many rows are in the stream and could not be deleted.
func (c *committer) stuckRows() (rows int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, unit := range slices.Concat(c.stuck, c.later) {
		rows += len(unit.rows)
	}
	return rows
}
