package lease

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/runnel-stream/runnel"
)

// Take makes owner the holder of a lease that the caller last saw as seen: unowned, expired, or to
// be stolen. It raises ownerSwitchesSinceCheckpoint if another worker held it, and ends a KCL 3.x
// hand-over. The checkpoint, the children and a pending checkpoint stay. ErrLeaseLost means that
// the row has changed since: its owner is alive, or another worker was first.
func (t *Table) Take(ctx context.Context, seen Lease, owner string) (Lease, error) {
	hold := rand.Text()
	switched := seen.Owner != "" && seen.Owner != owner
	return t.write(ctx, seen, write{
		op: "take",
		build: func(seen Lease) Lease {
			seen.Owner, seen.Hold, seen.Stream = owner, hold, t.cfg.Stream.String()
			if switched {
				seen.OwnerSwitches++
			}
			return seen
		},
		update: func(row Lease, u *update) {
			// The condition names the old owner :owner; the new one is :leaseOwner.
			u.set(attrOwner, str(row.Owner))
			u.set(attrHold, str(row.Hold))
			u.set(attrStream, str(row.Stream))
			if switched {
				u.add(attrSwitches, num(1))
			}
			u.remove(attrCheckpointOwn)
		},
	})
}

// errNotHeld reports a mistake of the caller.
var errNotHeld = errors.New("the lease has no owner: only a held lease can be written")

// Renew is the heartbeat: it raises the counter. Like every write of a holder, it writes
// held.Complete, unless that is zero.
func (t *Table) Renew(ctx context.Context, held Lease) (Lease, error) {
	return t.writeHeld(ctx, held, write{
		op:     "renew",
		build:  func(seen Lease) Lease { return seen },
		update: func(Lease, *update) {},
	})
}

// Checkpoint writes how far the shard has been processed and the sink's token for that position. It
// is a heartbeat, too. at must be the position of a record.
func (t *Table) Checkpoint(
	ctx context.Context, held Lease, at runnel.Position, token string,
) (Lease, error) {
	if !at.Sequence.IsNumber() {
		return Lease{}, t.wrap("checkpoint", held.Key, runnel.ErrPositionSyntax)
	}
	return t.writeHeld(ctx, held, write{
		op:     "checkpoint",
		build:  func(seen Lease) Lease { return checkpointed(seen, at, token) },
		update: setCheckpoint,
	})
}

// Finish ends a held lease: it writes the children and SHARD_END in one write, and removes the
// owner. The leases of the children must exist before: a worker that sees SHARD_END relies on them.
func (t *Table) Finish(
	ctx context.Context, held Lease, token string, children []runnel.ShardID,
) (Lease, error) {
	return t.writeHeld(ctx, held, write{
		op: "finish",
		build: func(seen Lease) Lease {
			seen = checkpointed(seen, runnel.End(), token)
			seen.Children, seen.Owner = children, ""
			return seen
		},
		update: func(row Lease, u *update) {
			setCheckpoint(row, u)
			if len(row.Children) > 0 {
				u.set(attrChildren, set(row.Children))
			}
			u.remove(attrOwner)
		},
	})
}

// Release gives a held lease back: any worker may take it at once.
func (t *Table) Release(ctx context.Context, held Lease) (Lease, error) {
	return t.writeHeld(ctx, held, write{
		op: "release",
		build: func(seen Lease) Lease {
			seen.Owner = ""
			return seen
		},
		update: func(_ Lease, u *update) { u.remove(attrOwner, attrCheckpointOwn) },
	})
}

func (t *Table) writeHeld(ctx context.Context, held Lease, w write) (Lease, error) {
	if held.Owner == "" {
		return Lease{}, t.wrap(w.op, held.Key, errNotHeld)
	}
	w.holder = true
	return t.write(ctx, held, w)
}

func checkpointed(row Lease, at runnel.Position, token string) Lease {
	row.Checkpoint, row.Token, row.OwnerSwitches = at, token, 0
	row.Pending, row.PendingState = runnel.Position{}, nil
	return row
}

func setCheckpoint(row Lease, u *update) {
	u.set(attrCheckpoint, str(string(row.Checkpoint.Sequence)))
	u.set(attrSub, num(row.Checkpoint.Sub))
	u.set(attrSwitches, num(row.OwnerSwitches))
	u.setOrRemove(attrToken, row.Token)
	u.remove(attrPending, attrPendingSub, attrPendingState)
}
