package dynamo

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

const maxSegments = 1_000_000 // TotalSegments ("Scan")

var scanParameters = &parameters{
	expressions: []string{projectionExpression, "FilterExpression"},
	older:       []string{"AttributesToGet", "ScanFilter", "ConditionalOperator"},
}

// scan returns a page of a table's or an index's items, in the order of the hashes of their
// partition keys. Limit and the size of a page count the items before the filter.
func (s *Service) scan(ctx context.Context, call *wire.Call) ([]byte, error) {
	r, err := parseScan(call.Body)
	if err != nil {
		return nil, err
	}
	src, err := s.source(ctx, call.World, r)
	if err != nil {
		return nil, err
	}
	if err := src.startAfter(r); err != nil {
		return nil, err
	}
	if err := s.scalarKeys(ctx, src.Table, &r.form); err != nil {
		return nil, err
	}
	if r.from.After != nil {
		in := r.from.After
		if src.index != nil {
			in = r.from.AfterIn
		}
		if !r.from.Segment.Holds(*in) {
			return nil, validation(badStart+": Invalid ExclusiveStartKey. Please use "+
				"ExclusiveStartKey with correct Segment. TotalSegments: %d Segment: %d",
				r.from.Segment.Total, r.from.Segment.Number)
		}
	}
	return s.page(ctx, call.World, src, r)
}

func parseScan(body []byte) (*read, error) {
	m := parseMembers("Scan", body)
	segment, hasSegment := m.within("Segment", 0, maxSegments-1)
	total, hasTotal := m.within("TotalSegments", 1, maxSegments)
	r := m.read(scanParameters)
	if err := m.check(); err != nil {
		return nil, err
	}
	switch {
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
	if err := r.form.check(); err != nil {
		return nil, err
	}
	if err := r.parse("ScanFilter"); err != nil {
		return nil, err
	}
	return r, r.form.finish()
}
