package interop

import (
	"fmt"
	"maps"
)

// key draws a key. inItem means that other attributes come beside it.
func (d *draw) key(table string, inItem bool) object {
	key := maps.Clone(one(d, allKeys(table)))
	if table == pairTable && d.in(8) {
		key["r"] = object{"N": one(d, []string{"1.0", "01", "1E0", "10e-1"})}
	}
	switch {
	case d.wrong(30):
		delete(key, "k")
	case d.wrong(30):
		delete(key, "r")
	case d.wrong(30) && !inItem:
		key["more"] = object{"S": "a"}
	case d.wrong(30):
		key["k"] = object{"S": ""}
	case d.wrong(30):
		key["k"] = d.value(1)
	case d.wrong(30):
		key["r"] = d.value(1)
	case d.wrong(40):
		key["k"] = object{"S": string(make([]byte, 2049))}
	}
	return key
}

// request is one call.
type request struct {
	operation string
	body      object
	table     string // "" for several tables
}

// request draws a call.
func (d *draw) request() request {
	d.mistakes = 0
	if d.in(3) {
		d.mistakes = 1
	}
	table := one(d, tableNames)
	r := request{table: table, body: object{"TableName": table}}
	switch n := d.IntN(20); {
	case n < 4:
		r.operation = "PutItem"
		d.put(table, r.body)
	case n < 11:
		r.operation = "UpdateItem"
		d.update(table, r.body)
	case n < 13:
		r.operation = "DeleteItem"
		d.delete(table, r.body)
	case n < 14:
		r.operation = "GetItem"
		d.get(table, r.body)
	case n < 16:
		r.operation = "Query"
		d.query(table, r.body)
	case n < 18:
		r.operation = "Scan"
		d.scan(table, r.body)
	default:
		r.operation = "TransactWriteItems"
		r.body, r.table = d.transact(), ""
	}
	if d.wrong(40) && r.table != "" {
		r.body["TableName"] = one(d, []string{"none-such", "", "a", "a b", "ä-table"})
	}
	return r
}

// settings draws the common parameters of single writes.
func (d *draw) settings(body object, returnValues ...string) {
	if d.in(2) {
		body["ReturnValues"] = one(d, returnValues)
	}
	if d.wrong(30) {
		body["ReturnValues"] = one(d, []string{"ALL", "ALL_NEW", "", "UPDATED_OLD"})
	}
	if d.in(2) {
		body["ReturnValuesOnConditionCheckFailure"] = one(d, []string{"NONE", "ALL_OLD"})
	}
	if d.wrong(40) {
		body["ReturnValuesOnConditionCheckFailure"] = "ALL_NEW"
	}
	d.capacity(body)
}

func (d *draw) capacity(body object) {
	if d.in(3) {
		body["ReturnConsumedCapacity"] = one(d, []string{"NONE", "TOTAL", "INDEXES"})
	}
	if d.wrong(60) {
		body["ReturnConsumedCapacity"] = "SOME"
	}
}

// conditioned draws the condition of a write that has no other expression.
func (d *draw) conditioned(body object) {
	switch d.IntN(4) {
	case 0:
		d.legacyConditions(body, "Expected", d.expectation)
	case 1:
	default:
		e := d.expressions()
		body["ConditionExpression"] = e.condition(2)
		e.into(body)
	}
	if d.wrong(40) {
		body["Expected"] = object{"str": object{"Exists": false}}
		body["ConditionExpression"] = "attribute_exists(str)"
	}
}

func (d *draw) item(table string) object {
	item := d.fields()
	if item["own"] != nil {
		item["own"] = object{"S": one(d, someTexts[1:])} // an index's key must not be empty
	}
	maps.Copy(item, d.key(table, true))
	if table == wideTable && d.wrong(6) {
		item[one(d, []string{"own", "cnt"})] = d.value(1)
	}
	return item
}

func (d *draw) put(table string, body object) {
	body["Item"] = d.item(table)
	d.conditioned(body)
	d.settings(body, "NONE", "ALL_OLD")
}

func (d *draw) delete(table string, body object) {
	body["Key"] = d.key(table, false)
	d.conditioned(body)
	d.settings(body, "NONE", "ALL_OLD")
}

func (d *draw) update(table string, body object) {
	body["Key"] = d.key(table, false)
	d.settings(body, "NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
	if d.in(3) {
		if !d.in(8) {
			body["AttributeUpdates"] = d.attributeUpdates()
		}
		if d.in(2) {
			d.legacyConditions(body, "Expected", d.expectation)
		}
		return
	}
	e := d.expressions()
	if d.wrong(25) {
		body["UpdateExpression"] = "SET " + one(d, []string{"k", "r"}) + " = " +
			e.constant(d.valueOf("S", 0))
	} else {
		body["UpdateExpression"] = e.update()
	}
	if d.in(3) {
		body["ConditionExpression"] = e.condition(2)
	}
	e.into(body)
}

func (d *draw) get(table string, body object) {
	body["Key"] = d.key(table, false)
	if d.in(3) {
		body["ConsistentRead"] = d.in(2)
	}
	d.capacity(body)
	d.shown(body, nil)
}

// shown draws the choice of the answer's attributes.
func (d *draw) shown(body object, e *expressions) {
	choice := d.IntN(4)
	older := body["QueryFilter"] != nil || body["ScanFilter"] != nil
	if choice == 0 && older && !d.wrong(4) {
		choice = 1 // a legacy filter excludes a ProjectionExpression
	}
	switch choice {
	case 0:
		own := e
		if own == nil {
			own = d.expressions()
		}
		body["ProjectionExpression"] = own.projection()
		if e == nil {
			clear(own.values)
			own.into(body)
		}
	case 1:
		if e == nil {
			names := []string{}
			for range 1 + d.IntN(3) {
				names = append(names, one(d, attributeNames))
			}
			if d.wrong(10) {
				names = names[:0]
			}
			body["AttributesToGet"] = names
		}
	}
}

// transact draws a TransactWriteItems, mostly with each item once.
func (d *draw) transact() object {
	used := map[string]bool{}
	var list []any
	for range 1 + d.IntN(4) {
		table := one(d, tableNames)
		action := object{"TableName": table}
		verb := one(d, []string{"Put", "Update", "Delete", "ConditionCheck"})
		e := d.expressions()
		var at object
		switch verb {
		case "Put":
			action["Item"] = d.item(table)
			at = action["Item"].(object)
		case "Update":
			action["UpdateExpression"] = e.update()
			fallthrough
		default:
			action["Key"] = d.key(table, false)
			at = action["Key"].(object)
		}
		name := fmt.Sprint(table, at["k"], at["r"])
		if used[name] && !d.wrong(2) {
			continue
		}
		used[name] = true
		if verb == "ConditionCheck" || d.in(2) {
			action["ConditionExpression"] = e.condition(1)
		}
		e.into(action)
		if d.in(2) {
			action["ReturnValuesOnConditionCheckFailure"] = one(d, []string{"NONE", "ALL_OLD"})
		}
		list = append(list, object{verb: action})
	}
	if d.wrong(40) {
		list = append(list, object{})
	}
	body := object{"TransactItems": list}
	d.capacity(body)
	return body
}
