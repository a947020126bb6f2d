package kinesis

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// changeSettings lets decide change a copy of a stream's settings, and commits the copy unless
// decide returns an error. After errUnchanged it reports success and writes nothing. updating says
// whether the stream is UPDATING for the stream delay.
func (s *streams) changeSettings(
	ctx context.Context, world wire.World, t *target, updating bool,
	decide func(st *catalogue.Stream, next *catalogue.Settings, now moment) error,
) error {
	return s.changeStream(ctx, world, t, func(tx *wal.Tx, st *catalogue.Stream, now moment) error {
		next := st.Settings.Clone()
		if err := decide(st, &next, now); errors.Is(err, errUnchanged) {
			return nil
		} else if err != nil {
			return err
		}
		ch := &catalogue.Change{
			Op: catalogue.ChangeSettings, At: now.Stamp, World: &world, Name: st.Name,
			Settings: &next,
		}
		if updating {
			ch.Until = s.until(now)
		}
		return s.catalogue.Commit(tx, ch)
	})
}

// mustBeActive returns an error unless the stream is ACTIVE.
func mustBeActive(st *catalogue.Stream, now moment) error {
	if status := st.Status(now); status != catalogue.StatusActive {
		return notActive(st, status)
	}
	return nil
}
