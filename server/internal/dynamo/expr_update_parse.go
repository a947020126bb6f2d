package dynamo

import (
	"strings"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// parseUpdate parses an UpdateExpression:
//
//	update = section { section }, each kind once
//	section = SET path "=" sum { "," path "=" sum }
//	        | REMOVE path { "," path }
//	        | ADD path :value { "," path :value }
//	        | DELETE path :value { "," path :value }
//	sum = term [ ( "+" | "-" ) term ] | "(" sum ")"
//	term = path | :value | "(" term ")"
//	     | if_not_exists "(" path "," term ")" | list_append "(" term "," term ")"
//
// list_append may not be part of another function or of a sum.
func parseUpdate(text string, ph *placeholders) (*update, error) {
	return parse("UpdateExpression", text, ph, (*parser).update)
}

// add adds an action. It returns a message if the action conflicts with an earlier one.
func (u *update) add(at path, act action) (message string) {
	if message := u.tree.add(at, act); message != "" {
		return message
	}
	u.paths = append(u.paths, at)
	u.creates = u.creates || act.verb == set || act.verb == add || act.verb == attach
	return ""
}

var sections = map[string]verb{"SET": set, "REMOVE": remove, "ADD": add, "DELETE": erase}

func (p *parser) update() *update {
	u := new(update)
	seen := map[verb]bool{}
	for len(seen) == 0 || p.peek().kind != tokenEnd {
		word := strings.ToUpper(p.peek().text)
		section, ok := sections[word]
		if !ok {
			p.syntax()
			break
		}
		p.next()
		if seen[section] {
			p.fail("The %q section can only be used once in an update expression;", word)
		}
		seen[section] = true
		p.action(u, section, word)
		for p.accept(",") {
			p.action(u, section, word)
		}
	}
	return u
}

// action parses one action of a section.
func (p *parser) action(u *update, section verb, word string) {
	at := p.path()
	act := action{verb: section}
	switch section {
	case set:
		p.expect("=")
		act.expr = p.sum()
	case add, erase:
		act.expr = p.operandOf(section, word)
	}
	p.operator()
	if p.fault != "" {
		return
	}
	if message := u.add(at, act); message != "" {
		p.fail("%s", message)
	}
}

// operandOf parses the value of ADD or DELETE.
func (p *parser) operandOf(section verb, word string) expression {
	if p.peek().kind != tokenColon {
		p.syntax()
		return nil
	}
	name := p.peek().text
	value := p.value()
	if p.fault != "" {
		return nil
	}
	switch value.Kind() {
	case itemstore.KindStringSet, itemstore.KindNumberSet, itemstore.KindBinarySet:
	case itemstore.KindNumber:
		if section == erase {
			p.wrongKind(word, value)
		}
	default:
		p.wrongKind(word, value)
	}
	return valueOperand{value, name}
}

func (p *parser) wrongKind(word string, value itemstore.Value) {
	p.fail("Incorrect operand type for operator or function; operator: %s, operand type: %s, "+
		"typeSet: ALLOWED_FOR_%s_OPERAND", word, kindTitles[value.Kind()], word)
}

// kindTitles are the kinds' long names in the messages about ADD and DELETE.
var kindTitles = map[itemstore.Kind]string{
	"S": "STRING", "N": "NUMBER", "B": "BINARY", "SS": "STRING_SET", "NS": "NUMBER_SET",
	"BS": "BINARY_SET", "M": "MAP", "L": "LIST", "BOOL": "BOOLEAN", "NULL": "NULL",
}

func (p *parser) sum() expression {
	if p.peek().is("(") {
		if t := p.tokens[p.after(p.at)]; !t.is("+") && !t.is("-") {
			return inParentheses(p, p.sum)
		}
	}
	left := p.term()
	t := p.peek()
	if !p.accept("+") && !p.accept("-") {
		return left
	}
	p.operator()
	right := p.term()
	p.computed(t.text, left, "N")
	p.computed(t.text, right, "N")
	return sum{left, right, t.text == "-"}
}

func (p *parser) term() expression {
	switch {
	case p.peek().kind == tokenColon:
		name := p.peek().text
		return valueOperand{p.value(), name}
	case p.peek().is("("):
		return inParentheses(p, p.term)
	case !p.calls():
		return pathOperand{p.path()}
	}
	return p.calculation()
}

// calculation parses a function call.
func (p *parser) calculation() expression {
	name := p.next().text
	p.expect("(")
	list := []expression{p.term()}
	for p.accept(",") {
		list = append(list, p.term())
	}
	p.expect(")")
	p.operator()
	switch {
	case conditionFunctions[name] || name == "size":
		p.fail("The function is not allowed in an update expression; function: %s", name)
		return nil
	case name != "if_not_exists" && name != "list_append":
		p.fail("Invalid function name; function: %s", name)
		return nil
	}
	if len(list) != 2 {
		p.fail("Incorrect number of operands for operator or function; operator or function: "+
			"%s, number of operands: %d", name, len(list))
		return nil
	}
	if name == "list_append" {
		p.computed(name, list[0], "L")
		p.computed(name, list[1], "L")
		return listAppend{list[0], list[1]}
	}
	of, ok := list[0].(pathOperand)
	if !ok {
		p.fail("Operator or function requires a document path; operator or function: %s", name)
	}
	if other, ok := list[1].(pathOperand); ok {
		p.distinct(name, of, other)
	}
	p.computed(name, list[1], kindNames...)
	return ifNotExists{of.path, list[1]}
}

// computed checks the kind of an operand if the request alone determines it.
func (p *parser) computed(name string, e expression, kinds ...itemstore.Kind) {
	switch e := e.(type) {
	case valueOperand:
		p.kinds(name, e, kinds...)
	case listAppend:
		p.misused("list_append")
	}
}
