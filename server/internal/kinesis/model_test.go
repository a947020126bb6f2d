package kinesis

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// planFor returns an operation's plan.
func planFor(operation string) *plan {
	all, err := plans()
	if err != nil {
		panic(err)
	}
	return all[operation]
}

// The model has 39 operations, and every one of them is served by an input that has the model's
// members and no others.
func TestModelIsComplete(t *testing.T) {
	if len(modelInputs) != 39 {
		t.Errorf("the model has %d operations", len(modelInputs))
	}
	for name := range modelInputs {
		op, ok := operations[name]
		if !ok {
			t.Errorf("%s is in the model, but not in operations", name)
			continue
		}
		p, err := planOf(name, op.input)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		complete(t, name, p, op.input)
	}
	for name := range operations {
		if _, ok := modelInputs[name]; !ok {
			t.Errorf("%s is in operations, but not in the model", name)
		}
	}
}

// complete checks that a shape and a type have the same members.
func complete(t *testing.T, path string, p *plan, of reflect.Type) {
	t.Helper()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch p.kind {
	case listShape, mapShape:
		complete(t, path+"[]", p.element, of.Elem())
	case structureShape:
		var modelled []string
		for _, m := range p.members {
			modelled = append(modelled, m.name)
			if m.name != ignoredMember && p.byName[m.name] == nil {
				t.Errorf("%s: the model's member %s has no field in %v", path, m.name, of)
			}
		}
		for _, f := range reflect.VisibleFields(of) {
			if !f.IsExported() || f.Anonymous {
				continue
			}
			name := wireName(f)
			if !slices.Contains(modelled, name) {
				t.Errorf("%s: the field %s of %v is no member of the model", path, name, of)
			}
			if k := f.Type.Kind(); k != reflect.Pointer && k != reflect.Slice && k != reflect.Map {
				t.Errorf("%s: the field %s of %v cannot be absent: make it a pointer", path, name, of)
			}
		}
		for _, f := range p.fields {
			complete(t, path+"."+f.name, f.plan, of.FieldByIndex(f.index).Type)
		}
	}
}

// TestPlanRefuses: planOf refuses a type that cannot hold the model's values, and an operation that
// the model does not have.
func TestPlanRefuses(t *testing.T) {
	type wrong struct{ StreamName *integer }
	for operation, input := range map[string]any{
		"DescribeStreamSummary": wrong{},
		"Frobnicate":            struct{}{},
	} {
		if _, err := planOf(operation, reflect.TypeOf(input)); err == nil {
			t.Errorf("%s has a plan with %T", operation, input)
		}
	}
}

// The hand-written matchers agree with the patterns.
func TestMatchers(t *testing.T) {
	texts := []string{
		"", "0", "00", "01", "1", "10", "9", "a", "a b", "a.b-c_D9", "é", "1a", "-1", "\n", "a\n",
		"123456789012345678901234567890123456789", "1234567890123456789012345678901234567890",
	}
	for name, s := range modelShapes {
		if s.pattern == "" {
			continue
		}
		matches, reference := matcher(s.pattern), regexp.MustCompile("^(?:"+s.pattern+")$")
		for _, text := range texts {
			if got, want := matches(text), reference.MatchString(text); got != want {
				t.Errorf("%s: %q matches %s: %v, want %v", name, text, s.pattern, got, want)
			}
		}
	}
}

// The bounds that are written out are the model's.
func TestQuickBounds(t *testing.T) {
	for name, want := range map[string]int{
		"PutRecordsRequestEntryList": maxPutRecords, "Data": maxData, "PartitionKey": maxPartitionKey,
		"StreamName": maxName, "StreamARN": maxARN, "ShardIterator": maxIterator,
		"GetRecordsInputLimit": maxGetRecords,
	} {
		if got := *modelShapes[name].max; got != int64(want) {
			t.Errorf("%s is bounded by %d, want %d", name, want, got)
		}
	}
	if want := fmt.Sprintf(`0|([1-9]\d{0,%d})`, maxHashKey-1); modelShapes["HashKey"].pattern != want {
		t.Errorf("a hash key is %s, want %s", want, modelShapes["HashKey"].pattern)
	}
}
