package catalogue

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
)

// Account holds the account-wide settings of one world (an account in a region).
type Account struct {
	World      wire.World `json:"world"`
	Commitment Commitment `json:"commitment"`
}

// Commitment is the minimum throughput billing commitment ("on-demand advantage"). It lasts at
// least 24 hours: disabling it earlier only schedules its end. All times are in ms since 1970; 0
// means none.
type Commitment struct {
	Started  int64 `json:"started,omitempty"`
	Earliest int64 `json:"earliest,omitempty"` // it cannot end before
	End      int64 `json:"end,omitempty"`      // when it ends or ended; 0: it was not disabled
}

// commitmentPeriod is the shortest commitment, in ms (AWS, documentation of
// "MinimumThroughputBillingCommitmentInput").
const commitmentPeriod = 24 * hour

// The states of a commitment, as the API names them.
const (
	CommitmentEnabled  = "ENABLED"
	CommitmentDisabled = "DISABLED"
	commitmentEnding   = "ENABLED_UNTIL_EARLIEST_ALLOWED_END"
)

// Status returns the state at a time. A scheduled end takes effect by itself.
func (c Commitment) Status(now int64) string {
	switch {
	case c.Started == 0:
		return CommitmentDisabled
	case c.End == 0:
		return CommitmentEnabled
	case now < c.End:
		return commitmentEnding
	default:
		return CommitmentDisabled
	}
}

// Enable begins a commitment, or cancels its scheduled end.
func (c Commitment) Enable(now int64) Commitment {
	if c.Status(now) == CommitmentDisabled {
		return Commitment{Started: now, Earliest: now + commitmentPeriod}
	}
	c.End = 0
	return c
}

// Disable ends a commitment at the earliest permitted time.
func (c Commitment) Disable(now int64) Commitment {
	if c.Status(now) == CommitmentEnabled {
		c.End = max(now, c.Earliest)
	}
	return c
}

func compareAccount(a Account, world wire.World) int {
	return cmp.Or(cmp.Compare(a.World.Account, world.Account),
		cmp.Compare(a.World.Region, world.Region))
}

// Account returns the settings of a world's account. Call it inside Read or Write.
func (c *Catalogue) Account(world wire.World) Account {
	at, found := slices.BinarySearchFunc(c.state.Accounts, world, compareAccount)
	if !found {
		return Account{World: world}
	}
	return c.state.Accounts[at]
}

// applyAccount replaces the account of the same world, or adds a new one. A snapshot that is being
// written may use the slice, so it is copied.
func (c *Catalogue) applyAccount(ch *Change) error {
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
func checkAccounts(accounts []Account) error {
	for i := 1; i < len(accounts); i++ {
		if compareAccount(accounts[i-1], accounts[i].World) >= 0 {
			return fmt.Errorf("%w: account %d of %d is misplaced", errChange, i, len(accounts))
		}
	}
	return nil
}
