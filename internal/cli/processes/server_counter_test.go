package processes_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// counter is an item that clients increment, and the answers that they got.
type counter struct {
	t  *testing.T
	id string

	mu    sync.Mutex
	acked int          // increments that were acknowledged
	may   int          // increments under way or without an answer
	top   int          // the highest value in an answer
	given map[int]bool // the values in the answers
}

// begin notes an increment, and returns the highest value in an answer.
func (c *counter) begin() (top int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.may++
	return c.top
}

// end notes the outcome of an increment. When it began, top was the highest value in an answer.
func (c *counter) end(o outcome, top, value int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o == unanswered {
		return
	}
	c.may--
	if o != done {
		return
	}
	if value <= top || c.given[value] {
		c.t.Errorf("%s: an increment gave %d, after %d; given before: %v", c.id, value, top,
			c.given[value])
	}
	c.acked++
	c.given[value] = true
	c.top = max(c.top, value)
}

func (c *counter) count(tally map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tally["increments acknowledged"] += c.acked
}

// incrementer increments the counters: by ADD, which must find the item, or from the highest
// value in an answer, on the condition that it is still the value.
func (r *serverRun) incrementer(n uint64) func() outcome {
	random := r.source(fmt.Sprint("incrementer", n))
	return func() outcome {
		c := r.counters[random.IntN(len(r.counters))]
		top := c.begin()
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String(itemTable), Key: item{"id": text(c.id)},
			UpdateExpression:          aws.String("ADD n :one"),
			ConditionExpression:       aws.String("attribute_exists(id)"),
			ExpressionAttributeValues: item{":one": number(1)},
			ReturnValues:              types.ReturnValueUpdatedNew,
		}
		var codes []string
		if random.IntN(2) == 0 {
			in.UpdateExpression = aws.String("SET n = :next")
			in.ConditionExpression = aws.String("n = :top")
			in.ExpressionAttributeValues = item{":top": number(top), ":next": number(top + 1)}
			codes = []string{checkFailed}
		}
		value := 0
		o := r.call("increment", codes, func(ctx context.Context) error {
			got, err := r.dynamo.UpdateItem(ctx, in)
			if err == nil {
				value = intOf(got.Attributes["n"])
			}
			return err
		})
		c.end(o, top, value)
		return o
	}
}

// checkCounters reads the counters.
func (r *serverRun) checkCounters() {
	for _, c := range r.counters {
		c.mu.Lock()
		least := max(c.acked, c.top)
		c.mu.Unlock()
		value := 0
		r.ask("get "+c.id, func(ctx context.Context) error {
			got, err := r.dynamo.GetItem(ctx, &dynamodb.GetItemInput{
				TableName: aws.String(itemTable), Key: item{"id": text(c.id)},
				ConsistentRead: aws.Bool(true),
			})
			if err == nil {
				value = intOf(got.Item["n"])
			}
			return err
		})
		c.mu.Lock()
		most := c.acked + c.may
		c.top = max(c.top, value)
		c.mu.Unlock()
		if value < least || value > most {
			r.t.Errorf("%s is %d, want %d to %d", c.id, value, least, most)
		}
	}
}
