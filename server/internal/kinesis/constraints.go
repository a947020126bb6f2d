package kinesis

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/wire"
)

// quick is an input with its own check of the constraints, faster than its plan. True means that it
// breaks none; false means nothing.
type quick interface {
	fine() bool
}

// check adds the constraints of the model that an input breaks.
func (p *plan) check(v *violations, in any) {
	if hot, ok := in.(quick); ok && hot.fine() {
		return
	}
	p.checkFields(v, "", reflect.ValueOf(in).Elem())
}

// checkFields checks a structure's members. Their names in messages begin with prefix.
func (p *plan) checkFields(v *violations, prefix string, structure reflect.Value) {
	for _, f := range p.fields {
		switch value := structure.FieldByIndex(f.index); {
		case !isNull(value):
			f.plan.checkValue(v, prefix+f.label, reflect.Indirect(value))
		case f.required:
			v.missing(prefix + f.label)
		}
	}
}

// isNull reports whether a member is absent.
func isNull(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return value.IsNil()
	default:
		return false
	}
}

// checkValue checks a member that is present.
func (p *plan) checkValue(v *violations, member string, value reflect.Value) {
	switch p.kind {
	case structureShape:
		p.checkFields(v, member+".", value)
	case listShape:
		p.checkList(v, member, value)
	case mapShape:
		p.checkMap(v, member, value)
	default:
		for _, broken := range p.broken(value) {
			v.add(member, p.echo(value), broken)
		}
	}
}

// checkList checks a list and its elements. It checks a structure's members one by one, and all
// other elements at once (kinesalite's test/putRecords.js and test/removeTagsFromStream.js).
func (p *plan) checkList(v *violations, member string, list reflect.Value) {
	for _, broken := range p.broken(list) {
		v.add(member, p.echo(list), broken)
	}
	wrong := false
	for i := 0; i < list.Len() && len(v.texts) < maxViolations; i++ {
		element := list.Index(i)
		if p.element.kind != structureShape {
			wrong = wrong || p.element.breaks(element)
			continue
		}
		name := fmt.Sprintf("%s.%d.member", member, i+1)
		if isNull(element) {
			v.missing(name)
			continue
		}
		p.element.checkFields(v, name+".", reflect.Indirect(element))
	}
	if wrong {
		v.add(member, p.echo(list), "Member must satisfy constraint: "+p.element.rules())
	}
}

// checkMap checks a map, all of its keys at once, and all of its values (kinesalite's
// test/addTagsToStream.js).
func (p *plan) checkMap(v *violations, member string, m reflect.Value) {
	for _, broken := range p.broken(m) {
		v.add(member, p.echo(m), broken)
	}
	keys, values := false, false
	for each := m.MapRange(); each.Next(); {
		keys = keys || p.key.breaks(each.Key())
		values = values || p.element.breaks(each.Value())
	}
	if keys {
		v.add(member, p.echo(m), "Map keys must satisfy constraint: "+p.key.rules())
	}
	if values {
		v.add(member, p.echo(m), "Map value must satisfy constraint: "+p.element.rules())
	}
}

// breaks reports whether an element of a list or a map breaks a constraint. No element may be null
// (a guess: AWS's rule is not known).
func (p *plan) breaks(element reflect.Value) bool {
	return isNull(element) || len(p.broken(reflect.Indirect(element))) > 0
}

// maxMatched bounds the texts that are matched with a pattern. For a longer text that also breaks
// its length limit, only the length is reported.
const maxMatched = 64 << 10

// broken returns the constraints that a value itself breaks, in AWS's order.
func (p *plan) broken(value reflect.Value) (texts []string) {
	if p.kind == integerShape {
		return p.brokenNumber(value.Int())
	}
	length := p.length(value)
	if p.matches != nil && (length > maxMatched || !p.matches(value.String())) {
		texts = append(texts, "Member must satisfy regular expression pattern: "+p.pattern)
	}
	if p.min != nil && length < *p.min {
		texts = append(texts, minLength(*p.min))
	}
	if p.max != nil && length > *p.max {
		texts = append(texts, maxLength(*p.max))
	}
	if p.values != nil && !slices.Contains(p.values, value.String()) {
		texts = append(texts, p.valueRule())
	}
	return texts
}

func (p *plan) brokenNumber(n int64) (texts []string) {
	if p.min != nil && n < *p.min {
		texts = append(texts,
			fmt.Sprint("Member must have value greater than or equal to ", *p.min))
	}
	if p.max != nil && n > *p.max {
		texts = append(texts,
			fmt.Sprint("Member must have value less than or equal to ", *p.max))
	}
	return texts
}

// length returns the figure that a value's bounds apply to: characters, bytes or elements.
func (p *plan) length(value reflect.Value) int64 {
	switch p.kind {
	case textShape:
		n := value.Len()
		if p.max != nil && int64(n) > *p.max {
			n = utf8.RuneCountInString(value.String())
		}
		return int64(n) // a minimum is 0 or 1: bytes are as good as characters
	case blobShape, listShape, mapShape:
		return int64(value.Len())
	default:
		return 0
	}
}

func (p *plan) valueRule() string {
	return "Member must satisfy enum value set: [" + strings.Join(p.values, ", ") + "]"
}

// rules lists all constraints of an element, as AWS does if one of them is broken.
func (p *plan) rules() string {
	var texts []string
	if p.max != nil {
		texts = append(texts, maxLength(*p.max))
	}
	if p.min != nil {
		texts = append(texts, minLength(*p.min))
	}
	if p.pattern != "" {
		texts = append(texts, "Member must satisfy regular expression pattern: "+p.pattern)
	}
	if p.values != nil {
		texts = append(texts, p.valueRule())
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// echo returns a wrong value as messages show it.
func (p *plan) echo(value reflect.Value) string {
	if isNull(value) && p.kind != listShape && p.kind != mapShape {
		return "null"
	}
	value = reflect.Indirect(value)
	switch p.kind {
	case blobShape:
		return blobEcho(value.Len())
	case structureShape:
		return "com.amazonaws.kinesis.v20131202." + p.name + "@2"
	case listShape:
		var b strings.Builder
		for i := 0; i < value.Len() && b.Len() <= wire.MaxEcho; i++ {
			join(&b, p.element.echo(value.Index(i)))
		}
		return "[" + b.String() + "]"
	case mapShape:
		var b strings.Builder
		for _, key := range sortedKeys(value) {
			if b.Len() <= wire.MaxEcho {
				join(&b, key.String()+"="+p.element.echo(value.MapIndex(key)))
			}
		}
		return "{" + b.String() + "}"
	default:
		return fmt.Sprint(value)
	}
}

func join(b *strings.Builder, text string) {
	if b.Len() > 0 {
		b.WriteString(", ")
	}
	b.WriteString(text)
}

// sortedKeys returns a map's keys in a fixed order, for messages.
func sortedKeys(m reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(m.MapKeys()), func(a, b reflect.Value) int {
		return strings.Compare(a.String(), b.String())
	})
}
