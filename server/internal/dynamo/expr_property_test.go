package dynamo

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// newPlaceholders returns a request's placeholders, all unused.
func newPlaceholders(
	names map[string]string, values map[string]itemstore.Value,
) *placeholders {
	ph := new(placeholders)
	for _, key := range sortedKeys(names) {
		ph.names = append(ph.names, placeholder[string]{key: []byte(key), is: names[key]})
	}
	for _, key := range sortedKeys(values) {
		ph.values = append(ph.values, placeholder[itemstore.Value]{key: []byte(key), is: values[key]})
	}
	return ph
}

// printer writes a condition as text, with a placeholder for every name and value.
type printer struct {
	names  map[string]string
	values map[string]itemstore.Value
}

func (p *printer) path(at path) string {
	var text strings.Builder
	for i, s := range at {
		if s.list {
			fmt.Fprintf(&text, "[%d]", s.index)
			continue
		}
		if i > 0 {
			text.WriteByte('.')
		}
		key := fmt.Sprintf("#n%d", len(p.names))
		p.names[key] = s.name
		text.WriteString(key)
	}
	return text.String()
}

func (p *printer) operand(o operand) string {
	switch o := o.(type) {
	case pathOperand:
		return p.path(o.path)
	case valueOperand:
		p.values[o.name] = o.constant
		return o.name
	case sizeOperand:
		return "size(" + p.operand(o.of) + ")"
	}
	return "?"
}

func (p *printer) operands(list []operand) string {
	var texts []string
	for _, o := range list {
		texts = append(texts, p.operand(o))
	}
	return strings.Join(texts, ", ")
}

// condition prints a condition. It adds parentheses if the condition binds less tightly than its
// place requires: 0 for OR, 1 for AND, 2 for NOT. The left side of AND and OR may be of its own
// kind, the right one not.
func (p *printer) condition(c condition, place int) string {
	text, binds := "", 3
	switch c := c.(type) {
	case orCondition:
		binds = 0
		text = p.condition(c.left, 0) + " OR " + p.condition(c.right, 1)
	case andCondition:
		binds = 1
		text = p.condition(c.left, 1) + " AND " + p.condition(c.right, 2)
	case notCondition:
		binds = 2
		if e, ok := c.inner.(exists); ok {
			return "attribute_not_exists(" + p.path(e.path) + ")"
		}
		text = "NOT " + p.condition(c.inner, 2)
	case comparison:
		text = p.operand(c.left) + " " + c.operator + " " + p.operand(c.right)
	case between:
		text = p.operand(c.value) + " BETWEEN " + p.operand(c.low) + " AND " + p.operand(c.high)
	case oneOf:
		text = p.operand(c.value) + " IN (" + p.operands(c.list) + ")"
	case exists:
		text = "attribute_exists(" + p.path(c.path) + ")"
	case hasKind:
		text = "attribute_type(" + p.operand(c.value) + ", " + p.operand(c.kind) + ")"
	case beginsWith:
		text = "begins_with(" + p.operand(c.value) + ", " + p.operand(c.prefix) + ")"
	case contains:
		text = "contains(" + p.operand(c.value) + ", " + p.operand(c.element) + ")"
	}
	if binds < place {
		return "(" + text + ")"
	}
	return text
}

// generator draws conditions; no two of its operands are the same.
type generator struct {
	t     *rapid.T
	drawn int
}

func (g *generator) pick(n int) int { return rapid.IntRange(0, n-1).Draw(g.t, "pick") }

func (g *generator) path() path {
	g.drawn++
	at := path{step{name: fmt.Sprintf("a%d", g.drawn)}}
	for range g.pick(3) {
		if g.pick(2) == 0 {
			at = append(at, step{index: g.pick(5), list: true})
		} else {
			at = append(at, step{name: fmt.Sprintf("b c.%d", g.pick(5))})
		}
	}
	return at
}

