package dynamo

import (
	"strconv"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// Capacity units ("DynamoDB throughput capacity"): a write uses one per started KiB of the larger
// of the item before and after. A consistent read uses one per started 4 KiB, any other read half
// of that. Each uses at least the capacity of the smallest item. A transaction uses twice as
// much.
const (
	writeUnit = 1 << 10 // bytes
	readUnit  = 4 << 10 // bytes
)

func writeUnits(oldSize, newSize int) float64 {
	return float64(max(1, (max(oldSize, newSize)+writeUnit-1)/writeUnit))
}

func readUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+readUnit-1)/readUnit))
	if !consistent {
		units /= 2
	}
	return units
}

// consumed holds the capacity that a call has used of a table and of its indexes.
type consumed struct {
	table   string
	own     float64
	indexes map[string]float64
	kind    string // of a transaction: ReadCapacityUnits or WriteCapacityUnits
}

// write adds a write ("Write capacity unit consumption" of global secondary indexes). For an
// index too it is one write of the larger item, but two writes if the index key changes.
func (c *consumed) write(w itemstore.Written, times float64) {
	c.own += times * writeUnits(w.OldSize, w.NewSize)
	for _, change := range w.Indexes {
		if c.indexes == nil {
			c.indexes = map[string]float64{}
		}
		units := writeUnits(change.OldSize, change.NewSize)
		if change.Moved {
			units = writeUnits(change.OldSize, 0) + writeUnits(change.NewSize, 0)
		}
		c.indexes[change.Index] += times * units
	}
}

// refuse adds a write whose condition did not hold. It uses the capacity of the item that is there
// ("Condition expressions"), and none of the indexes.
func (c *consumed) refuse(w itemstore.Written, times float64) {
	c.own += times * writeUnits(w.OldSize, 0)
}

func (c *consumed) add(other consumed) {
	c.own += other.own
	for name, units := range other.indexes {
		if c.indexes == nil {
			c.indexes = map[string]float64{}
		}
		c.indexes[name] += units
	}
}

// total is the capacity of the table with its indexes.
func (c *consumed) total() float64 {
	total := c.own
	for _, units := range c.indexes {
		total += units
	}
	return total
}

// capacity adds ConsumedCapacity as requested: how is NONE, TOTAL or INDEXES.
func (a *answer) capacity(how string, c consumed) {
	if how != "NONE" {
		a.name("ConsumedCapacity")
		a.json = append(a.json, c.describe(how).bytes()...)
	}
}

func (c *consumed) describe(how string) *answer {
	var a answer
	a.name("TableName")
	a.json = appendText(a.json, c.table)
	c.units(&a, c.total())
	if how != "INDEXES" {
		return &a
	}
	var own answer
	c.units(&own, c.own)
	a.name("Table")
	a.json = append(a.json, own.bytes()...)
	if len(c.indexes) == 0 {
		return &a
	}
	var indexes answer
	for _, name := range sortedKeys(c.indexes) {
		var one answer
		c.units(&one, c.indexes[name])
		indexes.name(name)
		indexes.json = append(indexes.json, one.bytes()...)
	}
	a.name("GlobalSecondaryIndexes")
	a.json = append(a.json, indexes.bytes()...)
	return &a
}

func (c *consumed) units(a *answer, units float64) {
	for _, name := range []string{"CapacityUnits", c.kind} {
		if name != "" {
			a.name(name)
			a.json = strconv.AppendFloat(a.json, units, 'f', -1, 64)
		}
	}
}

// Use is the capacity that calls have used of a table and of its indexes since the start.
type Use struct {
	World       wire.World
	Table       string
	Read, Write float64 // units
}

// Uses returns the use of every table of every account and region, in order.
func (s *Service) Uses() []Use {
	tables := s.items.Inspect()
	uses := make([]Use, len(tables))
	for i, t := range tables {
		uses[i] = Use{t.Meta.World, t.Meta.Name, t.ReadUnits, t.WriteUnits}
	}
	return uses
}
