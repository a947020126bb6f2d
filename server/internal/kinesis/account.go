package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// viewAccount returns the settings of a world's account, once they are durable.
func (s *streams) viewAccount(
	ctx context.Context, world wire.World,
) (a catalogue.Account, now moment, err error) {
	c := s.catalogue
	var seen wal.LSN
	c.Read(func() {
		now = s.clock.read()
		a, seen = c.Account(world), c.LSN()
	})
	return a, now, s.log.Wait(ctx, seen)
}

// commitmentDescription is the model's MinimumThroughputBillingCommitmentOutput.
type commitmentDescription struct {
	Status               string
	StartedAt            *timestamp `json:",omitempty"`
	EndedAt              *timestamp `json:",omitempty"`
	EarliestAllowedEndAt *timestamp `json:",omitempty"`
}

// accountSettingsOutput is the answer of both account operations.
type accountSettingsOutput struct {
	MinimumThroughputBillingCommitment commitmentDescription
}

// describeAccount leaves out the end before it has come, and the earliest end once it is over
// (AWS's choice of times is a guess).
func describeAccount(a catalogue.Account, now moment) *accountSettingsOutput {
	c := a.Commitment
	d := commitmentDescription{Status: c.Status(now.Stamp), StartedAt: timeOrNone(c.Started)}
	if d.Status == catalogue.CommitmentDisabled {
		d.EndedAt = timeOrNone(c.End)
	} else {
		d.EarliestAllowedEndAt = timeOrNone(c.Earliest)
	}
	return &accountSettingsOutput{d}
}

func timeOrNone(ms int64) *timestamp {
	if ms == 0 {
		return nil
	}
	t := timestamp(ms)
	return &t
}
