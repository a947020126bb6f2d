package dynamo

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
)

// TestMemoryOfItems has items of one size, of which the memory differs.
func TestMemoryOfItems(t *testing.T) {
	long := itemstore.Item{"a": itemstore.String(strings.Repeat("x", 99))}
	many, deep := itemstore.Item{}, itemstore.List{}
	for i := range 50 {
		many[fmt.Sprint(i%10, i/10)[:2]+fmt.Sprint(i)] = itemstore.Bool(true)
		deep = append(deep, itemstore.Map{"b": itemstore.Bool(true)})
	}
	if a, b := memoryOf(long), memoryOf(many); b < a+40*valueMemory {
		t.Errorf("one long value takes %d, 50 short ones %d", a, b)
	}
	if nested := memoryOf(itemstore.Item{"a": deep}); nested < 100*valueMemory {
		t.Errorf("100 values in a list take %d", nested)
	}
	if memoryOf(nil) != 0 {
		t.Error("no item takes memory")
	}
}

// TestMemoryComesBack makes random writes of items, alone and in transactions, with an index that
// comes and goes. When all items are deleted, or the table, the memory is free.
func TestMemoryComesBack(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		s.memory = memlimit.New(1<<40, func() int64 { return 0 })
		table := fmt.Sprintf("items%d", round)
		round++
		ask := func(operation, body string) {
			if answer := s.ask(t, operation, `{"TableName":"`+table+`",`+body+`}`); strings.Contains(
				answer, "Exception") && !strings.Contains(answer, "ConditionalCheckFailed") {
				r.Fatalf("%s %s: %s", operation, body, answer)
			}
		}
		ask("CreateTable", `"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
			"BillingMode":"PAY_PER_REQUEST",
			"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}]`)
		drawKey := func(r *rapid.T) string {
			return fmt.Sprintf(`"k":{"S":"%d"}`, rapid.IntRange(0, 5).Draw(r, "key"))
		}
		drawRest := func(r *rapid.T) string {
			rest := fmt.Sprintf(`,"d":{"S":"%s"}`,
				strings.Repeat("x", rapid.IntRange(0, 50).Draw(r, "size")))
			if rapid.Bool().Draw(r, "indexed") {
				rest += `,"i":{"S":"y"}`
			}
			return rest
		}
		empty, indexed := s.memory.Used(), false
		r.Repeat(map[string]func(*rapid.T){
			"put": func(r *rapid.T) { ask("PutItem", `"Item":{`+drawKey(r)+drawRest(r)+`}`) },
			"refuse": func(r *rapid.T) {
				ask("PutItem", `"Item":{`+drawKey(r)+`},"ConditionExpression":"attribute_exists(z)"`)
			},
			"update": func(r *rapid.T) {
				ask("UpdateItem", `"Key":{`+drawKey(r)+`},"UpdateExpression":"SET e = :l REMOVE i",
					"ExpressionAttributeValues":{":l":{"L":[{"N":"1"},{"SS":["a","b"]}]}}`)
			},
			"delete": func(r *rapid.T) { ask("DeleteItem", `"Key":{`+drawKey(r)+`}`) },
			"transact": func(r *rapid.T) {
				one, other := `"k":{"S":"a"}`, `"k":{"S":"b"}`
				in := `"TableName":"` + table + `"`
				if answer := s.ask(t, "TransactWriteItems", transact(``,
					`{"Put":{`+in+`,"Item":{`+one+drawRest(r)+`}}}`,
					`{"Delete":{`+in+`,"Key":{`+drawKey(r)+`}}}`,
					`{"ConditionCheck":{`+in+`,"Key":{`+other+`},
						"ConditionExpression":"attribute_not_exists(k)"}}`)); strings.Contains(
					answer, "Exception") {
					r.Fatal(answer)
				}
			},
			"index": func(*rapid.T) {
				if indexed = !indexed; !indexed {
					ask("UpdateTable", `"GlobalSecondaryIndexUpdates":[
						{"Delete":{"IndexName":"byI"}}]`)
					return
				}
				ask("UpdateTable", `"AttributeDefinitions":[{"AttributeName":"i",
					"AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"byI","KeySchema":[{"AttributeName":"i",
						"KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}}]`)
			},
		})
		if rapid.Bool().Draw(r, "table") {
			ask("DeleteTable", `"unused":0`)
			empty = 0
		} else {
			for i := range 6 {
				ask("DeleteItem", fmt.Sprintf(`"Key":{"k":{"S":"%d"}}`, i))
			}
			ask("DeleteItem", `"Key":{"k":{"S":"a"}}`)
		}
		if left := s.memory.Used() - empty; left != 0 {
			r.Errorf("%d bytes are left", left)
		}
	})
}
