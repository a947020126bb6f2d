package dynamo

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/internal/itemstore"
)

// form is what a request says through expressions, and through the older parameters that they
// replaced. A request has one or the other.
type form struct {
	texts  map[string]string          // expressions by parameter
	legacy map[string]json.RawMessage // older parameters

	// The parameters that were given, in the operation's order.
	expressions, older []string
	// Those expressions that could have been and have values: for messages.
	possible []string

	placeholders
	hasNames, hasValues bool
}

// form takes the parameters of an operation: those that are expressions, and the older ones.
func (m *members) form(expressions, older []string) *form {
	f := &form{
		texts: map[string]string{}, legacy: map[string]json.RawMessage{},
	}
	for _, name := range expressions {
		if name != "ProjectionExpression" { // which has no values
			f.possible = append(f.possible, name)
		}
	}
	for _, name := range expressions {
		if text, found := m.text(name); found {
			f.texts[name] = text
			f.expressions = append(f.expressions, name)
		}
	}
	for _, name := range older {
		if raw := m.take(name); raw != nil {
			f.legacy[name] = raw
			f.older = append(f.older, name)
		}
	}
	f.hasNames = m.decode("ExpressionAttributeNames", "Map", &f.names)
	var values map[string]json.RawMessage
	if slices.Contains(known[m.shape], "ExpressionAttributeValues") {
		f.hasValues = m.decode("ExpressionAttributeValues", "Map", &values)
	}
	f.values = make(map[string]itemstore.Value, len(values))
	for _, name := range sortedKeys(values) {
		value, fault := parseAttribute(values[name], 0)
		if fault != nil {
			if fault.Code == coralValidation {
				fault = validation("ExpressionAttributeValues contains invalid value: %s for "+
					"key %s", fault.Message, name)
			}
			m.fail(fault)
		}
		f.values[name] = value
	}
	f.usedNames, f.usedValues = map[string]bool{}, map[string]bool{}
	return f
}

// check returns what is wrong with the parameters before any of them is read.
func (f *form) check() error {
	if len(f.expressions) > 0 && len(f.older) > 0 {
		return validation("Can not use both expression and non-expression parameters in the "+
			"same request: Non-expression parameters: {%s} Expression parameters: {%s}",
			strings.Join(f.older, ", "), strings.Join(f.expressions, ", "))
	}
	if f.hasNames {
		if err := f.checkNames(); err != nil {
			return err
		}
	}
	if f.hasValues {
		return f.checkValues()
	}
	return nil
}

func (f *form) checkNames() error {
	if len(f.expressions) == 0 {
		return validation("ExpressionAttributeNames can only be specified when using expressions")
	}
	if len(f.names) == 0 {
		return validation("ExpressionAttributeNames must not be empty")
	}
	for _, key := range sortedKeys(f.names) {
		if !isPlaceholder(key, '#') {
			return validation("ExpressionAttributeNames contains invalid key: Syntax error; "+
				"key: %q", key)
		}
		if f.names[key] == "" {
			return validation("ExpressionAttributeNames contains invalid value: The attribute "+
				"name must not be empty; key: %q", key)
		}
	}
	return nil
}

func (f *form) checkValues() error {
	possible := f.possible
	if !slices.ContainsFunc(possible, func(name string) bool {
		return slices.Contains(f.expressions, name)
	}) {
		verb := "is"
		if len(possible) > 1 {
			verb = "are"
		}
		return validation("ExpressionAttributeValues can only be specified when using "+
			"expressions: %s %s null", strings.Join(possible, " and "), verb)
	}
	if len(f.values) == 0 {
		return validation("ExpressionAttributeValues must not be empty")
	}
	for _, key := range sortedKeys(f.values) {
		if !isPlaceholder(key, ':') {
			return validation("ExpressionAttributeValues contains invalid key: Syntax error; "+
				"key: %q", key)
		}
	}
	return nil
}

func isPlaceholder(key string, sign byte) bool {
	return len(key) > 1 && key[0] == sign && wordLength(key[1:]) == len(key)-1
}

// condition returns the request's condition; nil if there is none. parameter is the
// expression's, and older the one that stood for it.
func (f *form) condition(parameter, older string) (condition, error) {
	if text, found := f.texts[parameter]; found {
		return parseCondition(parameter, text, &f.placeholders)
	}
	return legacyCondition(older, f.legacy[older], f.legacy["ConditionalOperator"])
}

// projection returns the parts of items that the answer shows; nil for all.
func (f *form) projection() (*projection, error) {
	if text, found := f.texts["ProjectionExpression"]; found {
		return parseProjection(text, &f.placeholders)
	}
	return legacyProjection(f.legacy["AttributesToGet"])
}

// finish returns an error if a placeholder is in no expression.
func (f *form) finish() error {
	if unused := missing(f.names, f.usedNames); unused != "" {
		return validation("Value provided in ExpressionAttributeNames unused in expressions: "+
			"keys: {%s}", unused)
	}
	if unused := missing(f.values, f.usedValues); unused != "" {
		return validation("Value provided in ExpressionAttributeValues unused in expressions: "+
			"keys: {%s}", unused)
	}
	return nil
}

func missing[V any](given map[string]V, used map[string]bool) string {
	var unused []string
	for _, key := range sortedKeys(given) {
		if !used[key] {
			unused = append(unused, key)
		}
	}
	return strings.Join(unused, ", ")
}
