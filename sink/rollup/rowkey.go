package rollup

import (
	"strconv"
	"strings"
	"time"
)

// maxRowKey is the size of a hash key in DynamoDB, in bytes (AWS, "Constraints in Amazon
// DynamoDB"). It holds for other stores, too, so that all of them refuse the same records.
const maxRowKey = 2048

// RowKey returns the primary key of a row: the values of its keys and its bucket, with "|" between
// them, such as "#en|2026-01-02T03:04:00Z". A "|" or "\" in a text has a "\" before it, and an
// empty text is "\e". So different rows have different keys, and no key is empty.
func (d Definition) RowKey(row *Row) string {
	parts := make([]string, 0, len(d.Keys)+1)
	for i, key := range d.Keys {
		switch value := row.Keys[i]; key.Type {
		case Int:
			parts = append(parts, strconv.FormatInt(value.Int, 10))
		case Double:
			parts = append(parts, FormatDouble(value.Double))
		default:
			parts = append(parts, escapeKey(value.Text))
		}
	}
	if d.Bucket > 0 {
		parts = append(parts, d.FormatBucket(row.Bucket))
	}
	return strings.Join(parts, "|")
}

var keyEscapes = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

func escapeKey(text string) string {
	if text == "" {
		return `\e`
	}
	return keyEscapes.Replace(text)
}

// FormatBucket returns a bucket's beginning in RFC 3339. All texts of a definition have the same
// length, so their bytewise order is that of time.
func (d Definition) FormatBucket(bucket time.Time) string {
	layout := "2006-01-02T15:04:05Z"
	if d.Bucket%time.Second != 0 {
		layout = "2006-01-02T15:04:05.000Z"
	}
	return bucket.UTC().Format(layout)
}

// FormatDouble returns the shortest text from which strconv.ParseFloat makes the same number.
func FormatDouble(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
