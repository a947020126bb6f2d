package rollup

import "fmt"

// MaxRow is the size that a row may have, in bytes. DynamoDB takes 400 KiB (AWS, "Constraints in
// Amazon DynamoDB"). The rest is room to see the limit come.
const MaxRow = 300 << 10

// Bytes of a stored number and of a value inside a map, at most (AWS, "DynamoDB item sizes and
// formats").
const (
	numberSize  = 21
	perMapValue = 1
)

// checkSize returns nil, or an error that wraps ErrRowTooLarge and names the largest part.
func (d Definition) checkSize(row *StoredRow) (size int, err error) {
	largest, most := "", 0
	add := func(what string, n int) {
		if size += n; n > most {
			largest, most = what, n
		}
	}
	add("the key", len("pk")+len(row.Key))
	for i, f := range d.fields() {
		value := Value{}
		if i < len(row.Keys) {
			value = row.Keys[i]
		} else {
			value = row.Values[i-len(row.Keys)]
		}
		add("the column "+f.Name, len(f.Name)+max(len(value.Text), numberSize))
	}
	const others = len("bucket2006-01-02T15:04:05.000Z" + "last_order" + "version" + "expires")
	add("the order", others+len(row.Order.String())+2*numberSize)
	entries := len("entries") + 3
	for name, position := range row.Entries {
		entries += perMapValue + len(name) + len(position)
	}
	add(fmt.Sprintf("the positions of %d shards", len(row.Entries)), entries)
	if size <= MaxRow {
		return size, nil
	}
	return size, fmt.Errorf("%w: it would have %d bytes, %d of them for %s, and %d are allowed: "+
		"begin another table, with smaller values, more keys or a shorter bucket",
		ErrRowTooLarge, size, most, largest, MaxRow)
}
