package rollup

import (
	"errors"
	"fmt"
	"math"
)

// ErrOverflow is returned if a count or a sum would leave the range of its type.
var ErrOverflow = errors.New("the sum leaves the range of the column's type")

// Merge merges from into into: two rows of one key and bucket, made of different records. The
// result is the row of all their records. It does not depend on how the records were cut into rows,
// but for the rounding of sums of Doubles and for the functions of Own columns. The error wraps
// ErrOverflow or that of an Own column, and names the column; into is then unchanged.
func (d Definition) Merge(into, from *Row) error {
	newer := from.Order.Compare(into.Order) > 0
	values := make([]Value, len(d.Columns))
	for i, c := range d.Columns {
		c.fillDefaults()
		var err error
		if values[i], err = c.merge(into.Values[i], from.Values[i], newer); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
	}
	into.Values = values
	if newer {
		into.Order = from.Order
	}
	return nil
}

// merge returns a column's value after next; newer says that next comes from a later record. The
// column has its defaults.
func (c *Column) merge(into, next Value, newer bool) (Value, error) {
	switch c.Op {
	case Count, Sum:
		return sum(into, next, c.Type)
	case Own:
		value, err := c.Merge(into, next)
		if err != nil {
			return Value{}, err
		}
		return checkOwn(value, c.Type)
	default:
		if c.Op.takes(next.compare(into, c.Type), newer) {
			return next, nil
		}
		return into, nil
	}
}

// takes reports whether a Min, Max or Last takes the next value. compared is the comparison of the
// next value with the present one.
func (op Op) takes(compared int, newer bool) bool {
	switch op {
	case Min:
		return compared < 0
	case Max:
		return compared > 0
	default:
		return newer
	}
}

func sum(a, b Value, t Type) (Value, error) {
	if t == Int {
		total := a.Int + b.Int
		if (a.Int < 0) == (b.Int < 0) && (total < 0) != (a.Int < 0) {
			return Value{}, fmt.Errorf("%w, which is wider with the type %q", ErrOverflow, Double)
		}
		return Value{Int: total}, nil
	}
	total := a.Double + b.Double
	if math.IsInf(total, 0) {
		return Value{}, ErrOverflow
	}
	return Value{Double: total}, nil
}
