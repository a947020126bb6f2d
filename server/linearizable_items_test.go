package server_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// TestItemsLinearizable lets clients write items under conditions, one by one and in transactions,
// and read them, over HTTP, while answers and requests are lost, calls are late, and the power
// goes. As in TestLinearizable one order of all calls must explain the clients' answers; a call
// without an answer may have happened later, or never.
func TestItemsLinearizable(t *testing.T) {
	for seed := range uint64(8 * soak()) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			h := &itemHistory{}
			synctest.Test(t, func(t *testing.T) { h.live(t, seed) })
			h.check(t)
		})
	}
	t.Logf("soak: %d seeds, %d operations", 8*soak(), 8*soak()*itemClients*itemCalls)
}

// TestItemsLinearizableAtOnce is the same without faults and in real time, where calls run on
// several processors at once.
func TestItemsLinearizableAtOnce(t *testing.T) {
	for range 4 * soak() {
		seed := rand.Uint64()
		h := &itemHistory{}
		server := runneltest.NewServer(t, runneltest.InMemory())
		createItems(t, server)
		h.run(t, server, seed, time.Minute).Wait()
		h.check(t)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("soak: %d seeds, %d operations", 4*soak(), 4*soak()*itemClients*itemCalls)
}

const (
	itemKeys    = 2
	itemClients = 5
	itemCalls   = 14 // of each
)

// itemTrouble holds the faults of every run; the seed comes before it.
const itemTrouble = " *:delay=1ms%30 *:delay=3ms%20 *:error-500%2 *:lose-request%2" +
	" *:throttle%3 dynamodb.*:lose-answer%5 dynamodb.*:commit-late=9ms%3 dynamodb.*:hang=20ms%3"

// live runs the clients against one server with faults and restarts. When no call is in progress,
// it reads every item once more.
func (h *itemHistory) live(t *testing.T, seed uint64) {
	server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithCrashes(seed))
	createItems(t, server)
	if err := server.SetFaults(fmt.Sprintf("seed=%d", seed) + itemTrouble); err != nil {
		t.Fatal(err)
	}
	clients := h.run(t, server, seed, patience)
	for range seed % 3 {
		time.Sleep(10 * time.Millisecond)
		if err := server.Restart(t.Context()); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
	time.Sleep(time.Second) // for the calls that are late
	if err := server.SetFaults(""); err != nil {
		t.Error(err)
	}
	last := &itemClient{h: h, id: itemClients, items: server.DynamoDB()}
	for key := range itemKeys {
		if err := last.read(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	if len(server.FaultCounts()) < 4 {
		t.Errorf("seed %d had few faults: %v", seed, server.FaultCounts())
	}
}

func createItems(t *testing.T, server *runneltest.Server) {
	t.Helper()
	_, err := server.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("items"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{
			AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeN,
		}},
		KeySchema: []types.KeySchemaElement{{
			AttributeName: aws.String("k"), KeyType: types.KeyTypeHash,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run starts the clients; each gives up a call after patience.
func (h *itemHistory) run(
	t *testing.T, server *runneltest.Server, seed uint64, patience time.Duration,
) *sync.WaitGroup {
	clients := new(sync.WaitGroup)
	for id := range itemClients {
		c := &itemClient{
			h: h, id: id, rng: rand.New(rand.NewPCG(seed, uint64(id))), patience: patience,
			items: dynamodb.NewFromConfig(server.AWSConfig(), func(o *dynamodb.Options) {
				o.Retryer = aws.NopRetryer{}
			}),
		}
		clients.Go(func() {
			for n := range itemCalls {
				c.call(t.Context(), n)
			}
		})
	}
	return clients
}

// itemClient makes one call after the other, and believes the last answer about each item.
type itemClient struct {
	h        *itemHistory
	id       int
	rng      *rand.Rand
	items    *dynamodb.Client
	patience time.Duration
	believed itemState
}

// call reads an item, or writes one or both on the condition that they are as the client believes.
func (c *itemClient) call(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	if c.rng.IntN(3) == 0 {
		_ = c.read(ctx, c.rng.IntN(itemKeys)) // a failed read teaches nothing
		return
	}
	var write itemCall
	for _, key := range c.rng.Perm(itemKeys)[:1+c.rng.IntN(itemKeys)] {
		next := 0
		if c.rng.IntN(6) > 0 {
			next = 1 + c.id + itemClients*(n*itemKeys+key) // another than anybody else's
		}
		write.keys = append(write.keys, key)
		write.want = append(write.want, c.believed[key])
		write.next = append(write.next, next)
	}
	began := c.h.tick()
	shown, err := c.write(ctx, write)
	told := itemAnswer{done: err == nil, shown: shown}
	var failed *types.ConditionalCheckFailedException
	var cancelled *types.TransactionCanceledException
	var throttled *types.ProvisionedThroughputExceededException
	switch {
	case err == nil:
		for i, key := range write.keys {
			c.believed[key] = write.next[i]
		}
	case errors.As(err, &throttled):
		return // not done
	case !errors.As(err, &failed) && !errors.As(err, &cancelled):
		told = itemAnswer{unknown: true}
	}
	for key, was := range shown {
		c.believed[key] = was
	}
	c.h.note(c.id, write, told, began)
}

func (c *itemClient) read(ctx context.Context, key int) error {
	began := c.h.tick()
	got, err := c.items.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("items"), Key: itemKey(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return err
	}
	c.believed[key] = countOf(got.Item)
	c.h.note(c.id, itemCall{keys: []int{key}, read: true},
		itemAnswer{done: true, shown: map[int]int{key: c.believed[key]}}, began)
	return nil
}

// write makes the call, as one of the possible operations; shown holds the items in its failure.
func (c *itemClient) write(ctx context.Context, w itemCall) (shown map[int]int, err error) {
	if len(w.keys) > 1 || c.rng.IntN(3) == 0 {
		return c.transact(ctx, w)
	}
	key := w.keys[0]
	condition, values := conditionOn(w.want[0])
	all := types.ReturnValuesOnConditionCheckFailureAllOld
	switch table := aws.String("items"); {
	case w.next[0] == 0:
		_, err = c.items.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: table, Key: itemKey(key), ConditionExpression: &condition,
			ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: all,
		})
	case c.rng.IntN(2) == 0:
		_, err = c.items.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: table, Item: itemOf(key, w.next[0]), ConditionExpression: &condition,
			ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: all,
		})
	default:
		update := "SET n = :next"
		_, err = c.items.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: table, Key: itemKey(key), ConditionExpression: &condition,
			UpdateExpression: &update, ReturnValuesOnConditionCheckFailure: all,
			ExpressionAttributeValues: with(values, ":next", w.next[0]),
		})
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		shown = map[int]int{key: countOf(failed.Item)}
	}
	return shown, err
}

