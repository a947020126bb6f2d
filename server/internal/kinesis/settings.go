package kinesis

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// settings are the attributes that users set on a stream and read again, apart from its shards, its
// retention period and its consumers. The log holds them as a whole.
type settings struct {
	Mode      string            `json:"mode"`
	MaxRecord int64             `json:"maxRecord"` // KiB of data and partition key
	Tags      map[string]string `json:"tags,omitempty"`
	Policy    string            `json:"policy,omitempty"` // JSON; "": none
	// Encryption and KeyID are metadata: they encrypt nothing.
	Encryption string   `json:"encryption,omitempty"` // KMS; "": NONE
	KeyID      string   `json:"keyId,omitempty"`
	Encrypted  []span   `json:"encrypted,omitempty"`  // when records came to be encrypted ones
	Monitoring []string `json:"monitoring,omitempty"` // shard level metrics, sorted
	Warm       int64    `json:"warm,omitempty"`       // MiB/s that the stream is to be ready for
}

// clone returns a copy that can be changed.
func (s settings) clone() settings {
	s.Tags, s.Monitoring = maps.Clone(s.Tags), slices.Clone(s.Monitoring)
	s.Encrypted = slices.Clone(s.Encrypted)
	return s
}

// changeSettings lets decide change a copy of a stream's settings, and commits the copy unless
// decide returns an error. After errUnchanged it reports success and writes nothing. updating says
// whether the stream is UPDATING for the stream delay.
func (s *Service) changeSettings(
	ctx context.Context, world wire.World, t *target, updating bool,
	decide func(st *stream, next *settings, now int64) error,
) error {
	return s.changeStream(ctx, world, t, func(tx *wal.Tx, st *stream, now int64) error {
		next := st.settings.clone()
		if err := decide(st, &next, now); errors.Is(err, errUnchanged) {
			return nil
		} else if err != nil {
			return err
		}
		ch := &change{
			Op: changeSettings, At: now, World: &world, Name: st.Name, Settings: &next,
		}
		if updating {
			ch.Until = s.until(now)
		}
		return s.catalogue.commit(tx, ch)
	})
}

// mustBeActive returns an error unless the stream is ACTIVE.
func (st *stream) mustBeActive(now int64) error {
	if status := st.status(now); status != statusActive {
		return notActive(st, status)
	}
	return nil
}
