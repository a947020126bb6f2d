package dynamostore

import (
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/sink/rollup"
)

type item = map[string]types.AttributeValue

// The attributes of a row, beside its keys and columns, and those of the setup.
const (
	attrKey     = "pk"
	attrBucket  = "bucket"
	attrOrder   = "last_order"
	attrVersion = "version"
	attrEntries = "entries"
	attrExpires = "expires"

	attrApp        = "app"
	attrStream     = "stream"
	attrDefinition = "definition"
)

func str(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }

func num(digits string) types.AttributeValue { return &types.AttributeValueMemberN{Value: digits} }

// text returns an attribute's text; "" if it has none.
func text(from item, attribute string) string {
	if s, ok := from[attribute].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func encode(d rollup.Definition, row *rollup.StoredRow) item {
	entries := item{}
	for name, position := range row.Entries {
		entries[name] = str(position)
	}
	to := item{
		attrKey: str(row.Key), attrOrder: str(row.Order.String()),
		attrVersion: num(strconv.FormatInt(row.Version, 10)),
		attrEntries: &types.AttributeValueMemberM{Value: entries},
	}
	for i, key := range d.Keys {
		to[key.Name] = encodeValue(row.Keys[i], key.Type)
	}
	for i, column := range d.Columns {
		to[column.Name] = encodeValue(row.Values[i], column.Type)
	}
	if d.Bucket > 0 {
		to[attrBucket] = str(d.FormatBucket(row.Bucket))
	}
	if !row.Expires.IsZero() {
		to[attrExpires] = num(strconv.FormatInt(row.Expires.Unix(), 10))
	}
	return to
}

// The range of a number, but for its very ends (AWS, "Constraints in Amazon DynamoDB": positive
// 1E-130 to 9.9999999999999999999999999999999999999E+125).
const (
	leastNumber = 1e-129
	mostNumber  = 9e125
)

func encodeValue(value rollup.Value, t rollup.Type) types.AttributeValue {
	switch t {
	case rollup.Int:
		return num(strconv.FormatInt(value.Int, 10))
	case rollup.Double:
		digits := rollup.FormatDouble(value.Double)
		size := math.Abs(value.Double)
		if size != 0 && (size < leastNumber || size > mostNumber) {
			return str(digits)
		}
		return num(digits)
	default:
		return str(value.Text)
	}
}

// decode reads a row. The error wraps rollup.ErrDamaged.
func decode(d rollup.Definition, from item) (rollup.StoredRow, error) {
	r := reader{from: from}
	row := rollup.StoredRow{
		Key: r.text(attrKey), Version: r.integer(attrVersion), Entries: r.entries(),
	}
	row.Order = r.order()
	for _, key := range d.Keys {
		row.Keys = append(row.Keys, r.value(key.Name, key.Type))
	}
	for _, column := range d.Columns {
		row.Values = append(row.Values, r.value(column.Name, column.Type))
	}
	if d.Bucket > 0 {
		row.Bucket = r.time(attrBucket)
	}
	if _, found := from[attrExpires]; found {
		row.Expires = time.Unix(r.integer(attrExpires), 0).UTC()
	}
	if r.check(row.Version > 0, attrVersion); r.err != nil {
		return rollup.StoredRow{}, r.err
	}
	return row, nil
}

// reader reads attributes, and keeps the first error.
type reader struct {
	from item
	err  error
}

func (r *reader) check(ok bool, attribute string) {
	if !ok && r.err == nil {
		r.err = rollup.Damaged(attribute)
	}
}

func (r *reader) text(attribute string) string {
	value, ok := r.from[attribute].(*types.AttributeValueMemberS)
	if r.check(ok, attribute); !ok {
		return ""
	}
	return value.Value
}

func (r *reader) number(attribute string) string {
	value, ok := r.from[attribute].(*types.AttributeValueMemberN)
	if r.check(ok, attribute); !ok {
		return ""
	}
	return value.Value
}

func (r *reader) integer(attribute string) int64 {
	n, err := strconv.ParseInt(r.number(attribute), 10, 64)
	r.check(err == nil, attribute)
	return n
}

func (r *reader) double(attribute string) float64 {
	digits := ""
	if _, far := r.from[attribute].(*types.AttributeValueMemberS); far {
		digits = r.text(attribute)
	} else {
		digits = r.number(attribute)
	}
	value, err := strconv.ParseFloat(digits, 64)
	r.check(err == nil && !math.IsNaN(value) && !math.IsInf(value, 0), attribute)
	return value
}

func (r *reader) value(attribute string, t rollup.Type) rollup.Value {
	switch t {
	case rollup.Int:
		return rollup.Value{Int: r.integer(attribute)}
	case rollup.Double:
		return rollup.Value{Double: r.double(attribute)}
	default:
		return rollup.Value{Text: r.text(attribute)}
	}
}

func (r *reader) time(attribute string) time.Time {
	at, err := time.Parse(time.RFC3339, r.text(attribute))
	r.check(err == nil, attribute)
	return at.UTC()
}

func (r *reader) order() rollup.Order {
	order, err := rollup.ParseOrder(r.text(attrOrder))
	r.check(err == nil, attrOrder)
	return order
}

func (r *reader) entries() map[string]string {
	value, ok := r.from[attrEntries].(*types.AttributeValueMemberM)
	if r.check(ok, attrEntries); !ok {
		return nil
	}
	entries := make(map[string]string, len(value.Value))
	for name, position := range value.Value {
		at, ok := position.(*types.AttributeValueMemberS)
		if r.check(ok, attrEntries); ok {
			entries[name] = at.Value
		}
	}
	return entries
}
