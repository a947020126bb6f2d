package dynamo

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

const maxPage = 1 << 20 // bytes of items per page, before the filter ("Query", "Scan")

// read is the common part of Query and Scan: the request for a page of a table or of an index.
type read struct {
	table      string // as the request names it
	choice     string // Select
	capacity   string
	consistent bool
	form       form
	filter     condition
	shown      *projection
	start      itemstore.Item
	from       itemstore.Range
}

// read takes the common members.
func (m *members) read(operation *parameters) *read {
	r := &read{table: m.tableName()}
	r.start = m.startKey()
	r.consistent, _ = m.flag("ConsistentRead")
	r.capacity = m.capacity()
	limit, _ := m.within("Limit", 1, 1<<31-1)
	r.from.MaxItems, r.from.MaxBytes = int(limit), maxPage
	if index, found := m.text("IndexName"); found {
		m.checkName("IndexName", index)
		r.from.Index = index
	}
	r.choice = m.enum("Select", "", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "COUNT",
		"SPECIFIC_ATTRIBUTES")
	r.form = m.form(operation)
	return r
}

const badStart = "The provided starting key is invalid"

// startKey takes ExclusiveStartKey; nil if it is missing.
func (m *members) startKey() itemstore.Item {
	member := m.take("ExclusiveStartKey")
	if !member.isThere() {
		return nil
	}
	item, fault := parseItem(member, 0)
	if fault != nil {
		if fault.Code == coralValidation {
			fault = validation(badStart+": %s", fault.Message)
		}
		m.fail(fault)
	}
	return item
}

// parse parses the filter, or its older form, and the projection.
func (r *read) parse(older string) error {
	var err error
	if r.filter, err = r.form.condition("FilterExpression", older); err != nil {
		return err
	}
	if r.shown, err = r.form.projection(); err != nil {
		return err
	}
	switch {
	case r.choice == "ALL_PROJECTED_ATTRIBUTES" && r.from.Index == "":
		return invalidParameter("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using " +
			"an IndexName")
	case r.choice == "SPECIFIC_ATTRIBUTES" && r.shown == nil:
		return invalidParameter("Must specify the AttributesToGet or ProjectionExpression when " +
			"choosing to get SPECIFIC_ATTRIBUTES")
	case r.shown != nil && r.choice != "" && r.choice != "SPECIFIC_ATTRIBUTES":
		return validation("Cannot specify the AttributesToGet or ProjectionExpression when "+
			"choosing to get %s", r.choice)
	}
	return nil
}

// source is the table or index of a read.
type source struct {
	*itemstore.Table
	table itemstore.Schema // the primary key
	in    itemstore.Schema // the key of the table or index
	index *itemstore.Index // nil: the table
}

// source looks up the table and the index.
func (s *Service) source(
	ctx context.Context, world wire.World, r *read,
) (*source, error) {
	t, err := s.table(ctx, world, r.table, missingTable)
	if err != nil {
		return nil, err
	}
	src := &source{Table: t, table: t.Schema(), in: t.Schema()}
	if r.from.Index == "" {
		return src, nil
	}
	index, err := s.items.Index(ctx, t, r.from.Index)
	if errors.Is(err, itemstore.ErrIndexNotFound) {
		return nil, validation("The table does not have the specified index: %s", r.from.Index)
	}
	if err != nil {
		return nil, itemFault(err, "")
	}
	src.index, src.in = &index, index.Schema
	if r.consistent {
		return nil, validation("Consistent reads are not supported on global secondary indexes")
	}
	return src, nil
}

// names returns the attributes of a starting key: those of the table's key and the index's.
func (src *source) names() []string {
	var names []string
	for _, schema := range []itemstore.Schema{src.in, src.table} {
		for _, part := range []itemstore.KeyAttribute{schema.Hash, schema.Range} {
			if part.Name != "" && !slices.Contains(names, part.Name) {
				names = append(names, part.Name)
			}
		}
	}
	return names
}

