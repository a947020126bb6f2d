package dynamo

import (
	"encoding/json"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// legacyCondition converts Expected, ScanFilter or QueryFilter (parameter says which) and
// ConditionalOperator into a condition; nil if there are none ("Legacy conditional parameters" in
// the DynamoDB Developer Guide).
func legacyCondition(parameter string, conditions, operator value) (condition, error) {
	combine := "AND"
	if operator.isThere() {
		word, fault := parseText(operator)
		if fault != nil {
			return nil, fault
		}
		if word != "AND" && word != "OR" {
			return nil, validation("1 validation error detected: Value '%s' at "+
				"'conditionalOperator' failed to satisfy constraint: Member must satisfy enum "+
				"value set: [OR, AND]", word)
		}
		combine = word
	}
	if !conditions.isThere() {
		if operator.isThere() {
			return nil, validation("ConditionalOperator cannot be used without Filter or Expected")
		}
		return nil, nil
	}
	attributes, err := byAttribute(conditions)
	if err != nil {
		return nil, err
	}
	if operator.isThere() && len(attributes) < 2 {
		return nil, validation("ConditionalOperator can only be used when Filter or Expected " +
			"has two or more elements")
	}
	return combined(parameter, attributes, combine)
}

// byAttribute returns the entries of an older parameter, one per attribute, in ascending order of
// the attributes' names.
func byAttribute(v value) ([]value, error) {
	if v.kind() != '{' {
		return nil, unexpected(v, "Map")
	}
	attributes := v.byName()
	if len(attributes) > 0 && len(attributes[0].name()) == 0 {
		return nil, noName
	}
	return attributes, nil
}

func combined(parameter string, attributes []value, combine string) (condition, error) {
	read := expectation
	if parameter != "Expected" {
		read = func(name string, v value) (condition, *wire.Error) {
			operator, values, fault := parseFilter(parameter, name, v)
			if fault != nil {
				return nil, fault
			}
			return compared(path{step{name: name}}, operator, values)
		}
	}
	var all condition
	for _, attribute := range attributes {
		one, fault := read(string(attribute.name()), attribute)
		switch {
		case fault != nil:
			return nil, fault
		case all == nil:
			all = one
		case combine == "OR":
			all = orCondition{all, one}
		default:
			all = andCondition{all, one}
		}
	}
	return all, nil
}

// parseFilter parses the entry of one attribute in ScanFilter, QueryFilter or KeyConditions.
func parseFilter(
	parameter, name string, v value,
) (operator string, values []itemstore.Value, fault *wire.Error) {
	m := membersOf("Condition", v)
	operator, found := m.text("ComparisonOperator")
	list, _ := m.list("AttributeValueList")
	switch {
	case m.fault != nil:
		return "", nil, m.fault
	case !found:
		return "", nil, validation("1 validation error detected: Value null at "+
			"'%s.%s.member.comparisonOperator' failed to satisfy constraint: Member must not be "+
			"null", lowerFirst(parameter), name)
	}
	values, fault = parseValues(list, nil)
	return operator, values, fault
}

// expectation parses the entry of one attribute in Expected.
func expectation(name string, v value) (condition, *wire.Error) {
	m := membersOf("ExpectedAttributeValue", v)
	exists, hasExists := m.flag("Exists")
	value := m.attribute("Value")
	operator, hasOperator := m.text("ComparisonOperator")
	list, hasList := m.list("AttributeValueList")
	if m.fault != nil {
		return nil, m.fault
	}
	at := path{step{name: name}}
	if !hasOperator {
		switch {
		case hasList:
			return nil, invalidParameter("AttributeValueList can only be used with a "+
				"ComparisonOperator for Attribute: %s", name)
		case hasExists && !exists && value != nil:
			return nil, invalidParameter("Value cannot be used when Exists is false for "+
				"Attribute: %s", name)
		case hasExists && !exists:
			return notCondition{existence(at)}, nil
		case value == nil && hasExists:
			return nil, invalidParameter("Value must be provided when Exists is true for "+
				"Attribute: %s", name)
		case value == nil:
			return nil, invalidParameter("Value must be provided when Exists is null for "+
				"Attribute: %s", name)
		}
		return comparison{"=", pathOperand{at}, valueOperand{constant: value}}, nil
	}
	switch {
	case hasExists:
		return nil, invalidParameter("Exists and ComparisonOperator cannot be used together "+
			"for Attribute: %s", name)
	case hasList && value != nil:
		return nil, invalidParameter("Value and AttributeValueList cannot be used together for "+
			"Attribute: %s", name)
	}
	values, fault := parseValues(list, value)
	if fault != nil {
		return nil, fault
	}
	return compared(at, operator, values)
}

func existence(at path) condition { return exists{at} }

// parseValues parses a list of values, or returns the single value given instead.
func parseValues(list value, single itemstore.Value) ([]itemstore.Value, *wire.Error) {
	switch {
	case single != nil:
		return []itemstore.Value{single}, nil
	case !list.isThere():
		return nil, nil
	}
	values := make([]itemstore.Value, 0, list.node().inner)
	for element := range list.inner() {
		value, fault := parseAttribute(element, 0)
		if fault != nil {
			return nil, fault
		}
		values = append(values, value)
	}
	return values, nil
}

// legacyOperator describes a ComparisonOperator: the number and the kinds of its values.
type legacyOperator struct {
	least, most int
	kinds       []itemstore.Kind // nil: any
}

var (
	orderedKinds = []itemstore.Kind{"S", "N", "B"}
	anyScalar    = []itemstore.Kind{"S", "N", "B", "BOOL", "NULL"}
)

var legacyOperators = map[string]legacyOperator{
	"EQ":           {1, 1, nil},
	"NE":           {1, 1, nil},
	"LT":           {1, 1, orderedKinds},
	"LE":           {1, 1, orderedKinds},
	"GT":           {1, 1, orderedKinds},
	"GE":           {1, 1, orderedKinds},
	"BETWEEN":      {2, 2, orderedKinds},
	"IN":           {1, maxInOperands, orderedKinds},
	"NULL":         {0, 0, nil},
	"NOT_NULL":     {0, 0, nil},
	"CONTAINS":     {1, 1, anyScalar},
	"NOT_CONTAINS": {1, 1, anyScalar},
	"BEGINS_WITH":  {1, 1, []itemstore.Kind{"S", "B"}},
}

var legacySigns = map[string]string{
	"EQ": "=", "NE": "<>", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=",
}

// checkComparison returns the fault of a ComparisonOperator and its values.
func checkComparison(operator string, values []itemstore.Value) *wire.Error {
	rule, known := legacyOperators[operator]
	if !known {
		return validation("1 validation error detected: Value '%s' at "+
			"'comparisonOperator' failed to satisfy constraint: Member must satisfy enum value "+
			"set: %v", operator, sortedKeys(legacyOperators))
	}
	if len(values) < rule.least || len(values) > rule.most {
		return invalidParameter("Invalid number of argument(s) for the %s "+
			"ComparisonOperator", operator)
	}
	for _, value := range values {
		if rule.kinds != nil && !slices.Contains(rule.kinds, value.Kind()) {
			return invalidParameter("ComparisonOperator %s is not valid for %s "+
				"AttributeValue type", operator, value.Kind())
		}
		if value.Kind() != values[0].Kind() {
			return invalidParameter("AttributeValues inside AttributeValueList must be of " +
				"same type")
		}
	}
	if operator == "BETWEEN" {
		if order, _ := itemstore.Compare(values[0], values[1]); order > 0 {
			return validation("The BETWEEN condition was provided a range where the lower " +
				"bound is greater than the upper bound")
		}
	}
	return nil
}

// compared converts a ComparisonOperator and its values into a condition.
func compared(
	at path, operator string, values []itemstore.Value,
) (condition, *wire.Error) {
	if fault := checkComparison(operator, values); fault != nil {
		return nil, fault
	}
	operands := make([]operand, len(values))
	for i, value := range values {
		operands[i] = valueOperand{constant: value}
	}
	attribute := pathOperand{at}
	switch operator {
	case "NULL":
		return notCondition{exists{at}}, nil
	case "NOT_NULL":
		return exists{at}, nil
	case "IN":
		return oneOf{attribute, operands}, nil
	case "BETWEEN":
		return between{attribute, operands[0], operands[1]}, nil
	case "BEGINS_WITH":
		return beginsWith{attribute, operands[0]}, nil
	case "CONTAINS":
		return contains{attribute, operands[0]}, nil
	case "NOT_CONTAINS": // false for a missing attribute
		return andCondition{exists{at}, notCondition{contains{attribute, operands[0]}}}, nil
	}
	return comparison{legacySigns[operator], attribute, operands[0]}, nil
}

// legacyProjection converts AttributesToGet into a projection.
func legacyProjection(v value) (*projection, error) {
	if !v.isThere() {
		return nil, nil
	}
	var names []string
	if err := json.Unmarshal(v.raw(), &names); err != nil {
		return nil, unexpected(v, "List")
	}
	if len(names) == 0 {
		return nil, validation("1 validation error detected: Value '[]' at 'attributesToGet' " +
			"failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	if slices.Contains(names, "") {
		return nil, noName
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			return nil, invalidParameter("Duplicate value in attribute name: %s", name)
		}
		seen[name] = true
	}
	tree := new(projection)
	for _, name := range sortedKeys(seen) {
		tree.add(path{step{name: name}}, struct{}{})
	}
	return tree, nil
}
