package processes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	itemTable   = "kills"
	checkFailed = "ConditionalCheckFailedException"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

func intOf(v types.AttributeValue) int {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return -1
	}
	value, err := strconv.Atoi(n.Value)
	if err != nil {
		return -1
	}
	return value
}

func stringOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// prepareItems makes the table and its counters.
func (r *serverRun) prepareItems() {
	r.ask("create the table", func(ctx context.Context) error {
		_, err := r.dynamo.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: aws.String(itemTable), BillingMode: types.BillingModePayPerRequest,
			KeySchema: []types.KeySchemaElement{{
				AttributeName: aws.String("id"), KeyType: types.KeyTypeHash,
			}},
			AttributeDefinitions: []types.AttributeDefinition{{
				AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS,
			}},
		})
		return err
	})
	for i := range 2 {
		c := &counter{t: r.t, id: fmt.Sprint("counter-", i), given: map[int]bool{}}
		r.counters = append(r.counters, c)
		r.ask("put a counter", func(ctx context.Context) error {
			_, err := r.dynamo.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: aws.String(itemTable), Item: item{"id": text(c.id), "n": number(0)},
			})
			return err
		})
	}
}

// claims holds the first claim that wrote each item, by the answers. A claim is one attempt.
type claims struct {
	mu    sync.Mutex
	owner map[string]string // by item, the claim that was seen in it
	tried map[string]bool   // claims that are in an item or may be
	won   int
}

func newClaims() *claims { return &claims{owner: map[string]string{}, tried: map[string]bool{}} }

// saw notes that a claim was seen in an item, and returns a different claim that was seen before.
func (c *claims) saw(id, claim string) (other string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner, seen := c.owner[id]; seen && owner != claim {
		return owner
	}
	c.owner[id] = claim
	return ""
}

// try notes whether a claim may be in an item.
func (c *claims) try(claim string, may bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if may {
		c.tried[claim] = true
	} else {
		delete(c.tried, claim)
	}
}

func (c *claims) count(tally map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tally["items claimed"] += c.won
}

// claimer writes one item after the other, each on the condition that it does not exist. Several
// run side by side.
func (r *serverRun) claimer(name string) func() outcome {
	serial := 0
	return func() outcome {
		serial++
		id, claim := fmt.Sprint("claim-", serial), fmt.Sprint(name, "/", serial)
		r.claims.try(claim, true)
		var lost *types.ConditionalCheckFailedException
		o := r.call("claim", []string{checkFailed}, func(ctx context.Context) error {
			_, err := r.dynamo.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: aws.String(itemTable), Item: item{"id": text(id), "owner": text(claim)},
				ConditionExpression:                 aws.String("attribute_not_exists(id)"),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			})
			errors.As(err, &lost)
			return err
		})
		owner := claim
		switch o {
		case done:
			r.claims.mu.Lock()
			r.claims.won++
			r.claims.mu.Unlock()
		case refused:
			r.claims.try(claim, false)
			if lost == nil {
				return o
			}
			owner = stringOf(lost.Item["owner"])
		case unsent:
			r.claims.try(claim, false)
			return o
		default:
			return o
		}
		if other := r.claims.saw(id, owner); other != "" {
			r.t.Errorf("%s is of %q, and was of %q", id, owner, other)
		}
		return o
	}
}

// checkClaims scans the table.
func (r *serverRun) checkClaims() {
	r.claims.mu.Lock()
	before := maps.Clone(r.claims.owner)
	r.claims.mu.Unlock()
	found := map[string]string{}
	in := &dynamodb.ScanInput{TableName: aws.String(itemTable), ConsistentRead: aws.Bool(true)}
	for more := true; more; more = in.ExclusiveStartKey != nil {
		r.ask("scan", func(ctx context.Context) error {
			got, err := r.dynamo.Scan(ctx, in)
			if err != nil {
				return err
			}
			for _, it := range got.Items {
				if owner, claimed := it["owner"]; claimed {
					found[stringOf(it["id"])] = stringOf(owner)
				}
			}
			in.ExclusiveStartKey = got.LastEvaluatedKey
			return nil
		})
	}
	for id, owner := range before {
		if found[id] != owner {
			r.t.Errorf("%s was of %s, and is of %q", id, owner, found[id])
		}
	}
	r.claims.mu.Lock()
	defer r.claims.mu.Unlock()
	for id, owner := range found {
		if !r.claims.tried[owner] {
			r.t.Errorf("%s is of %q, whose claim was refused", id, owner)
		}
	}
	for id, owner := range found {
		r.claims.owner[id] = owner
	}
}
