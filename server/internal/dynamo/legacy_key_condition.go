package dynamo

// keyOperators are the ComparisonOperators that keys allow.
var keyOperators = map[string]string{
	"EQ": "=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "BETWEEN": "BETWEEN",
	"BEGINS_WITH": "begins_with",
}

// legacyKeys converts KeyConditions into key conditions.
func legacyKeys(v value) (keyConditions, error) {
	attributes, err := byAttribute(v)
	if err != nil {
		return nil, err
	}
	keys := keyConditions{}
	for _, attribute := range attributes {
		name := string(attribute.name())
		operator, values, fault := parseFilter("KeyConditions", name, attribute)
		if fault != nil {
			return nil, fault
		}
		if fault := checkComparison(operator, values); fault != nil {
			return nil, fault
		}
		keys[name] = keyCondition{name, keyOperators[operator], values}
	}
	if len(keys) < 1 || len(keys) > 2 {
		return nil, validation("Conditions can be of length 1 or 2 only")
	}
	return keys, nil
}
