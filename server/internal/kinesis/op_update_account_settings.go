package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type updateAccountInput struct {
	MinimumThroughputBillingCommitment *commitmentInput
}

type commitmentInput struct{ Status *string }

func (*updateAccountInput) validate(*violations) {}

// updateAccountSettings enables or disables the commitment of the caller's account and region. A
// request for the present setting is no error (a guess).
func (s *Service) updateAccountSettings(
	ctx context.Context, world wire.World, in *updateAccountInput,
) (any, error) {
	var out *accountSettingsOutput
	err := s.streams.change(ctx, 512, func(tx *wal.Tx, now moment) error {
		before := s.streams.catalogue.Account(world)
		next := before
		if *in.MinimumThroughputBillingCommitment.Status == catalogue.CommitmentEnabled {
			next.Commitment = before.Commitment.Enable(now.Stamp)
		} else {
			next.Commitment = before.Commitment.Disable(now.Stamp)
		}
		out = describeAccount(next, now)
		if next == before {
			return nil
		}
		return s.streams.catalogue.Commit(tx, &catalogue.Change{
			Op: catalogue.ChangeAccount, At: now.Stamp, Account: &next,
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