// startAfter starts the page after the request's ExclusiveStartKey, if there is one.
func (src *source) startAfter(r *read) error {
	if r.start == nil {
		return nil
	}
	names := src.names()
	for _, name := range names {
		if r.start[name] == nil {
			return validation(badStart)
		}
	}
	if len(r.start) != len(names) {
		return validation(badStart)
	}
	key, err := src.table.Key(r.start)
	if err != nil {
		return validation(badStart + ": The provided key element does not match the schema")
	}
	in, err := src.in.Key(r.start)
	if err != nil {
		return validation(badStart + ": The provided key element does not match the schema")
	}
	for _, fault := range []error{keyFault(src.table, key), keyFault(src.in, in)} {
		if fault != nil {
			return validation(badStart+": %s", message(fault))
		}
	}
	r.from.After = &key
	if src.index != nil {
		r.from.AfterIn = &in
	}
	return nil
}

// checkShown refuses attributes that the index does not hold.
func (src *source) checkShown(r *read) error {
	if src.index == nil || src.index.Projection == itemstore.ProjectAll {
		return nil
	}
	if r.choice == "ALL_ATTRIBUTES" {
		return invalidParameter("Select type ALL_ATTRIBUTES is not supported for global "+
			"secondary index %s because its projection type is not ALL", src.index.Name)
	}
	if r.shown == nil {
		return nil
	}
	var names []string
	for _, child := range r.shown.children {
		names = append(names, child.step.name)
	}
	if hidden := src.hidden(names); hidden != "" {
		return invalidParameter("Global secondary index %s does not project [%s]",
			src.index.Name, hidden)
	}
	return nil
}

// hidden returns the attributes that the index does not hold, for a message.
func (src *source) hidden(names []string) string {
	var hidden []string
	for _, name := range names {
		if !slices.Contains(src.names(), name) && !slices.Contains(src.index.Include, name) {
			hidden = append(hidden, name)
		}
	}
	return strings.Join(hidden, ", ")
}

// readPage reads the page. The caller calls done when the answer is made.
func (s *Service) readPage(
	ctx context.Context, src *source, r *read,
) (page itemstore.Page, done func(), err error) {
	begin := r.from
	begin.MaxBytes = smallPage
	page, err = s.items.Scan(ctx, src.Table, begin)
	if err != nil || page.Bytes < smallPage || len(page.Items) == r.from.MaxItems {
		return page, func() {}, err
	}
	page = itemstore.Page{} // the wait must hold nothing
	if done, err = s.pageTurn(ctx); err == nil {
		page, err = s.items.Scan(ctx, src.Table, r.from)
	}
	return page, done, err
}

// page reads the page and makes the answer.
func (s *Service) page(
	ctx context.Context, world wire.World, src *source, r *read,
) ([]byte, error) {
	if err := src.checkShown(r); err != nil {
		return nil, err
	}
	page, done, err := s.readPage(ctx, src, r)
	defer done()
	if errors.Is(err, itemstore.ErrIndexNotFound) { // deleted concurrently
		return nil, validation("The table does not have the specified index: %s", r.from.Index)
	}
	if err != nil {
		return nil, itemFault(err, "")
	}
	var items []itemstore.Item
	for _, item := range page.Items {
		if r.filter == nil || r.filter.holds(item) {
			items = append(items, projected(r.shown, item))
		}
	}
	var a answer
	a.integer("Count", len(items))
	a.integer("ScannedCount", len(page.Items))
	if r.choice != "COUNT" {
		a.items("Items", items)
	}
	if page.Full {
		last := itemstore.Item{}
		for _, name := range src.names() {
			last[name] = page.Items[len(page.Items)-1][name]
		}
		a.item("LastEvaluatedKey", last)
	}
	used := consumed{table: baseName(world, r.table)}
	units := readUnits(page.Bytes, r.consistent)
	if src.index == nil {
		used.own = units
	} else {
		used.indexes = map[string]float64{src.index.Name: units}
	}
	src.Units().AddRead(used.total())
	a.capacity(r.capacity, used)
	return a.bytes(), nil
}
