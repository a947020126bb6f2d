package dynamo

import (
	"context"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/itemstore"
)

const (
	maxPage     = 1 << 20   // bytes of items that one page looks at ("Scan")
	maxSegments = 1_000_000 // TotalSegments
)

// scanRequest is a Scan's members.
type scanRequest struct {
	table      string
	capacity   string
	consistent bool
	counts     bool // Select is COUNT: no items
	filter     condition
	shown      *projection
	start      itemstore.Item
	from       itemstore.Range
}

// scan returns a page of a table's items in the order of the hashes of their partition keys.
// Limit and the size of a page count the items that were looked at, before the filter.
func (s *Service) scan(ctx context.Context, call *awswire.Call) ([]byte, error) {
	r, err := parseScan(call.Body)
	if err != nil {
		return nil, err
	}
	t, err := s.table(ctx, call.World, r.table, missingTable)
	if err != nil {
		return nil, err
	}
	if r.start != nil {
		after, err := keyOf(t.Schema(), r.start)
		if err != nil {
			return nil, validation("The provided starting key is invalid: %s", message(err))
		}
		if !r.from.Segment.Holds(after) {
			return nil, validation("The provided starting key is outside of the segment that " +
				"is scanned")
		}
		r.from.After = &after
	}
	page, err := s.items.Scan(ctx, t, r.from)
	if err != nil {
		return nil, itemFault(err, "")
	}
	return r.answer(call.World, t.Schema(), page), nil
}

func parseScan(body []byte) (*scanRequest, error) {
	m := parseMembers(body)
	r := &scanRequest{table: m.tableName()}
	r.start = m.item("ExclusiveStartKey")
	r.consistent, _ = m.flag("ConsistentRead")
	r.capacity = m.capacity()
	limit, _ := m.within("Limit", 1, 1<<31-1)
	r.from.MaxItems, r.from.MaxBytes = int(limit), maxPage
	index, hasIndex := m.text("IndexName")
	segment, hasSegment := m.within("Segment", 0, maxSegments-1)
	total, hasTotal := m.within("TotalSegments", 1, maxSegments)
	choice := m.enum("Select", "", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "COUNT",
		"SPECIFIC_ATTRIBUTES")
	f := m.form([]string{"ProjectionExpression", "FilterExpression"},
		[]string{"AttributesToGet", "ScanFilter", "ConditionalOperator"})
	if err := m.check(); err != nil {
		return nil, err
	}
	switch {
	case hasIndex:
		return nil, validation("The table does not have the specified index: %s", index)
	case hasSegment && !hasTotal:
		return nil, validation("The TotalSegments parameter is required but was not present in " +
			"the request when Segment parameter is present")
	case hasTotal && !hasSegment:
		return nil, validation("The Segment parameter is required but was not present in the " +
			"request when parameter TotalSegments is present")
	case hasTotal && segment >= total:
		return nil, validation("The Segment parameter is zero-based and must be less than "+
			"parameter TotalSegments: Segment: %d is not less than TotalSegments: %d",
			segment, total)
	}
	r.from.Segment = itemstore.Segment{Number: int(segment), Total: int(total)}
	return r, r.parse(f, choice)
}

// parse reads the filter and the projection.
func (r *scanRequest) parse(f *form, choice string) error {
	if err := f.check(); err != nil {
		return err
	}
	var err error
	if r.shown, err = f.projection(); err != nil {
		return err
	}
	if r.filter, err = f.condition("FilterExpression", "ScanFilter"); err != nil {
		return err
	}
	if err := f.finish(); err != nil {
		return err
	}
	r.counts = choice == "COUNT"
	switch {
	case choice == "ALL_PROJECTED_ATTRIBUTES":
		return invalidParameter("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using " +
			"an IndexName")
	case choice == "SPECIFIC_ATTRIBUTES" && r.shown == nil:
		return invalidParameter("Must specify the AttributesToGet or ProjectionExpression when " +
			"choosing to get SPECIFIC_ATTRIBUTES")
	case r.shown != nil && choice != "" && choice != "SPECIFIC_ATTRIBUTES":
		return validation("Cannot specify the AttributesToGet or ProjectionExpression when "+
			"choosing to get %s", choice)
	}
	return nil
}

func (r *scanRequest) answer(
	world awswire.World, schema itemstore.Schema, page itemstore.Page,
) []byte {
	var items []itemstore.Item
	for _, item := range page.Items {
		if r.filter == nil || r.filter.holds(item) {
			items = append(items, projected(r.shown, item))
		}
	}
	var a answer
	a.integer("Count", len(items))
	a.integer("ScannedCount", len(page.Items))
	if !r.counts {
		a.items("Items", items)
	}
	if page.Full {
		a.item("LastEvaluatedKey", schema.Item(page.Last))
	}
	a.capacity(r.capacity, baseName(world, r.table), readUnits(page.Bytes, r.consistent))
	return a.bytes()
}
