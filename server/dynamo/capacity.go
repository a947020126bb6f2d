package dynamo

import (
	"strconv"

	"github.com/runnel-stream/runnel/internal/itemstore"
)

// Capacity units ("DynamoDB throughput capacity"): a write takes one per begun KiB of the
// larger of the item before and after; a consistent read one per begun 4 KiB, and any other
// read half of that. Both take at least what the smallest item does.
const (
	writeUnit = 1 << 10 // bytes
	readUnit  = 4 << 10 // bytes
)

func writeUnits(w itemstore.Written) float64 {
	return float64(max(1, (max(w.OldSize, w.NewSize)+writeUnit-1)/writeUnit))
}

func readUnits(size int, consistent bool) float64 {
	units := float64(max(1, (size+readUnit-1)/readUnit))
	if !consistent {
		units /= 2
	}
	return units
}

// capacity adds ConsumedCapacity, where it was asked for: how is NONE, TOTAL or INDEXES.
func (a *answer) capacity(how, table string, units float64) {
	if how == "NONE" {
		return
	}
	number := strconv.FormatFloat(units, 'f', -1, 64)
	a.name("ConsumedCapacity")
	a.json = append(appendText(append(a.json, `{"TableName":`...), table), `,"CapacityUnits":`...)
	a.json = append(a.json, number...)
	if how == "INDEXES" {
		a.json = append(append(a.json, `,"Table":{"CapacityUnits":`...), number+"}"...)
	}
	a.json = append(a.json, '}')
}
