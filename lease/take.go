package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
)

// Take makes by.Worker the holder of a lease that the caller last saw as seen: unowned, expired,
// passed to it, or to be robbed of a program that passes nothing. It raises
// ownerSwitchesSinceCheckpoint if another worker held it, and ends a KCL 3.x hand-over. The
// checkpoint, the children and a pending checkpoint stay. ErrLeaseLost means that the row has
// changed since: its owner is alive, or another worker was first. An *OutputError means that the
// row has another output than by.Output.
func (t *Table) Take(ctx context.Context, seen Lease, by Claim) (Lease, error) {
	if err := (appOutput{table: t, name: by.Output}).check(seen); err != nil {
		return Lease{}, err
	}
	return t.take(ctx, seen, owner{by, rand.Text()})
}

// Assign takes a lease that no live worker holds in the name of another worker of this package,
// which finds it by Owned and adopts it by Take.
func (t *Table) Assign(ctx context.Context, seen Lease, worker string) (Lease, error) {
	return t.take(ctx, seen, owner{Claim: Claim{Worker: worker}})
}

func (t *Table) take(ctx context.Context, seen Lease, next owner) (Lease, error) {
	var stamps bool // the row does not have the origin
	return t.write(ctx, seen, write{
		op: "take",
		build: func(seen Lease) Lease {
			seen.Stream = t.cfg.Stream.String()
			if stamps = seen.Origin == nil && next.hold != ""; stamps {
				seen.Origin = &next.Origin
			}
			return next.of(seen)
		},
		update: func(row Lease, u *update) {
			u.set(attrStream, str(row.Stream))
			if stamps {
				setOrigin(*row.Origin, u)
			}
			setFrom(row, u)
			next.set(row, u)
		},
	})
}

// owner is the next owner of a row, as a take or a pass writes it.
type owner struct {
	Claim
	hold string // "": the owner has not adopted the lease yet
}

// of returns the row under its new owner. An ask ends with the hold that it was for.
func (o owner) of(row Lease) Lease {
	if row.Owner != "" && row.Owner != o.Worker {
		row.OwnerSwitches++
	}
	row.Owner, row.Holder, row.Hold = o.Worker, o.Worker, o.hold
	row.MaxLeases, row.Static = o.MaxLeases, o.Static
	if o.hold != "" { // the owner speaks for itself
		row.Sink = o.Sink
		row.Failover = cmp.Or(o.Failover.Truncate(time.Millisecond), row.Failover)
	}
	row.Output = cmp.Or(row.Output, o.Output)
	row.Ask, row.askText = Ask{}, ""
	if row.Pin != o.Worker {
		row.Pin = ""
	}
	return row
}

// set writes the new owner. The condition names the old owner :owner; the new one is :leaseOwner.
func (o owner) set(row Lease, u *update) {
	u.set(attrOwner, str(row.Owner))
	u.set(attrHolder, str(row.Holder))
	u.set(attrSwitches, num(row.OwnerSwitches))
	u.setOrRemove(attrHold, row.Hold)
	u.setOrRemove(attrPin, row.Pin)
	if row.MaxLeases > 0 {
		u.set(attrMax, num(int64(row.MaxLeases)))
	} else {
		u.remove(attrMax)
	}
	if row.Static != (Static{}) {
		u.set(attrStatic, str(row.Static.String()))
	} else {
		u.remove(attrStatic)
	}
	if row.Sink {
		u.set(attrSink, num(1))
	} else {
		u.remove(attrSink)
	}
	if o.Failover > 0 {
		u.set(attrFailover, num(row.Failover.Milliseconds()))
	}
	if o.Output != "" {
		u.set(attrOutput, str(row.Output))
	}
	u.remove(attrCheckpointOwn, attrAsk)
}

// errNotHeld reports a mistake of the caller.
var errNotHeld = errors.New("the lease has no owner: only a held lease can be written")

// Mark is a checkpoint: how far a shard has been processed. The zero Mark is none.
type Mark struct {
	// At is the position of a record.
	At runnel.Position
	// Token is the sink's token for it.
	Token string
	// State is the state of the reader's filter at At, of up to MaxState bytes. Nil leaves the
	// state that the row has, of an earlier position; an empty one removes it.
	State []byte
	// Apart is set if States has the state of this position, and State is nil. It removes the
	// state that the row has, and the row points to the other one; see Lease.StateApart.
	Apart runnel.Position
}

// MaxState is the largest state that a row holds. DynamoDB charges the whole row at every write.
const MaxState = 1 << 10

// IsZero reports whether there is no checkpoint.
func (m Mark) IsZero() bool { return m.At == runnel.Position{} && m.Token == "" && m.State == nil }

// Renew is the heartbeat: it raises the counter. Like every write of a holder, it writes
// held.Complete and held.Stats, unless they are zero, and its answer has the row's Ask as of now.
func (t *Table) Renew(ctx context.Context, held Lease) (Lease, error) {
	return t.writeHeld(ctx, held, Mark{}, write{op: "renew"})
}

// Checkpoint writes how far the shard has been processed. It is a heartbeat, too.
func (t *Table) Checkpoint(ctx context.Context, held Lease, mark Mark) (Lease, error) {
	if mark.IsZero() {
		return Lease{}, t.wrap("checkpoint", held.Key, runnel.ErrPositionSyntax)
	}
	return t.writeHeld(ctx, held, mark, write{op: "checkpoint"})
}

