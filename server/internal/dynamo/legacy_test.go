package dynamo

import "testing"

func TestLegacyConditions(t *testing.T) {
	item := jsonItem(t, testItem)
	for _, test := range []struct {
		text, operator string
		want           bool
	}{
		{`{"n":{"Value":{"N":"1"}}}`, "", true},
		{`{"gone":{"Exists":false}}`, "", true},
		{`{"gone":{"Value":{"N":"1"}}}`, "", false},
		{`{"n":{"Exists":true,"Value":{"N":"2"}}}`, "", false},
		{`{"n":{"ComparisonOperator":"NE","Value":{"N":"2"}}}`, "", true},
		{`{"n":{"ComparisonOperator":"EQ","AttributeValueList":[{"N":"1"}]}}`, "", true},
		{`{"n":{"ComparisonOperator":"LE","AttributeValueList":[{"N":"1"}]}}`, "", true},
		{`{"n":{"ComparisonOperator":"LT","AttributeValueList":[{"N":"1"}]}}`, "", false},
		{`{"n":{"ComparisonOperator":"GE","AttributeValueList":[{"S":"1"}]}}`, "", false},
		{`{"n":{"ComparisonOperator":"GT","AttributeValueList":[{"N":"0"}]}}`, "", true},
		{`{"n":{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"N":"0"},{"N":"1"}]}}`, "", true},
		{`{"n":{"ComparisonOperator":"IN","AttributeValueList":[{"N":"0"},{"N":"1"}]}}`, "", true},
		{`{"gone":{"ComparisonOperator":"NULL"}}`, "", true},
		{`{"n":{"ComparisonOperator":"NULL"}}`, "", false},
		{`{"n":{"ComparisonOperator":"NOT_NULL"}}`, "", true},
		{`{"s":{"ComparisonOperator":"BEGINS_WITH","AttributeValueList":[{"S":"he"}]}}`, "", true},
		{`{"s":{"ComparisonOperator":"CONTAINS","AttributeValueList":[{"S":"ll"}]}}`, "", true},
		{`{"s":{"ComparisonOperator":"NOT_CONTAINS","AttributeValueList":[{"S":"ll"}]}}`, "", false},
		{`{"gone":{"ComparisonOperator":"NOT_CONTAINS","AttributeValueList":[{"S":"l"}]}}`, "", false},
		{`{"n":{"Value":{"N":"1"}},"s":{"Exists":false}}`, "", false},
		{`{"n":{"Value":{"N":"1"}},"s":{"Exists":false}}`, `"AND"`, false},
		{`{"n":{"Value":{"N":"1"}},"s":{"Exists":false}}`, `"OR"`, true},
	} {
		var operator value
		if test.operator != "" {
			operator = jsonValue(t, test.operator)
		}
		c, err := legacyCondition("Expected", jsonValue(t, test.text), operator)
		if err != nil || c.holds(item) != test.want {
			t.Errorf("%s: %v, want %v", test.text, err, test.want)
		}
	}
}
