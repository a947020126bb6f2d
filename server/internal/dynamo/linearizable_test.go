package dynamo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// soak multiplies the size of the random tests.
func soak() int {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// itemCall is a conditional write of one or two items, or a read of one. A write sets each item
// to its next if all items have their want. Items are counters; 0 means no item.
type itemCall struct {
	keys, want, next []int
	read             bool
}

// itemAnswer is the client's answer: whether the write was done, or the read value.
type itemAnswer struct {
	done bool
	n    int
}

const linearKeys = 3

// itemModel models the items; its state is the counters by key.
var itemModel = porcupine.Model{
	Init: func() any { return [linearKeys]int{} },
	Step: func(state, input, output any) (bool, any) {
		items, c, got := state.([linearKeys]int), input.(itemCall), output.(itemAnswer)
		if c.read {
			return items[c.keys[0]] == got.n, items
		}
		next, holds := items, true
		for i, key := range c.keys {
			holds = holds && items[key] == c.want[i]
			next[key] = c.next[i]
		}
		if holds {
			return got.done, next
		}
		return !got.done, items
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, output) },
}

// body returns the request, and its operation.
func (c itemCall) body(rng *rand.Rand) (operation, body string) {
	if c.read {
		return "GetItem", fmt.Sprintf(`{"TableName":"leases","Key":{"leaseKey":{"S":"k%d"}}}`, c.keys[0])
	}
	var items []string
	for i, key := range c.keys {
		verb, target := "Update", fmt.Sprintf(`"Key":{"leaseKey":{"S":"k%d"}}`, key)
		values := map[string]int{}
		condition, expression := "attribute_not_exists(n)", ""
		if c.want[i] > 0 {
			condition = "n = :want"
			values[":want"] = c.want[i]
		}
		switch {
		case c.next[i] == 0:
			verb = "Delete"
		case rng.IntN(2) == 0:
			verb, target = "Put", fmt.Sprintf(`"Item":{"leaseKey":{"S":"k%d"},"n":{"N":"%d"}}`, key, c.next[i])
		default:
			expression = `"UpdateExpression":"SET n = :next",`
			values[":next"] = c.next[i]
		}
		given := ""
		if len(values) > 0 {
			var list []string
			for name, n := range maps.All(values) {
				list = append(list, fmt.Sprintf(`%q:{"N":"%d"}`, name, n))
			}
			given = `,"ExpressionAttributeValues":{` + strings.Join(list, ",") + `}`
		}
		item := fmt.Sprintf(`{"TableName":"leases",%s,%s"ConditionExpression":%q%s}`, target, expression, condition, given)
		operation, body = verb+"Item", item
		items = append(items, fmt.Sprintf(`{%q:%s}`, verb, item))
	}
	if len(items) > 1 || rng.IntN(2) == 0 {
		return "TransactWriteItems", transact(``, items...)
	}
	return operation, body
}

// TestConditionalWritesAreLinearizable has clients write three items under conditions, one by
// one and in transactions, and read them: some order of the calls must explain every answer.
func TestConditionalWritesAreLinearizable(t *testing.T) {
	const clients, calls = 6, 40
	for range 3 * soak() {
		seed := rand.Uint64()
		s := newService(t, vfs.NewMem(), "data")
		s.mustAsk(t, "CreateTable", leaseTable)
		var clock atomic.Int64
		var mu sync.Mutex
		var history []porcupine.Operation
		var group sync.WaitGroup
		for client := range clients {
			group.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(client)))
				for range calls {
					c := itemCall{read: rng.IntN(4) == 0}
					for _, key := range rng.Perm(linearKeys)[:1+rng.IntN(2)] {
						c.keys = append(c.keys, key)
						c.want = append(c.want, rng.IntN(3))
						c.next = append(c.next, rng.IntN(3))
					}
					operation, body := c.body(rng)
					began := clock.Add(1)
					got := s.ask(t, operation, body)
					ended := clock.Add(1)
					told := itemAnswer{done: got == `{}`}
					_, n, isItem := strings.Cut(got, `"n":{"N":"`)
					switch {
					case c.read && isItem:
						told = itemAnswer{n: int(n[0] - '0')}
					case c.read:
						told = itemAnswer{}
					case told.done:
					case !strings.Contains(got, "ConditionalCheckFailed"):
						t.Errorf("%s: %s", body, got)
					}
					mu.Lock()
					history = append(history, porcupine.Operation{
						ClientId: client, Input: c, Output: told, Call: began, Return: ended,
					})
					mu.Unlock()
				}
			})
		}
		group.Wait()
		if result := porcupine.CheckOperationsTimeout(itemModel, history, time.Minute); result != porcupine.Ok {
			t.Errorf("seed %d: %s", seed, result)
		}
	}
	t.Logf("soak: %d seeds, %d operations", 3*soak(), 3*soak()*clients*calls)
}
