package dynamo

import (
	"slices"
	"strings"
)

// form holds a request's expressions, or the older parameters that expressions replaced. A
// request may use only one of the two.
type form struct {
	operation *parameters
	// The given parameters, in the operation's order.
	expressions []parameter[string]
	older       []parameter[value]

	placeholders
	hasNames, hasValues bool
}

// parameters lists an operation's expressions and older parameters.
type parameters struct{ expressions, older []string }

// parameter is a given parameter.
type parameter[T any] struct {
	name string
	is   T
}

// form takes the parameters of an operation.
func (m *members) form(operation *parameters) form {
	f := form{operation: operation}
	for _, name := range operation.expressions {
		if text, found := m.text(name); found {
			if f.expressions == nil {
				f.expressions = make([]parameter[string], 0, len(operation.expressions))
			}
			f.expressions = append(f.expressions, parameter[string]{name, text})
		}
	}
	for _, name := range operation.older {
		if member := m.take(name); member.isThere() {
			f.older = append(f.older, parameter[value]{name, member})
		}
	}
	f.names, f.hasNames = m.placeholderNames()
	if slices.Contains(known[m.shape], "ExpressionAttributeValues") {
		f.values, f.hasValues = m.placeholderValues()
	}
	return f
}

// expression returns the text of an expression.
func (f *form) expression(name string) (text string, found bool) {
	return given(f.expressions, name)
}

// legacy returns an older parameter, or the zero value if it is missing.
func (f *form) legacy(name string) value {
	v, _ := given(f.older, name)
	return v
}

func given[T any](list []parameter[T], name string) (is T, found bool) {
	for _, p := range list {
		if p.name == name {
			return p.is, true
		}
	}
	return is, false
}

// namesOf returns the parameters' names, for a message.
func namesOf[T any](list []parameter[T]) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// check returns the fault in the combination of parameters, before any of them is parsed.
func (f *form) check() error {
	if len(f.expressions) > 0 && len(f.older) > 0 {
		return validation("Can not use both expression and non-expression parameters in the "+
			"same request: Non-expression parameters: {%s} Expression parameters: {%s}",
			namesOf(f.older), namesOf(f.expressions))
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
	for _, name := range f.names {
		if !isPlaceholder(name.key, '#') {
			return validation("ExpressionAttributeNames contains invalid key: Syntax error; "+
				"key: %q", name.key)
		}
		if name.is == "" {
			return validation("ExpressionAttributeNames contains invalid value: The attribute "+
				"name must not be empty; key: %q", name.key)
		}
	}
	return nil
}

const projectionExpression = "ProjectionExpression" // which uses no values

func (f *form) checkValues() error {
	if !slices.ContainsFunc(f.expressions, func(given parameter[string]) bool {
		return given.name != projectionExpression
	}) {
		possible := slices.DeleteFunc(slices.Clone(f.operation.expressions),
			func(name string) bool { return name == projectionExpression })
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
	for _, value := range f.values {
		if !isPlaceholder(value.key, ':') {
			return validation("ExpressionAttributeValues contains invalid key: Syntax error; "+
				"key: %q", value.key)
		}
	}
	return nil
}

func isPlaceholder(key []byte, sign byte) bool {
	return len(key) > 1 && key[0] == sign && wordLength(string(key[1:])) == len(key)-1
}

// condition returns the request's condition, or nil. parameter is the name of the expression, and
// older that of the parameter before it.
func (f *form) condition(parameter, older string) (condition, error) {
	if text, found := f.expression(parameter); found {
		return parseCondition(parameter, text, &f.placeholders)
	}
	return legacyCondition(older, f.legacy(older), f.legacy("ConditionalOperator"))
}

// projection returns the projection for the answer; nil shows all.
func (f *form) projection() (*projection, error) {
	if text, found := f.expression(projectionExpression); found {
		return parseProjection(text, &f.placeholders)
	}
	return legacyProjection(f.legacy("AttributesToGet"))
}

// finish returns an error if no expression uses a placeholder.
func (f *form) finish() error {
	if keys := unused(f.names); keys != "" {
		return validation("Value provided in ExpressionAttributeNames unused in expressions: "+
			"keys: {%s}", keys)
	}
	if keys := unused(f.values); keys != "" {
		return validation("Value provided in ExpressionAttributeValues unused in expressions: "+
			"keys: {%s}", keys)
	}
	return nil
}
