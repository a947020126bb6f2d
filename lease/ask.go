package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// Ask is a request in a lease's row (runnelAsk): a worker asks the holder to pass the lease. It
// changes neither the owner nor the counter, so the holder's writes go on as if it were not there.
// The holder sees it in the answer to its next write.
//
// An ask is for one hold. It lapses with the hold, and it lapses with its worker: the asker raises
// Beat as long as it waits, and an ask that does not change for the failover time counts as dead.
type Ask struct {
	Worker string // the worker that should have the lease; "" if there is no ask
	Hold   string // the hold that it asks for (Lease.Hold)
	Beat   int64  // raised by the asker; 1 or more
	// ByHand is set if a person moves the lease. The plan leaves it with its new owner then.
	ByHand bool
}

// Asked returns the ask for the lease's present hold. ok is false if there is none, or one for an
// earlier hold or from the holder itself.
func (l Lease) Asked() (ask Ask, ok bool) {
	a := l.Ask
	pinned := l.Pin == l.Owner && !a.ByHand
	return a, a.Worker != "" && l.Owned() && a.Hold == l.Hold && l.Hold != "" &&
		a.Worker != l.Owner && !pinned
}

// Owned reports whether a worker of this package holds the lease. Such a worker passes it politely.
// Other programs leave runnelHolder on the rows that they take, so it counts only if it names the
// owner.
func (l Lease) Owned() bool { return l.Owner != "" && l.Holder == l.Owner }

// Passed reports whether the lease was passed to its owner, which has not adopted it yet.
func (l Lease) Passed() bool { return l.Owned() && l.Hold == "" }

const askByHand = "by-hand"

// String returns the attribute's value: the beat, the hold, the word "by-hand" if that is set, and
// the worker, which may contain spaces.
func (a Ask) String() string {
	how := "ask"
	if a.ByHand {
		how = askByHand
	}
	return fmt.Sprintf("%d %s %s %s", a.Beat, a.Hold, how, a.Worker)
}

// parseAsk reads an attribute. A value of another shape is no ask: an ask may always be replaced,
// and a bad one must not hide the row.
func parseAsk(value string) Ask {
	parts := strings.SplitN(value, " ", 4)
	if len(parts) != 4 {
		return Ask{}
	}
	beat, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || beat < 1 || parts[1] == "" || parts[3] == "" ||
		parts[2] != "ask" && parts[2] != askByHand {
		return Ask{}
	}
	return Ask{Worker: parts[3], Hold: parts[1], Beat: beat, ByHand: parts[2] == askByHand}
}

// readAsk reads the ask of a row, and the attribute's text: a later ask replaces exactly that.
func readAsk(row item) (Ask, string) {
	value := text(row, attrAsk)
	return parseAsk(value), value
}

// ErrAskRefused is returned by Ask if the row has changed hands or carries the ask of another
// worker. Nothing was written.
var ErrAskRefused = errors.New("the lease has changed hands, or another worker asked for it first")

// Ask writes an ask into the row that the caller last saw as seen, in place of the ask that it saw.
// It needs the holder to be as seen, and not the counter, which moves all the time. The answer may
// be lost: the caller finds out from the row.
func (t *Table) Ask(ctx context.Context, seen Lease, ask Ask) error {
	ask.Hold = seen.Hold
	names := map[string]string{
		"#owner": attrOwner, "#hold": attrHold, "#ask": attrAsk,
	}
	values := item{
		":owner": str(seen.Owner), ":hold": str(seen.Hold), ":ask": str(ask.String()),
	}
	condition := "#owner = :owner AND #hold = :hold AND "
	if seen.askText == "" {
		condition += "attribute_not_exists(#ask)"
	} else {
		condition += "#ask = :seen"
		values[":seen"] = str(seen.askText)
	}
	_, err := t.annotate(ctx, seen, &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String(condition), UpdateExpression: aws.String("SET #ask = :ask"),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if _, refused := awserr.ConditionFailed(err); refused {
		err = ErrAskRefused
	}
	if err != nil {
		return t.wrap("ask for", seen.Key, err)
	}
	return nil
}

// Keep marks a lease as moved by hand to its present holder, so that the plan leaves it there, and
// removes an ask. The holder may have seen that ask, and pass the lease nevertheless. It returns
// ErrAskRefused if the row has changed hands.
func (t *Table) Keep(ctx context.Context, seen Lease) error {
	_, err := t.annotate(ctx, seen, &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String("#owner = :owner AND #hold = :hold"),
		UpdateExpression:    aws.String("SET #pin = :owner REMOVE #ask"),
		ExpressionAttributeNames: map[string]string{
			"#owner": attrOwner, "#hold": attrHold, "#pin": attrPin, "#ask": attrAsk,
		},
		ExpressionAttributeValues: item{":owner": str(seen.Owner), ":hold": str(seen.Hold)},
	})
	if _, refused := awserr.ConditionFailed(err); refused {
		err = ErrAskRefused
	}
	if err != nil {
		return t.wrap("keep", seen.Key, err)
	}
	return nil
}

// annotate changes attributes of ours that the protocol does not depend on: it raises no counter.
// It returns the attributes that in.ReturnValues asks for.
func (t *Table) annotate(
	ctx context.Context, seen Lease, in *dynamodb.UpdateItemInput,
) (item, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	in.TableName, in.Key = aws.String(t.cfg.Table), t.key(seen.Key)
	out, err := t.cfg.DynamoDB.UpdateItem(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}
