package dynamo

import (
	"slices"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// keyCondition is a query's condition on one attribute of the key.
type keyCondition struct {
	name     string
	operator string // = < <= > >= BETWEEN begins_with; "" for one that keys do not allow
	values   []itemstore.Value
}

// keyConditions holds a query's conditions, by attribute.
type keyConditions map[string]keyCondition

// condition returns the equivalent condition on an item.
func (k keyCondition) condition() condition {
	at := pathOperand{path{step{name: k.name}}}
	value := func(i int) operand { return valueOperand{constant: k.values[i]} }
	switch k.operator {
	case "BETWEEN":
		return between{at, value(0), value(1)}
	case "begins_with":
		return beginsWith{at, value(0)}
	}
	return comparison{k.operator, at, value(0)}
}

// visit calls see for each comparison, function, OR and NOT of a condition, with its operands,
// in the order of the text.
func visit(c condition, see func(c condition, operands ...operand)) {
	switch c := c.(type) {
	case andCondition:
		visit(c.left, see)
		visit(c.right, see)
	case orCondition:
		see(c)
		visit(c.left, see)
		visit(c.right, see)
	case notCondition:
		see(c)
		visit(c.inner, see)
	case comparison:
		see(c, c.left, c.right)
	case between:
		see(c, c.value, c.low, c.high)
	case oneOf:
		see(c, append([]operand{c.value}, c.list...)...)
	case exists:
		see(c, pathOperand(c))
	case hasKind:
		see(c, c.value, c.kind)
	case beginsWith:
		see(c, c.value, c.prefix)
	case contains:
		see(c, c.value, c.element)
	}
}

// operatorOf returns an operator's name in messages, and whether key conditions allow it.
func operatorOf(c condition) (name string, allowed bool) {
	switch c := c.(type) {
	case comparison:
		return c.operator, c.operator != "<>"
	case between:
		return "BETWEEN", true
	case beginsWith:
		return "begins_with", true
	case orCondition:
		return "OR", false
	case notCondition:
		if _, ok := c.inner.(exists); ok {
			return "attribute_not_exists", false
		}
		return "NOT", false
	case oneOf:
		return "IN", false
	case exists:
		return "attribute_exists", false
	case hasKind:
		return "attribute_type", false
	}
	return "contains", false
}

// expressedKeys converts a KeyConditionExpression into key conditions. The order of its checks
// and their texts are those of dynalite's tests, which ran against DynamoDB.
func expressedKeys(expression condition) (keyConditions, error) {
	var fault error
	visit(expression, func(c condition, _ ...operand) {
		if name, allowed := operatorOf(c); !allowed && fault == nil {
			fault = validation("Invalid operator used in KeyConditionExpression: %s", name)
		}
	})
	keys := keyConditions{}
	visit(expression, func(c condition, operands ...operand) {
		if fault != nil {
			return
		}
		var one keyCondition
		if one, fault = expressedKey(c, operands); fault != nil {
			return
		}
		if _, twice := keys[one.name]; twice {
			fault = validation("KeyConditionExpressions must only contain one condition per key")
			return
		}
		keys[one.name] = one
	})
	if fault == nil && len(keys) > 2 {
		fault = validation("Conditions can be of length 1 or 2 only")
	}
	return keys, fault
}

var mirrored = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func expressedKey(c condition, operands []operand) (keyCondition, error) {
	var k keyCondition
	k.operator, _ = operatorOf(c)
	if _, isValue := operands[0].(valueOperand); isValue {
		if _, turns := c.(comparison); !turns {
			return k, validation("Invalid condition in KeyConditionExpression: %s operator must "+
				"have the key attribute as its first operand", k.operator)
		}
		k.operator = mirrored[k.operator]
	}
	for _, o := range operands {
		switch o := o.(type) {
		case sizeOperand:
			return k, validation("KeyConditionExpressions cannot contain nested operations")
		case valueOperand:
			k.values = append(k.values, o.constant)
		case pathOperand:
			switch {
			case k.name != "":
				return k, validation("Invalid condition in KeyConditionExpression: Multiple " +
					"attribute names used in one condition")
			case len(o.path) > 1:
				return k, validation("KeyConditionExpressions cannot have conditions on nested " +
					"attributes")
			}
			k.name = o.path[0].name
		}
	}
	if k.name == "" {
		return k, validation("Invalid condition in KeyConditionExpression: No key attribute " +
			"specified")
	}
	return k, nil
}

// check returns the fault of the conditions for a table or index with that key.
func (keys keyConditions) check(schema itemstore.Schema) error {
	missed := func(name string) error {
		return validation("Query condition missed key schema element: %s", name)
	}
	hash, hasHash := keys[schema.Hash.Name]
	_, hasRange := keys[schema.Range.Name]
	switch {
	case len(keys) == 2 && schema.Range.Name == "":
		return validation("Query key condition not supported")
	case !hasHash:
		return missed(schema.Hash.Name)
	case len(keys) == 2 && !hasRange:
		return missed(schema.Range.Name)
	}
	parts := []itemstore.KeyAttribute{schema.Hash, schema.Range}[:len(keys)]
	for _, part := range parts {
		if keys[part.Name].operator == "" {
			return validation("Attempted conditional constraint is not an indexable operation")
		}
	}
	for _, part := range parts {
		if err := keys[part.Name].fits(part); err != nil {
			return err
		}
	}
	if hash.operator != "=" {
		return validation("Query key condition not supported")
	}
	return nil
}

// fits checks the condition's values against the key's attribute.
func (k keyCondition) fits(part itemstore.KeyAttribute) error {
	for _, value := range k.values {
		if value.Kind() != part.Kind {
			return invalidParameter("Condition parameter type does not match schema type")
		}
		if fault := emptyKey(k.name, value); fault != nil && k.operator != "begins_with" {
			return fault
		}
	}
	if k.operator == "begins_with" && !slices.Contains(
		[]itemstore.Kind{itemstore.KindString, itemstore.KindBinary}, part.Kind) {
		return invalidParameter("Condition parameter type does not match schema type")
	}
	return nil
}

// narrow restricts a range to the conditions, which must have passed check.
func (keys keyConditions) narrow(schema itemstore.Schema, r *itemstore.Range) {
	r.Hash = keys[schema.Hash.Name].values[0]
	if len(keys) == 1 {
		return
	}
	k := keys[schema.Range.Name]
	switch k.operator {
	case "=":
		r.Sort.Low, r.Sort.High = k.values[0], k.values[0]
	case "<", "<=":
		r.Sort.High, r.Sort.HighOpen = k.values[0], k.operator == "<"
	case ">", ">=":
		r.Sort.Low, r.Sort.LowOpen = k.values[0], k.operator == ">"
	case "BETWEEN":
		r.Sort.Low, r.Sort.High = k.values[0], k.values[1]
	case "begins_with":
		r.Sort.Prefix = k.values[0]
	}
}
