package kinesis

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// plan joins a shape of the model and a Go type. It says how to decode a value of the shape into
// the type, and which constraints to check.
type plan struct {
	*shape
	name    string            // of the shape
	matches func(string) bool // nil: any text
	key     *plan             // of a map
	element *plan             // of a list or a map
	fields  []*field          // of a structure, in the order of checking
	byName  map[string]*field
}

// field is a member of the shape with a field in the Go type.
type field struct {
	name     string // on the wire: "StreamName"
	label    string // in messages: "streamName"
	required bool
	index    []int // for reflect.Value.FieldByIndex
	plan     *plan
}

var planned struct {
	once sync.Once
	of   map[string]*plan // by operation
	err  error
}

// plans holds the plan of every served operation.
func plans() (map[string]*plan, error) {
	planned.once.Do(func() {
		planned.of = make(map[string]*plan, len(operations))
		for name, op := range operations {
			p, err := planOf(name, op.input)
			if err != nil {
				planned.err = fmt.Errorf("the input of %s: %w", name, err)
				return
			}
			planned.of[name] = p
		}
	})
	return planned.of, planned.err
}

// planOf makes the plan of an operation's input.
func planOf(operation string, input reflect.Type) (*plan, error) {
	name, ok := modelInputs[operation]
	if !ok {
		return nil, fmt.Errorf("the model has no such operation")
	}
	return newPlan(name, input)
}

// newPlan matches a shape with a type. A member without a field in the type is ignored in requests;
// a test reports it.
func newPlan(name string, t reflect.Type) (p *plan, err error) {
	s, ok := modelShapes[name]
	if !ok {
		return nil, fmt.Errorf("the model has no shape %s", name)
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !s.fits(t) {
		return nil, fmt.Errorf("a %v cannot hold the model's %s", t, name)
	}
	p = &plan{shape: &s, name: name, matches: matcher(s.pattern)}
	if s.element != "" {
		if p.element, err = newPlan(s.element, t.Elem()); err != nil {
			return nil, err
		}
	}
	if s.key != "" {
		if p.key, err = newPlan(s.key, t.Key()); err != nil {
			return nil, err
		}
	}
	if s.kind == structureShape {
		err = p.addFields(t)
	}
	return p, err
}

func (p *plan) addFields(t reflect.Type) error {
	p.byName = make(map[string]*field)
	has := make(map[string]reflect.StructField)
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && !f.Anonymous {
			has[wireName(f)] = f
		}
	}
	for _, m := range p.members {
		f, ok := has[m.name]
		if !ok {
			continue
		}
		inner, err := newPlan(m.shape, f.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		added := &field{m.name, label(m.name), m.required, f.Index, inner}
		p.fields = append(p.fields, added)
		p.byName[m.name] = added
	}
	return nil
}

// wireName is a field's name in requests and answers.
func wireName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	return f.Name
}

// fits reports whether a type can hold the shape's values.
func (s *shape) fits(t reflect.Type) bool {
	switch s.kind {
	case textShape:
		return t.Kind() == reflect.String
	case integerShape:
		return t.Kind() == reflect.Int64
	case timestampShape:
		return t == reflect.TypeFor[timestamp]()
	case booleanShape:
		return t.Kind() == reflect.Bool
	case blobShape:
		return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
	case listShape:
		return t.Kind() == reflect.Slice
	case mapShape:
		return t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
	case structureShape:
		return t.Kind() == reflect.Struct
	}
	return false
}
