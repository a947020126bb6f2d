package itemstore

// Limits of DynamoDB ("Quotas in Amazon DynamoDB").
const (
	MaxItemSize = 400 << 10 // bytes of an item, as Size counts them
	MaxHashKey  = 2048      // bytes of a partition key value
	MaxRangeKey = 1024      // bytes of a sort key value
	MaxDepth    = 32        // levels of an attribute's value; the value itself is the first
)

// Size returns the item's size as DynamoDB counts it ("DynamoDB item sizes and formats"): the
// UTF-8 bytes of the names plus the sizes of the values.
func Size(item Item) int {
	size := 0
	for name, value := range item {
		size += len(name) + ValueSize(value)
	}
	return size
}

// ValueSize returns the size of one value. Strings and binaries: their bytes. Numbers: one byte
// per two significant digits, plus one, plus one for a minus sign. Bool and Null: 1. Sets: the
// sum of the elements. Lists and maps: the sum of the elements, plus 1 for each, plus 3.
func ValueSize(value Value) int {
	size := 0
	switch v := value.(type) {
	case String:
		size = len(v)
	case Binary:
		size = len(v)
	case Number:
		size = v.size()
	case Bool, Null:
		size = 1
	case StringSet:
		for _, element := range v {
			size += len(element)
		}
	case BinarySet:
		for _, element := range v {
			size += len(element)
		}
	case NumberSet:
		for _, element := range v {
			size += element.size()
		}
	case List:
		size = 3 + len(v)
		for _, element := range v {
			size += ValueSize(element)
		}
	case Map:
		size = 3 + len(v) + Size(v)
	}
	return size
}

func (n Number) size() int {
	size := 1 + (len(n.digits)+1)/2
	if n.neg {
		size++
	}
	return size
}

// levels returns the depth of a value: 1 for a scalar, a set, or an empty list or map; otherwise
// one more than its deepest element.
func levels(value Value) int {
	inner := 0
	switch v := value.(type) {
	case List:
		for _, element := range v {
			inner = max(inner, levels(element))
		}
	case Map:
		for _, element := range v {
			inner = max(inner, levels(element))
		}
	}
	return inner + 1
}
