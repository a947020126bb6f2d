package kinesis

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
)

// account holds the account-wide settings of one world (an account in a region).
type account struct {
	World      wire.World `json:"world"`
	Commitment commitment `json:"commitment"`
}

// commitment is the minimum throughput billing commitment ("on-demand advantage"). It lasts at
// least 24 hours: disabling it earlier only schedules its end. All times are in ms since 1970; 0
// means none.
type commitment struct {
	Started  int64 `json:"started,omitempty"`
	Earliest int64 `json:"earliest,omitempty"` // it cannot end before
	End      int64 `json:"end,omitempty"`      // when it ends or ended; 0: it was not disabled
}

// commitmentPeriod is the shortest commitment, in ms (AWS, documentation of
// "MinimumThroughputBillingCommitmentInput").
const commitmentPeriod = 24 * hour

// The states of a commitment, as the API names them.
const (
	commitmentEnabled  = "ENABLED"
	commitmentDisabled = "DISABLED"
	commitmentEnding   = "ENABLED_UNTIL_EARLIEST_ALLOWED_END"
)

// status returns the state at a time. A scheduled end takes effect by itself.
func (c commitment) status(now int64) string {
	switch {
	case c.Started == 0:
		return commitmentDisabled
	case c.End == 0:
		return commitmentEnabled
	case now < c.End:
		return commitmentEnding
	default:
		return commitmentDisabled
	}
}

// enable begins a commitment, or cancels its scheduled end.
func (c commitment) enable(now int64) commitment {
	if c.status(now) == commitmentDisabled {
		return commitment{Started: now, Earliest: now + commitmentPeriod}
	}
	c.End = 0
	return c
}

// disable ends a commitment at the earliest permitted time.
func (c commitment) disable(now int64) commitment {
	if c.status(now) == commitmentEnabled {
		c.End = max(now, c.Earliest)
	}
	return c
}

func compareAccount(a account, world wire.World) int {
	return cmp.Or(cmp.Compare(a.World.Account, world.Account),
		cmp.Compare(a.World.Region, world.Region))
}

// account returns the settings of a world's account. The caller holds the lock.
func (c *catalogue) account(world wire.World) account {
	at, found := slices.BinarySearchFunc(c.state.Accounts, world, compareAccount)
	if !found {
		return account{World: world}
	}
	return c.state.Accounts[at]
}

// applyAccount replaces the account of the same world, or adds a new one. A snapshot that is being
// written may use the slice, so it is copied.
func (c *catalogue) applyAccount(ch *change) error {
	if ch.Account == nil {
		return fmt.Errorf("%w: no account", errChange)
	}
	next := slices.Clone(c.state.Accounts)
	at, found := slices.BinarySearchFunc(next, ch.Account.World, compareAccount)
	if found {
		next[at] = *ch.Account
	} else {
		next = slices.Insert(next, at, *ch.Account)
	}
	c.state.Accounts = next
	return nil
}

// checkAccounts returns an error unless the accounts are in the order of their worlds.
func checkAccounts(accounts []account) error {
	for i := 1; i < len(accounts); i++ {
		if compareAccount(accounts[i-1], accounts[i].World) >= 0 {
			return fmt.Errorf("%w: account %d of %d is misplaced", errChange, i, len(accounts))
		}
	}
	return nil
}

// viewAccount returns the settings of a world's account, once they are durable.
func (s *Service) viewAccount(
	ctx context.Context, world wire.World,
) (a account, now int64, err error) {
	c := s.catalogue
	c.mu.RLock()
	now = s.clock.read()
	a, seen := c.account(world), c.lsn
	c.mu.RUnlock()
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
func describeAccount(a account, now int64) *accountSettingsOutput {
	c := a.Commitment
	d := commitmentDescription{Status: c.status(now), StartedAt: c.time(c.Started)}
	if d.Status == commitmentDisabled {
		d.EndedAt = c.time(c.End)
	} else {
		d.EarliestAllowedEndAt = c.time(c.Earliest)
	}
	return &accountSettingsOutput{d}
}

func (commitment) time(ms int64) *timestamp {
	if ms == 0 {
		return nil
	}
	t := timestamp(ms)
	return &t
}
