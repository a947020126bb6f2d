package interop

// Both endpoints have these tables. hash has only a partition key, pair also has a sort key, and
// wide has three indexes.
const (
	hashTable = "hash"
	pairTable = "pair"
	wideTable = "wide"
)

var tableNames = []string{hashTable, pairTable, wideTable}

func key(name, kind string) object { return object{"AttributeName": name, "AttributeType": kind} }

func schema(names ...string) []any {
	list := []any{object{"AttributeName": names[0], "KeyType": "HASH"}}
	for _, name := range names[1:] {
		list = append(list, object{"AttributeName": name, "KeyType": "RANGE"})
	}
	return list
}

func index(name string, projection object, keys ...string) object {
	return object{"IndexName": name, "KeySchema": schema(keys...), "Projection": projection}
}

var tables = []object{
	{
		"TableName": hashTable, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema("k"),
		"AttributeDefinitions": []any{key("k", "S")},
	},
	{
		"TableName": pairTable, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema("k", "r"),
		"AttributeDefinitions": []any{key("k", "S"), key("r", "N")},
	},
	{
		"TableName": wideTable, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema("k", "r"),
		"AttributeDefinitions": []any{
			key("k", "B"), key("r", "S"), key("own", "S"), key("cnt", "N"),
		},
		"GlobalSecondaryIndexes": []any{
			index("keys", object{"ProjectionType": "KEYS_ONLY"}, "own"),
			index("some", object{
				"ProjectionType": "INCLUDE", "NonKeyAttributes": []string{"str", "obj"},
			}, "own", "r"),
			index("all", object{"ProjectionType": "ALL"}, "cnt", "k"),
		},
	},
}

// There are few keys, so that requests meet the same items.
var (
	hashKeys  = []string{"a", "b", "c"}
	rangeKeys = map[string][]string{pairTable: {"1", "2", "3", "-1"}, wideTable: {"a", "ab", "b"}}
)

func hashValue(table, text string) object {
	if table == wideTable {
		return object{"B": map[string]string{"a": "YQ==", "b": "Yg==", "c": "Yw=="}[text]}
	}
	return object{"S": text}
}

func rangeValue(table, text string) object {
	if table == pairTable {
		return object{"N": text}
	}
	return object{"S": text}
}

// allKeys returns every key that requests draw for the table.
func allKeys(table string) []object {
	var keys []object
	for _, hash := range hashKeys {
		if table == hashTable {
			keys = append(keys, object{"k": hashValue(table, hash)})
			continue
		}
		for _, text := range rangeKeys[table] {
			keys = append(keys, object{
				"k": hashValue(table, hash), "r": rangeValue(table, text),
			})
		}
	}
	return keys
}