func (g *generator) value() valueOperand {
	g.drawn++
	return valueOperand{itemstore.String(fmt.Sprint("v", g.pick(9))), fmt.Sprintf(":v%d", g.drawn)}
}

func (g *generator) operand() operand {
	switch g.pick(4) {
	case 0:
		return sizeOperand{pathOperand{g.path()}}
	case 1:
		return g.value()
	default:
		return pathOperand{g.path()}
	}
}

func (g *generator) condition(depth int) condition {
	if depth > 0 {
		switch g.pick(5) {
		case 0:
			return andCondition{g.condition(depth - 1), g.condition(depth - 1)}
		case 1:
			return orCondition{g.condition(depth - 1), g.condition(depth - 1)}
		case 2:
			return notCondition{g.condition(depth - 1)}
		}
	}
	at := pathOperand{g.path()}
	switch g.pick(8) {
	case 0:
		return between{g.operand(), at, g.operand()}
	case 1:
		return oneOf{g.operand(), []operand{at, g.operand()}}
	case 2:
		return exists(at)
	case 3:
		kind := g.value()
		kind.constant = itemstore.String(rapid.SampledFrom(kindNames).Draw(g.t, "kind"))
		return hasKind{g.operand(), kind}
	case 4:
		return beginsWith{at, g.value()}
	case 5:
		return contains{at, g.operand()}
	default:
		operator := rapid.SampledFrom([]string{"=", "<>", "<", "<=", ">", ">="}).Draw(g.t, "operator")
		return comparison{operator, g.operand(), at}
	}
}

func TestParseReadsWhatIsPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{t: t}
		want := g.condition(4)
		p := &printer{map[string]string{}, map[string]itemstore.Value{}}
		text := p.condition(want, 0)
		if len(text) > maxExpression {
			t.Skip("too long")
		}
		ph := newPlaceholders(p.names, p.values)
		got, err := parseCondition("ConditionExpression", text, ph)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v\n%#v\n%#v", text, err, got, want)
		}
		if unused(ph.names) != "" || unused(ph.values) != "" {
			t.Fatalf("%s: unused are %s and %s", text, unused(ph.names), unused(ph.values))
		}
	})
}

// documents draws items with the attributes of generator's paths.
func documents() *rapid.Generator[itemstore.Item] {
	scalar := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 9), func(i int) itemstore.Value {
			return itemstore.String(fmt.Sprint("v", i))
		}),
		rapid.Map(rapid.Int64Range(-3, 3), func(i int64) itemstore.Value {
			return itemstore.NumberOf(i)
		}),
	)
	inner := rapid.MapOfN(rapid.Map(rapid.IntRange(0, 4), func(i int) string {
		return fmt.Sprintf("b c.%d", i)
	}), scalar, 0, 3)
	value := rapid.OneOf(scalar,
		rapid.Map(inner, func(m map[string]itemstore.Value) itemstore.Value {
			return itemstore.Map(m)
		}),
		rapid.Map(rapid.SliceOfN(scalar, 0, 4), func(l []itemstore.Value) itemstore.Value {
			return itemstore.List(l)
		}))
	names := rapid.Map(rapid.IntRange(1, 30), func(i int) string { return fmt.Sprintf("a%d", i) })
	return rapid.Map(rapid.MapOfN(names, value, 0, 20),
		func(m map[string]itemstore.Value) itemstore.Item { return m })
}

func TestLawsOfLogic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{t: t}
		a, b := g.condition(2), g.condition(2)
		item := documents().Draw(t, "item")
		for law, holds := range map[string]bool{
			"NOT NOT a": notCondition{notCondition{a}}.holds(item) == a.holds(item),
			"De Morgan": notCondition{andCondition{a, b}}.holds(item) ==
				orCondition{notCondition{a}, notCondition{b}}.holds(item),
			"a OR b":  orCondition{a, b}.holds(item) == orCondition{b, a}.holds(item),
			"a AND b": andCondition{a, b}.holds(item) == andCondition{b, a}.holds(item),
		} {
			if !holds {
				t.Fatalf("%s does not hold for %#v, %#v and %v", law, a, b, item)
			}
		}
		if c, ok := a.(comparison); ok && (c.operator == "=" || c.operator == "<>") {
			opposite := map[string]string{"=": "<>", "<>": "="}[c.operator]
			if (comparison{opposite, c.left, c.right}).holds(item) == c.holds(item) {
				t.Fatalf("both %#v and its opposite for %v", c, item)
			}
		}
	})
}

