package lease

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// Card announces a worker that holds no lease, or that is leaving (runnelWorker.NAME, on the row of
// any shard). A worker that holds leases shows its life by their counters, and a row of its own in
// the table would stop Java workers, which take every row for a lease.
type Card struct {
	Beat      int64 // raised by the worker as long as it lives; 1 or more
	MaxLeases int   // how many leases it may hold; 0 means no limit
	Leaving   bool  // it takes no lease any more, and passes those that it holds
	// Static is the process of a static worker; zero for others.
	Static Static
}

// String returns the attribute's value.
func (c Card) String() string {
	how := "here"
	if c.Leaving {
		how = "leaving"
	}
	text := fmt.Sprintf("%d %d %s", c.Beat, c.MaxLeases, how)
	if c.Static != (Static{}) {
		text += " " + c.Static.String()
	}
	return text
}

// parseCard reads an attribute; ok is false for a value of another shape.
func parseCard(value string) (c Card, ok bool) {
	parts := strings.SplitN(value, " ", 4)
	if len(parts) < 3 || parts[2] != "here" && parts[2] != "leaving" {
		return Card{}, false
	}
	beat, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || beat < 1 {
		return Card{}, false
	}
	most, err := strconv.Atoi(parts[1])
	if err != nil || most < 0 {
		return Card{}, false
	}
	c = Card{Beat: beat, MaxLeases: most, Leaving: parts[2] == "leaving"}
	if len(parts) == 4 {
		c.Static = parseStatic(parts[3])
	}
	return c, true
}

const attrCard = "runnelWorker." // and the worker's name

// readCards reads the cards of a row; nil if there are none. A card of another shape is left alone.
func readCards(row item) map[string]Card {
	var cards map[string]Card
	for name, value := range row {
		worker, ok := strings.CutPrefix(name, attrCard)
		text, isText := value.(*types.AttributeValueMemberS)
		if !ok || worker == "" || !isText {
			continue
		}
		card, ok := parseCard(text.Value)
		if !ok {
			continue
		}
		if cards == nil {
			cards = map[string]Card{}
		}
		cards[worker] = card
	}
	return cards
}

// Announce writes a worker's card into a lease's row, and returns the card that it replaces; zero
// if there was none. ErrLeaseNotFound means that the row is gone: another row serves as well.
func (t *Table) Announce(
	ctx context.Context, on Lease, worker string, card Card,
) (before Card, err error) {
	row, err := t.card(ctx, on, &dynamodb.UpdateItemInput{
		ReturnValues:        types.ReturnValueUpdatedOld,
		ConditionExpression: aws.String("attribute_exists(#key)"),
		UpdateExpression:    aws.String("SET #card = :card"),
		ExpressionAttributeNames: map[string]string{
			"#key": attrKey, "#card": attrCard + worker,
		},
		ExpressionAttributeValues: item{":card": str(card.String())},
	})
	return readCards(row)[worker], err
}

// Retract removes a worker's card from a row, if it is the one given.
func (t *Table) Retract(ctx context.Context, on Lease, worker string, card Card) error {
	_, err := t.card(ctx, on, &dynamodb.UpdateItemInput{
		ConditionExpression:       aws.String("#card = :card"),
		UpdateExpression:          aws.String("REMOVE #card"),
		ExpressionAttributeNames:  map[string]string{"#card": attrCard + worker},
		ExpressionAttributeValues: item{":card": str(card.String())},
	})
	return err
}

func (t *Table) card(
	ctx context.Context, on Lease, in *dynamodb.UpdateItemInput,
) (item, error) {
	row, err := t.annotate(ctx, on, in)
	if _, refused := awserr.ConditionFailed(err); refused {
		err = ErrLeaseNotFound
	}
	if err != nil {
		return nil, t.wrap("announce a worker on", on.Key, err)
	}
	return row, nil
}
