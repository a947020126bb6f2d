package interop

import "maps"

// indexKeys are the keys of table wide's indexes; "" is the table's own.
var indexKeys = map[string][]string{"keys": {"own"}, "some": {"own", "r"}, "all": {"cnt", "k"}}

// query draws a Query.
func (d *draw) query(table string, body object) {
	keys := []string{"k", "r"}
	if table == hashTable {
		keys = keys[:1]
	}
	if table == wideTable && d.in(2) {
		name := one(d, []string{"keys", "some", "all"})
		body["IndexName"], keys = name, indexKeys[name]
	}
	e := d.expressions()
	if d.in(3) {
		d.legacyKeys(table, keys, body)
		if d.in(2) {
			d.legacyConditions(body, "QueryFilter", d.comparison)
		}
		d.shown(body, nil)
	} else {
		body["KeyConditionExpression"] = e.keyCondition(table, keys)
		if d.in(2) {
			body["FilterExpression"] = e.condition(1)
		}
		d.shown(body, e)
		e.into(body)
	}
	if d.in(2) {
		body["ScanIndexForward"] = d.in(2)
	}
	d.page(table, keys, body)
}

// keyValue draws a value for a key attribute.
func (d *draw) keyValue(table, name string) object {
	if d.wrong(10) {
		return d.value(0)
	}
	switch {
	case name == "k":
		return hashValue(table, one(d, hashKeys))
	case name == "r" && d.in(2):
		return rangeValue(table, one(d, rangeKeys[table]))
	case name == "r" && table == wideTable || name == "own":
		return object{"S": one(d, someTexts[1:5])}
	}
	return object{"N": one(d, someNumbers)}
}

func (e *expressions) keyCondition(table string, keys []string) string {
	if e.wrong(12) {
		return one(e.draw, wrongKeyConditions)
	}
	text := e.name(keys[0]) + " = " + e.constant(e.keyValue(table, keys[0]))
	if e.wrong(12) {
		text = e.name(keys[0]) + one(e.draw, []string{"<", "<>", ">="}) +
			e.constant(e.keyValue(table, keys[0]))
	}
	if len(keys) == 1 || e.in(4) {
		return text
	}
	name := keys[1]
	value := func() string { return e.constant(e.keyValue(table, name)) }
	sort := ""
	switch e.IntN(6) {
	case 0:
		low := e.keyValue(table, name)
		high := low
		if e.wrong(2) {
			low = e.keyValue(table, name) // low may be above high
		}
		sort = e.name(name) + " BETWEEN " + e.constant(low) + " AND " + e.constant(high)
	case 1:
		sort = e.name(name) + " >= " + value()
		if name == "r" && table == wideTable || e.wrong(3) {
			sort = "begins_with(" + e.name(name) + ", " + value() + ")"
		}
	default:
		sort = e.name(name) + one(e.draw, []string{" = ", "<", "<=", " > ", ">="}) + value()
	}
	if e.in(4) {
		return sort + " AND " + text
	}
	return text + " and " + sort
}

var wrongKeyConditions = []string{
	"", "k", "k = r", "attribute_exists(k)", "NOT k = r", "size(k) = r", "k.x = r", "k IN (r)",
	"k = str OR r = str", "contains(k, str)", "attribute_type(k, str)", "k <> r",
	"(k = r", "k = k", "k BETWEEN r AND str", "begins_with(k, r)", "attribute_not_exists(k)",
}

// legacyKeys draws KeyConditions.
func (d *draw) legacyKeys(table string, keys []string, body object) {
	conditions := object{keys[0]: object{
		"ComparisonOperator": "EQ", "AttributeValueList": []any{d.keyValue(table, keys[0])},
	}}
	if len(keys) > 1 && d.in(2) {
		operator := one(d, []string{"EQ", "LT", "LE", "GT", "GE", "BETWEEN", "BEGINS_WITH"})
		values := []any{d.keyValue(table, keys[1])}
		if operator == "BETWEEN" {
			values = append(values, d.keyValue(table, keys[1]))
		}
		if d.wrong(8) {
			operator = one(d, legacyOperatorNames)
		}
		if d.wrong(10) {
			values = append(values, d.keyValue(table, keys[1]))
		}
		conditions[keys[1]] = object{
			"ComparisonOperator": operator, "AttributeValueList": values,
		}
	}
	switch {
	case d.wrong(12):
		conditions[keys[0]] = d.comparison("S")
	case d.wrong(12):
		conditions["str"] = d.comparison("S")
	case d.wrong(20):
		delete(conditions, keys[0])
	}
	body["KeyConditions"] = conditions
}

// page draws the common parameters of Query and Scan.
func (d *draw) page(table string, keys []string, body object) {
	if d.in(3) {
		body["Limit"] = 1 + d.IntN(4)
	}
	if d.wrong(30) {
		body["Limit"] = one(d, []int{0, -1})
	}
	if d.in(4) && body["IndexName"] == nil || d.wrong(20) {
		body["ConsistentRead"] = d.in(2)
	}
	choices := []string{"COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"}
	switch {
	case body["ProjectionExpression"] != nil || body["AttributesToGet"] != nil:
		choices = []string{"SPECIFIC_ATTRIBUTES"}
	case body["IndexName"] == nil:
		choices = choices[:2]
	}
	if d.in(5) {
		body["Select"] = one(d, choices)
	}
	if d.wrong(20) {
		body["Select"] = one(d, []string{
			"COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES",
		})
	}
	if d.wrong(40) {
		body["Select"] = "SOME"
	}
	if d.wrong(40) {
		body["IndexName"] = one(d, []string{"none-such", "", "x", "a b"})
	}
	d.capacity(body)
	if !d.in(5) || body["TotalSegments"] != nil { // of which each endpoint has its own
		return
	}
	start := maps.Clone(one(d, allKeys(table)))
	for _, name := range keys {
		if start[name] == nil {
			start[name] = d.keyValue(table, name)
		}
	}
	if d.wrong(4) {
		delete(start, one(d, []string{"k", "r", "own"}))
	}
	if d.wrong(6) {
		start[one(d, []string{"k", "r", "own", "more"})] = d.value(1)
	}
	body["ExclusiveStartKey"] = start
}

// scan draws a Scan.
func (d *draw) scan(table string, body object) {
	keys := []string{"k", "r"}
	if table == hashTable {
		keys = keys[:1]
	}
	if table == wideTable && d.in(3) {
		name := one(d, []string{"keys", "some", "all"})
		body["IndexName"], keys = name, indexKeys[name]
	}
	switch d.IntN(4) {
	case 0:
		d.legacyConditions(body, "ScanFilter", d.comparison)
		d.shown(body, nil)
	case 1:
		d.shown(body, nil)
	default:
		e := d.expressions()
		body["FilterExpression"] = e.condition(2)
		d.shown(body, e)
		e.into(body)
	}
	if _, indexed := body["IndexName"]; indexed &&
		(body["FilterExpression"] != nil || body["ScanFilter"] != nil) {
		// DynamoDB Local also filters by attributes that an index does not have.
		body["IndexName"], keys = "all", indexKeys["all"]
	}
	if d.in(3) {
		total := 1 + d.IntN(4)
		body["TotalSegments"] = total
		body["Segment"] = d.IntN(total)
		switch {
		case d.wrong(8):
			body["Segment"] = one(d, []int{-1, total, 1_000_000})
		case d.wrong(8):
			body["TotalSegments"] = one(d, []int{0, -1, 1_000_001})
		case d.wrong(8):
			delete(body, one(d, []string{"Segment", "TotalSegments"}))
		}
	}
	d.page(table, keys, body)
}
