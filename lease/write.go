package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// A write is one conditional change of one row, from the row that the writer last saw to a new one.
// Its condition is always "the counter and the owner are as seen", and it always raises the counter
// by one. So if two writes saw the same row, one of them fails.
//
// A write has three outcomes, not two: done, refused, and no answer. After a refusal and after no
// answer the row is read. If the row is as this write would have left it, the write was done: its
// answer was lost, or the SDK sent it again after losing the answer and got the refusal. The
// counter alone is no proof, because other writers raise it by one, too. So owner, checkpoint,
// token and hold are compared as well.
//
// One case is left. A holder's earlier write whose answer was lost may be applied only after the
// holder has read the row and gone on. The holder's own earlier write then causes the refusal of
// the next one: the row still carries its owner and hold, with a higher counter. The write is made
// again on top of it. No other worker leaves such a row, because every worker that takes the lease
// draws a new hold.
type write struct {
	op     string
	holder bool                         // made by the lease's holder
	build  func(seen Lease) (row Lease) // the row afterwards, but for the counter
	update func(row Lease, u *update)   // its attributes
	// done reports whether a row beyond want shows that the write was done; nil if only want does.
	done func(stands, want Lease) bool
}

// attempts is the limit on the writes that a holder makes on top of its own late ones.
const attempts = 3

func (t *Table) write(ctx context.Context, seen Lease, w write) (Lease, error) {
	for attempt := 1; ; attempt++ {
		want := w.build(seen)
		want.Counter = seen.Counter + 1
		stands, err := t.writeOnce(ctx, seen, want, w)
		if err == nil {
			return stands, nil
		}
		late := w.holder && stands.heldAs(seen) && stands.Counter > seen.Counter
		if !late || attempt == attempts {
			return Lease{}, t.wrap(w.op, seen.Key, err)
		}
		seen = stands
	}
}

// writeOnce tries the write once and returns the row after it. With ErrLeaseLost it returns the row
// in the table if that is known, and otherwise a zero Lease.
func (t *Table) writeOnce(ctx context.Context, seen, want Lease, w write) (Lease, error) {
	u := newUpdate(seen)
	u.set(attrCounter, num(want.Counter))
	if w.holder && !want.Complete.IsZero() {
		u.set(attrComplete, num(want.Complete.UnixMilli()))
	}
	if w.holder && !want.Stats.At.IsZero() {
		u.set(attrStats, str(want.Stats.String()))
		u.set(attrThroughput, throughput(want.ThroughputKBps))
	}
	w.update(want, u)
	after, answer := t.send(ctx, seen, u)
	if answer == nil {
		return noticed(want, after), nil
	}
	row, refused := awserr.ConditionFailed(answer)
	if row == nil { // an old server, or no answer at all: look
		var err error
		if row, err = t.getItem(ctx, t.cfg.Table, t.key(seen.Key)); err != nil {
			return Lease{}, errors.Join(answer, fmt.Errorf("reading it back: %w", err))
		}
	}
	if row == nil {
		return Lease{}, ErrRowDeleted
	}
	stands, err := decode(row)
	if err != nil {
		return Lease{}, fmt.Errorf("%w: %w", ErrLeaseLost, err)
	}
	switch {
	case stands.standsAs(want), w.done != nil && w.done(stands, want):
		return stands, nil
	case !refused && stands.Counter == seen.Counter && stands.Owner == seen.Owner:
		return Lease{}, answer // not done, or not yet
	default:
		return stands, fmt.Errorf("%w: %s", ErrLeaseLost, stands.holder())
	}
}

func (l Lease) standsAs(want Lease) bool {
	return l.Counter == want.Counter && l.Owner == want.Owner && l.Hold == want.Hold &&
		l.Checkpoint == want.Checkpoint && l.Token == want.Token
}

// heldAs reports whether the holder is the same, without a loss in between. Java leaves the hold of
// a row that it takes.
func (l Lease) heldAs(seen Lease) bool { return l.Owner == seen.Owner && l.Hold == seen.Hold }

func (l Lease) holder() string {
	if l.Owner == "" {
		return fmt.Sprintf("it has no owner (counter %d)", l.Counter)
	}
	return fmt.Sprintf("%s holds it (counter %d)", l.Owner, l.Counter)
}

// noticed adds what others have written meanwhile, requests, cards, pins and pauses, from the
// answer to a write, to the row that the write has made.
func noticed(row Lease, after item) Lease {
	if after == nil {
		return row
	}
	row.Ask, row.askText = readAsk(after)
	row.Cards, row.Pin = readCards(after), text(after, attrPin)
	_, row.Paused = after[attrPaused]
	return row
}

// send sends a write, and returns the row after it. An answer with the row costs no more units than
// one without.
func (t *Table) send(ctx context.Context, seen Lease, u *update) (item, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	out, err := t.cfg.DynamoDB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 aws.String(t.cfg.Table),
		Key:                       t.key(seen.Key),
		ConditionExpression:       aws.String(u.condition),
		UpdateExpression:          aws.String(u.expression()),
		ExpressionAttributeNames:  u.names,
		ExpressionAttributeValues: u.values,
		ReturnValues:              types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.
			ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// update collects the clauses of an UpdateExpression. Every attribute has a placeholder, so that
// none can be a reserved word.
type update struct {
	condition    string
	sets, clears []string
	names        map[string]string
	values       item
}

// newUpdate starts an update on the condition that the row is as seen.
func newUpdate(seen Lease) *update {
	u := &update{names: map[string]string{}, values: item{}}
	u.condition = asSeen(seen, u.names, u.values)
	return u
}

// asSeen is the condition of every write and deletion: counter and owner as last seen.
func asSeen(seen Lease, names map[string]string, values item) string {
	names["#"+attrCounter], values[":seen"] = attrCounter, num(seen.Counter)
	names["#"+attrOwner] = attrOwner
	if seen.Owner == "" {
		// See reader.owner for the three ways in which a row says so.
		values[":null"], values[":none"] = str("NULL"), str("")
		return "#leaseCounter = :seen AND (attribute_not_exists(#leaseOwner) OR " +
			"attribute_type(#leaseOwner, :null) OR #leaseOwner = :none)"
	}
	values[":owner"] = str(seen.Owner)
	return "#leaseCounter = :seen AND #leaseOwner = :owner"
}

func (u *update) name(attribute string) string {
	u.names["#"+attribute] = attribute
	return "#" + attribute
}

// set sets an attribute; a later value replaces an earlier one.
func (u *update) set(attribute string, value types.AttributeValue) {
	if _, again := u.values[":"+attribute]; !again {
		u.sets = append(u.sets, u.name(attribute)+" = :"+attribute)
	}
	u.values[":"+attribute] = value
}

func (u *update) remove(attributes ...string) {
	for _, attribute := range attributes {
		u.clears = append(u.clears, u.name(attribute))
	}
}

// setOrRemove keeps an optional text: DynamoDB rows leave it out when it is empty.
func (u *update) setOrRemove(attribute, value string) {
	if value == "" {
		u.remove(attribute)
	} else {
		u.set(attribute, str(value))
	}
}

func (u *update) expression() string {
	var clauses []string
	for _, c := range []struct {
		word  string
		parts []string
	}{{"SET", u.sets}, {"REMOVE", u.clears}} {
		if len(c.parts) > 0 {
			clauses = append(clauses, c.word+" "+strings.Join(c.parts, ", "))
		}
	}
	return strings.Join(clauses, " ")
}
