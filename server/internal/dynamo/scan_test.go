package dynamo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestScan reads a table of several pages, whole and in segments.
func TestScan(t *testing.T) {
	s := newService(t, vfs.NewMem(), "data")
	s.mustAsk(t, "CreateTable", leaseTable)
	const items = 12
	filler := strings.Repeat("x", 100<<10)
	for i := range items {
		s.mustAsk(t, "PutItem", fmt.Sprintf(
			`{"TableName":"leases","Item":{"leaseKey":{"S":"k%d"},"n":{"N":"%d"},"x":{"S":%q}}}`,
			i, i, filler))
	}
	type page struct {
		Count, ScannedCount int
		Items               []map[string]map[string]string
		LastEvaluatedKey    json.RawMessage
		ConsumedCapacity    struct{ CapacityUnits float64 }
	}
	scan := func(members string) (seen map[string]int, pages, scanned int) {
		seen = map[string]int{}
		start := ""
		for {
			var p page
			answer := s.mustAsk(t, "Scan", `{"TableName":"leases",`+members+start+
				`"ReturnConsumedCapacity":"TOTAL"}`)
			if err := json.Unmarshal([]byte(answer), &p); err != nil {
				t.Fatal(err)
			}
			pages++
			scanned += p.ScannedCount
			for _, item := range p.Items {
				seen[item["leaseKey"]["S"]]++
			}
			if len(answer) > maxPage+200<<10 {
				t.Errorf("a page of %d bytes", len(answer))
			}
			if p.LastEvaluatedKey == nil {
				return seen, pages, scanned
			}
			start = `"ExclusiveStartKey":` + string(p.LastEvaluatedKey) + `,`
		}
	}
	if seen, pages, scanned := scan(``); len(seen) != items || pages != 2 || scanned != items {
		t.Errorf("%d items in %d pages, %d looked at", len(seen), pages, scanned)
	}
	if seen, pages, _ := scan(`"Limit":7,`); len(seen) != items || pages != 2 {
		t.Errorf("limit: %d items in %d pages", len(seen), pages)
	}
	// A page that ends with the last item does not know that it does.
	if seen, pages, _ := scan(`"Limit":4,`); len(seen) != items || pages != 4 {
		t.Errorf("even limit: %d items in %d pages", len(seen), pages)
	}
	seen, _, scanned := scan(`"FilterExpression":"n < :n","ProjectionExpression":"leaseKey",
		"ExpressionAttributeValues":{":n":{"N":"5"}},`)
	if len(seen) != 5 || scanned != items {
		t.Errorf("filter: %v, %d looked at", seen, scanned)
	}
	seen, _, _ = scan(`"ScanFilter":{"n":{"ComparisonOperator":"LT","AttributeValueList":[{"N":"5"}]}},`)
	if len(seen) != 5 {
		t.Errorf("older filter: %v", seen)
	}
	var counted page
	answer := s.mustAsk(t, "Scan", `{"TableName":"leases","Select":"COUNT"}`)
	if err := json.Unmarshal([]byte(answer), &counted); err != nil || counted.Items != nil || counted.Count == 0 {
		t.Errorf("%s", answer)
	}
	all := map[string]int{}
	for segment := range 4 {
		seen, _, _ := scan(fmt.Sprintf(`"Segment":%d,"TotalSegments":4,`, segment))
		for key, n := range seen {
			all[key] += n
		}
	}
	for key, n := range all {
		if n != 1 {
			t.Errorf("%s is in %d segments", key, n)
		}
	}
	if len(all) != items {
		t.Errorf("%d items in the segments", len(all))
	}
}
