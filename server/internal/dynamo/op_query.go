package dynamo

import (
	"context"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

var queryParameters = &parameters{
	expressions: []string{projectionExpression, "FilterExpression", "KeyConditionExpression"},
	older:       []string{"AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"},
}

// query returns a page of the items of one partition key, of a table or of an index, in the
// order of their sort keys.
func (s *Service) query(ctx context.Context, call *wire.Call) ([]byte, error) {
	r, keys, err := parseQuery(call.Body)
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
	if err := keys.check(src.in); err != nil {
		return nil, err
	}
	keys.narrow(src.in, &r.from)
	if err := src.checkStart(r, keys); err != nil {
		return nil, err
	}
	if err := src.sparesKey(r); err != nil {
		return nil, err
	}
	if err := s.scalarKeys(ctx, src.Table, &r.form); err != nil {
		return nil, err
	}
	if err := src.checkFilter(r); err != nil {
		return nil, err
	}
	return s.page(ctx, call.World, src, r)
}

func parseQuery(body []byte) (*read, keyConditions, error) {
	m := parseMembers("Query", body)
	forward, hasForward := m.flag("ScanIndexForward")
	r := m.read(queryParameters)
	r.from.Backward = hasForward && !forward
	if err := m.check(); err != nil {
		return nil, nil, err
	}
	f := &r.form
	text, hasText := f.expression("KeyConditionExpression")
	older := f.legacy("KeyConditions")
	if !hasText { // then KeyConditions may accompany other expressions
		f.older = slices.DeleteFunc(f.older,
			func(given parameter[value]) bool { return given.name == "KeyConditions" })
	}
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	var expression condition
	if hasText {
		var err error
		expression, err = parseCondition("KeyConditionExpression", text, &f.placeholders)
		if err != nil {
			return nil, nil, err
		}
	}
	if err := r.parse("QueryFilter"); err != nil {
		return nil, nil, err
	}
	keys, err := queriedKeys(expression, older)
	if err != nil {
		return nil, nil, err
	}
	return r, keys, f.finish()
}

// queriedKeys returns the request's key conditions: those of the KeyConditionExpression, or those
// of KeyConditions.
func queriedKeys(expression condition, older value) (keyConditions, error) {
	switch {
	case expression != nil:
		return expressedKeys(expression)
	case older.isThere():
		return legacyKeys(older)
	}
	return nil, validation("Either the KeyConditions or KeyConditionExpression parameter must " +
		"be specified in the request.")
}

// checkStart refuses a starting key that the query itself would not have returned. Its texts, one
// of them odd, are those of dynalite's tests, which ran against DynamoDB.
func (src *source) checkStart(r *read, keys keyConditions) error {
	if r.start == nil {
		return nil
	}
	sort, conditioned := keys[src.in.Range.Name]
	elsewhere := !itemstore.Equal(r.from.Hash, r.start[src.in.Hash.Name])
	switch {
	case conditioned && !sort.condition().holds(r.start):
		return validation("The provided starting key does not match the range key predicate")
	case conditioned && elsewhere:
		return validation("The query can return at most one row and cannot be restarted")
	case elsewhere:
		return validation("The provided starting key is outside query boundaries based on " +
			"provided conditions")
	}
	return nil
}

// sparesKey refuses a filter on key attributes, which only key conditions may use.
func (src *source) sparesKey(r *read) error {
	name := "Filter Expression"
	if _, found := r.form.expression("FilterExpression"); !found {
		name = "QueryFilter"
	}
	for _, attribute := range attributesOf(r.filter) {
		if src.in.Has(attribute) {
			return validation("%s can only contain non-primary key attributes: Primary key "+
				"attribute: %s", name, attribute)
		}
	}
	return nil
}

// checkFilter refuses a filter on attributes that the index does not hold. A scan accepts such a
// filter, as if the items had no such attribute.
func (src *source) checkFilter(r *read) error {
	if src.index == nil || src.index.Projection == itemstore.ProjectAll {
		return nil
	}
	names := slices.Compact(slices.Sorted(slices.Values(attributesOf(r.filter))))
	if hidden := src.hidden(names); hidden != "" {
		return invalidParameter("Secondary index %s does not project one or more filter "+
			"attributes: [%s]", src.index.Name, hidden)
	}
	return nil
}

// attributesOf returns the names of the attributes in a condition, in the order of the text.
func attributesOf(c condition) []string {
	var names []string
	visit(c, func(_ condition, operands ...operand) {
		for _, o := range operands {
			if size, ok := o.(sizeOperand); ok {
				o = size.of
			}
			if at, ok := o.(pathOperand); ok {
				names = append(names, at.path[0].name)
			}
		}
	})
	return names
}