// TestUpdatesHaveNoOrder applies the same actions after adding them in two orders.
func TestUpdatesHaveNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type planned struct {
			at  path
			act action
		}
		var plan []planned
		taken := new(update)
		steps := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 12).Draw(t, "steps")
		for _, n := range steps {
			at := path{step{name: fmt.Sprintf("a%d", n)}}
			switch rapid.IntRange(0, 2).Draw(t, "deeper") {
			case 1:
				at = append(at, step{name: fmt.Sprintf("b c.%d", n)})
			case 2:
				at = append(at, step{index: rapid.IntRange(0, 6).Draw(t, "index"), list: true})
			}
			act := action{verb: rapid.SampledFrom([]verb{set, remove, add}).Draw(t, "verb")}
			act.expr = valueOperand{constant: itemstore.NumberOf(int64(n))}
			if n == 3 && act.verb == set {
				act.expr = pathOperand{path{step{name: "a1"}}}
			}
			if taken.add(at, act) == "" {
				plan = append(plan, planned{at, act})
			}
		}
		shuffled := new(update)
		for _, p := range rapid.Permutation(plan).Draw(t, "order") {
			if message := shuffled.add(p.at, p.act); message != "" {
				t.Fatalf("only in this order: %s", message)
			}
		}
		item := documents().Draw(t, "item")
		first, err1 := taken.apply(item, nil)
		second, err2 := shuffled.apply(item, nil)
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("%v, %v", err1, err2)
		}
		if err1 == nil && !itemstore.Equal(first, second) {
			t.Fatalf("%v\n%v", first, second)
		}
	})
}

func FuzzExpressions(f *testing.F) {
	for _, seed := range []string{
		"a = :v AND NOT (#n.b[0] <> :v OR size(c) BETWEEN :v AND :w)",
		"attribute_exists(a) AND begins_with(b, :s) OR c IN (:v, d)",
		"SET a = if_not_exists(b, :v) + :w, #n[1] = list_append(:l, c) REMOVE d ADD e :v DELETE f :set",
		"a, b.c[2], #n", "((a=:v))", "#", ":", "a[", "NOT NOT",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values := jsonItem(t, `{":v":{"N":"1"},":w":{"N":"2"},":s":{"S":"s"},
			":l":{"L":[{"N":"1"}]},":set":{"SS":["x"]}}`)
		ph := func() *placeholders { return newPlaceholders(map[string]string{"#n": "m"}, values) }
		item := jsonItem(t, updateItem)
		if c, err := parseCondition("ConditionExpression", text, ph()); err == nil {
			again := &printer{map[string]string{}, map[string]itemstore.Value{}}
			printed := again.condition(c, 0)
			d, err := parseCondition("ConditionExpression", printed,
				newPlaceholders(again.names, again.values))
			if len(printed) <= maxExpression && (err != nil || d.holds(item) != c.holds(item)) {
				t.Fatalf("%q is printed as %q: %v", text, printed, err)
			}
			c.holds(nil)
		}
		if u, err := parseUpdate(text, ph()); err == nil {
			before := string(appendItem(nil, item))
			next, err := u.apply(item, nil)
			if err == nil && next == nil {
				t.Fatalf("%q: no item", text)
			}
			if string(appendItem(nil, item)) != before {
				t.Fatalf("%q: changed its input", text)
			}
		}
		if tree, err := parseProjection(text, ph()); err == nil {
			tree.project(item)
		}
	})
}
