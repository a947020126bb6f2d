package interop

// legacyOperators maps each ComparisonOperator to its number of values; -1 means one or more.
var legacyOperators = map[string]int{
	"EQ": 1, "NE": 1, "LT": 1, "LE": 1, "GT": 1, "GE": 1, "BETWEEN": 2, "IN": -1, "NULL": 0,
	"NOT_NULL": 0, "CONTAINS": 1, "NOT_CONTAINS": 1, "BEGINS_WITH": 1,
}

var legacyOperatorNames = []string{
	"EQ", "NE", "LT", "LE", "GT", "GE", "BETWEEN", "IN", "NULL", "NOT_NULL", "CONTAINS",
	"NOT_CONTAINS", "BEGINS_WITH",
}

// comparison draws a ComparisonOperator and its values for an attribute of that kind.
func (d *draw) comparison(kind string) object {
	operator := one(d, legacyOperatorNames)
	count := legacyOperators[operator]
	if count < 0 {
		count = 1 + d.IntN(3)
	}
	if d.wrong(12) {
		count = d.IntN(4)
	}
	if operator == "BEGINS_WITH" && kind != "B" && !d.wrong(4) {
		kind = "S"
	}
	values := []any{}
	for range count {
		if d.wrong(10) {
			kind = one(d, kinds)
		}
		values = append(values, d.valueOf(kind, 1))
	}
	if d.wrong(20) {
		operator = one(d, []string{"", "eq", "LIKE"})
	}
	c := object{"ComparisonOperator": operator}
	if len(values) > 0 || d.in(8) {
		c["AttributeValueList"] = values
	}
	if d.wrong(30) {
		delete(c, "ComparisonOperator")
	}
	return c
}

// legacyConditions draws conditions for some attributes. each draws one condition.
func (d *draw) legacyConditions(request object, member string, each func(kind string) object) {
	conditions := object{}
	for range 1 + d.IntN(3) {
		name := one(d, attributeNames)
		kind := attributes[name]
		if kind == "" || d.in(6) {
			kind = one(d, kinds)
		}
		conditions[name] = each(kind)
	}
	if d.wrong(30) {
		clear(conditions)
	}
	request[member] = conditions
	if len(conditions) > 1 && d.in(2) || d.wrong(20) {
		request["ConditionalOperator"] = one(d, []string{"AND", "OR"})
	}
	if d.wrong(30) {
		request["ConditionalOperator"] = one(d, []string{"XOR", "and", ""})
	}
}

// expectation draws an attribute's condition for Expected.
func (d *draw) expectation(kind string) object {
	var e object
	switch d.IntN(6) {
	case 0:
		e = object{"Exists": false}
	case 1:
		e = object{"Exists": true, "Value": d.valueOf(kind, 1)}
	case 2:
		e = object{"Value": d.valueOf(kind, 1)}
	case 3:
		e = d.comparison(kind)
		if list, _ := e["AttributeValueList"].([]any); len(list) == 1 {
			delete(e, "AttributeValueList")
			e["Value"] = list[0]
		}
	default:
		e = d.comparison(kind)
	}
	if d.wrong(8) {
		e[one(d, []string{"Exists", "Value", "ComparisonOperator", "AttributeValueList"})] = one(d, []any{true, false, "EQ", []any{object{"N": "1"}}, object{"N": "1"}, nil})
	}
	return e
}

// attributeUpdates draws AttributeUpdates.
func (d *draw) attributeUpdates() object {
	updates := object{}
	for range d.IntN(4) {
		name := one(d, attributeNames)
		action := one(d, []string{"PUT", "ADD", "DELETE"})
		update := object{"Action": action}
		kind := attributes[name]
		if d.in(5) {
			kind = one(d, kinds)
		}
		if action == "ADD" && !d.wrong(3) && !isOneOf(kind, "N", "SS", "NS", "BS", "L") {
			kind = "N"
		}
		if action == "DELETE" && !d.wrong(3) && !isOneOf(kind, "SS", "NS", "BS") || d.wrong(10) {
			kind = ""
		}
		if kind != "" {
			update["Value"] = d.valueOf(kind, 2)
		}
		if d.wrong(20) {
			update["Action"] = one(d, []string{"", "put", "SET"})
		}
		updates[name] = update
	}
	if d.wrong(25) {
		updates[one(d, []string{"k", "r", ""})] = object{
			"Action": "PUT", "Value": d.valueOf("S", 0), // without an Action it does nothing in DynamoDB Local
		}
	}
	return updates
}

func isOneOf(text string, list ...string) bool {
	for _, other := range list {
		if text == other {
			return true
		}
	}
	return false
}
