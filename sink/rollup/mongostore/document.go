package mongostore

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/runnel-stream/runnel/sink/rollup"
)

// The fields of a row, beside its keys and columns, and those of the setup.
const (
	fieldID      = "_id"
	fieldBucket  = "bucket"
	fieldOrder   = "last_order"
	fieldVersion = "version"
	fieldEntries = "entries"
	fieldExpires = "expires"

	fieldApp        = "app"
	fieldStream     = "stream"
	fieldDefinition = "definition"
)

func encode(d rollup.Definition, row *rollup.StoredRow) bson.D {
	document := bson.D{{Key: fieldID, Value: row.Key}}
	add := func(field string, value any) {
		document = append(document, bson.E{Key: field, Value: value})
	}
	for i, key := range d.Keys {
		add(key.Name, encodeValue(row.Keys[i], key.Type))
	}
	if d.Bucket > 0 {
		add(fieldBucket, bson.NewDateTimeFromTime(row.Bucket))
	}
	for i, column := range d.Columns {
		add(column.Name, encodeValue(row.Values[i], column.Type))
	}
	add(fieldOrder, row.Order.String())
	add(fieldVersion, row.Version)
	add(fieldEntries, row.Entries)
	if !row.Expires.IsZero() {
		add(fieldExpires, bson.NewDateTimeFromTime(row.Expires))
	}
	return document
}

func encodeValue(value rollup.Value, t rollup.Type) any {
	switch t {
	case rollup.Int:
		return value.Int
	case rollup.Double:
		return value.Double
	default:
		return value.Text
	}
}

// decode reads a row. The error wraps rollup.ErrDamaged.
func decode(d rollup.Definition, document bson.Raw) (rollup.StoredRow, error) {
	r := reader{from: document}
	row := rollup.StoredRow{
		Key: r.text(fieldID), Version: r.integer(fieldVersion), Entries: r.entries(),
	}
	order, err := rollup.ParseOrder(r.text(fieldOrder))
	r.check(err == nil, fieldOrder)
	row.Order = order
	for _, key := range d.Keys {
		row.Keys = append(row.Keys, r.value(key.Name, key.Type))
	}
	for _, column := range d.Columns {
		row.Values = append(row.Values, r.value(column.Name, column.Type))
	}
	if d.Bucket > 0 {
		row.Bucket = r.time(fieldBucket)
	}
	if !document.Lookup(fieldExpires).IsZero() {
		row.Expires = r.time(fieldExpires)
	}
	if r.check(row.Version > 0, fieldVersion); r.err != nil {
		return rollup.StoredRow{}, r.err
	}
	return row, nil
}

// reader reads fields, and keeps the first error.
type reader struct {
	from bson.Raw
	err  error
}

func (r *reader) check(ok bool, field string) {
	if !ok && r.err == nil {
		r.err = rollup.Damaged(field)
	}
}

func (r *reader) text(field string) string {
	value, ok := r.from.Lookup(field).StringValueOK()
	r.check(ok, field)
	return value
}

func (r *reader) integer(field string) int64 {
	value, ok := r.from.Lookup(field).Int64OK()
	r.check(ok, field)
	return value
}

func (r *reader) double(field string) float64 {
	value, ok := r.from.Lookup(field).DoubleOK()
	r.check(ok && !math.IsNaN(value) && !math.IsInf(value, 0), field)
	return value
}

func (r *reader) value(field string, t rollup.Type) rollup.Value {
	switch t {
	case rollup.Int:
		return rollup.Value{Int: r.integer(field)}
	case rollup.Double:
		return rollup.Value{Double: r.double(field)}
	default:
		return rollup.Value{Text: r.text(field)}
	}
}

func (r *reader) time(field string) time.Time {
	value, ok := r.from.Lookup(field).TimeOK()
	r.check(ok, field)
	return value.UTC()
}

func (r *reader) entries() map[string]string {
	document, ok := r.from.Lookup(fieldEntries).DocumentOK()
	elements, err := document.Elements()
	if r.check(ok && err == nil, fieldEntries); !ok || err != nil {
		return nil
	}
	entries := make(map[string]string, len(elements))
	for _, element := range elements {
		position, ok := element.Value().StringValueOK()
		r.check(ok, fieldEntries)
		entries[element.Key()] = position
	}
	return entries
}