func (c *itemClient) transact(
	ctx context.Context, w itemCall,
) (shown map[int]int, err error) {
	all := types.ReturnValuesOnConditionCheckFailureAllOld
	var list []types.TransactWriteItem
	for i, key := range w.keys {
		condition, values := conditionOn(w.want[i])
		table := aws.String("items")
		if w.next[i] == 0 {
			list = append(list, types.TransactWriteItem{Delete: &types.Delete{
				TableName: table, Key: itemKey(key), ConditionExpression: &condition,
				ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: all,
			}})
			continue
		}
		list = append(list, types.TransactWriteItem{Put: &types.Put{
			TableName: table, Item: itemOf(key, w.next[i]), ConditionExpression: &condition,
			ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: all,
		}})
	}
	_, err = c.items.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: list})
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		shown = map[int]int{}
		for i, reason := range cancelled.CancellationReasons {
			if aws.ToString(reason.Code) == "ConditionalCheckFailed" {
				shown[w.keys[i]] = countOf(reason.Item)
			}
		}
	}
	return shown, err
}

func conditionOn(want int) (string, map[string]types.AttributeValue) {
	if want == 0 {
		return "attribute_not_exists(n)", nil
	}
	return "n = :want", with(nil, ":want", want)
}

func with(
	values map[string]types.AttributeValue, name string, n int,
) map[string]types.AttributeValue {
	values = maps.Clone(values)
	if values == nil {
		values = map[string]types.AttributeValue{}
	}
	values[name] = &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
	return values
}

func itemKey(key int) map[string]types.AttributeValue { return with(nil, "k", key) }

func itemOf(key, n int) map[string]types.AttributeValue { return with(itemKey(key), "n", n) }

// countOf returns an item's n, and 0 for no item.
func countOf(item map[string]types.AttributeValue) int {
	n, ok := item["n"].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	count, err := strconv.Atoi(n.Value)
	if err != nil {
		return -1
	}
	return count
}
