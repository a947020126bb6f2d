package outbox

import (
	"context"
	"errors"
	"time"
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
	code := codeOf(err)
	if len(code) < 2 {
		return false
	}
	switch code[:2] {
	case "08", "25", "40", "53", "55", "57", "58", "XX": // the connection, a conflict, the server
		return false
	}
	return true
}

// divide makes a change whose deletions were refused. It commits everything else, and then the
// deletions in smaller and smaller parts. Units whose rows cannot be deleted stay in the journal: a
// later owner sends them again, and readers drop that. They are tried again from time to time.
func (c *committer) divide(ctx context.Context, next *change, cause error) error {
	rest := *next
	rest.deleted = nil
	if !rest.empty() {
		if err := c.write(ctx, &rest); err != nil {
			return err
		}
	}
	tries := divideTries
	if err := c.deleteParts(ctx, next.deleted, &tries); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.stuck) > 0 {
		c.stuckUntil = time.Now().Add(againAfter)
		c.log("rows that are in the stream cannot be deleted; the relay continues with the "+
			"others, and tries again", "units", len(c.stuck),
			"row", c.stuck[0].rows[0].id, "error", cause)
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
	case len(units) == 1 || *tries <= 0:
		c.mu.Lock()
		c.stuck = append(c.stuck, units...)
		c.mu.Unlock()
		*tries--
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
	for i := range c.stuck {
		rows += len(c.stuck[i].rows)
	}
	return rows
}