// Finish ends a held lease: it writes the children and SHARD_END in one write, and removes the
// owner. The leases of the children must exist before: a worker that sees SHARD_END relies on them.
// end has the token and the state at the end.
func (t *Table) Finish(
	ctx context.Context, held Lease, end Mark, children []runnel.ShardID,
) (Lease, error) {
	end.At = runnel.End()
	return t.writeHeld(ctx, held, end, write{
		op: "finish",
		build: func(row Lease) Lease {
			row.Ender = row.Owner
			row = row.left()
			row.Children = children
			return row
		},
		update: func(row Lease, u *update) {
			if len(row.Children) > 0 {
				u.set(attrChildren, set(row.Children))
			}
			u.set(attrEnder, str(row.Ender))
			row.leave(u)
		},
	})
}

// Release gives a held lease back, with a last checkpoint: any worker may take it at once.
func (t *Table) Release(ctx context.Context, held Lease, mark Mark) (Lease, error) {
	return t.writeHeld(ctx, held, mark, write{
		op:     "release",
		build:  Lease.left,
		update: Lease.leave,
	})
}

// Rewind moves a held lease to a position, in either direction. What the row says of the reading so
// far goes: the sink's token, the state and the times. at is the position of a record, or Start for
// TRIM_HORIZON. States may have a state of the lease; see States.Delete.
func (t *Table) Rewind(ctx context.Context, held Lease, at runnel.Position) (Lease, error) {
	if at == runnel.Start() {
		at.Sequence = runnel.TrimHorizon
	} else if !at.Sequence.IsNumber() {
		return Lease{}, t.wrap("rewind", held.Key, runnel.ErrPositionSyntax)
	}
	if held.Owner == "" {
		return Lease{}, t.wrap("rewind", held.Key, errNotHeld)
	}
	return t.write(ctx, held, write{
		op: "rewind", holder: true,
		build: func(row Lease) Lease {
			row = checkpointed(row, Mark{At: at, State: []byte{}})
			row.From, row.Complete, row.Stats = time.Time{}, time.Time{}, Stats{}
			row.Children, row.Ender = nil, ""
			return row
		},
		update: func(row Lease, u *update) {
			setCheckpoint(row, u)
			u.remove(attrState, attrStateAt, attrFrom, attrComplete, attrStats, attrChildren,
				attrEnder)
		},
	})
}

// left returns the row without an owner.
func (l Lease) left() Lease {
	l.Owner, l.Holder, l.MaxLeases, l.Pin, l.Static = "", "", 0, "", Static{}
	l.Ask, l.askText = Ask{}, ""
	return l
}

func (l Lease) leave(u *update) {
	u.remove(attrOwner, attrCheckpointOwn, attrHolder, attrMax, attrPin, attrAsk, attrStatic)
}

// Pass makes another worker of this package the owner of a held lease, with a last checkpoint, in
// one write. The new owner finds the lease by Owned and adopts it by Take; until then the row has
// no hold. byHand keeps the plan from moving the lease on.
func (t *Table) Pass(
	ctx context.Context, held Lease, mark Mark, to string, byHand bool,
) (Lease, error) {
	next := owner{Claim: Claim{Worker: to}}
	return t.writeHeld(ctx, held, mark, write{
		op: "pass",
		build: func(row Lease) Lease {
			if row = next.of(row); byHand {
				row.Pin = to
			}
			return row
		},
		update: next.set,
		// The new owner may have adopted the lease before a lost answer is looked into.
		done: func(stands, want Lease) bool {
			return stands.Counter > want.Counter && stands.Owned() && stands.Owner == to
		},
	})
}

func (t *Table) writeHeld(ctx context.Context, held Lease, mark Mark, w write) (Lease, error) {
	if held.Owner == "" {
		return Lease{}, t.wrap(w.op, held.Key, errNotHeld)
	}
	marked := !mark.IsZero()
	atEnd := w.op == "finish" && mark.At == runnel.End()
	if marked && !mark.At.Sequence.IsNumber() && !atEnd || len(mark.State) > MaxState {
		return Lease{}, t.wrap(w.op, held.Key, runnel.ErrPositionSyntax)
	}
	build, change := w.build, w.update
	w.holder = true
	w.build = func(row Lease) Lease {
		if marked {
			row = checkpointed(row, mark)
		}
		if build != nil {
			row = build(row)
		}
		return row
	}
	w.update = func(row Lease, u *update) {
		if marked {
			setCheckpoint(row, u)
			setState(mark, row, u)
		}
		if change != nil {
			change(row, u)
		}
	}
	return t.write(ctx, held, w)
}

func checkpointed(row Lease, mark Mark) Lease {
	row.Checkpoint, row.Token, row.OwnerSwitches = mark.At, mark.Token, 0
	row.Pending, row.PendingState = runnel.Position{}, nil
	if mark.State != nil {
		row.State, row.StateAt = nil, runnel.Position{}
	}
	switch {
	case len(mark.State) > 0:
		row.State, row.StateAt = mark.State, mark.At
	case mark.Apart != runnel.Start():
		row.State, row.StateAt = nil, mark.Apart
	}
	return row
}

func setState(mark Mark, row Lease, u *update) {
	switch {
	case len(mark.State) > 0:
		u.set(attrState, &types.AttributeValueMemberB{Value: row.State})
		u.set(attrStateAt, str(row.StateAt.String()))
	case mark.Apart != runnel.Start():
		u.remove(attrState)
		u.set(attrStateAt, str(row.StateAt.String()))
	case mark.State != nil:
		u.remove(attrState, attrStateAt)
	}
}

func setCheckpoint(row Lease, u *update) {
	u.set(attrCheckpoint, str(string(row.Checkpoint.Sequence)))
	u.set(attrSub, num(row.Checkpoint.Sub))
	u.set(attrSwitches, num(row.OwnerSwitches))
	u.setOrRemove(attrToken, row.Token)
	u.remove(attrPending, attrPendingSub, attrPendingState)
}
