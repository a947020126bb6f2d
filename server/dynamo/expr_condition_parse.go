package dynamo

import "github.com/runnel-stream/runnel/internal/itemstore"

// parseCondition reads a ConditionExpression or FilterExpression, as the parameter says:
//
//	condition = conjunction { OR conjunction }
//	conjunction = negation { AND negation }
//	negation = NOT negation | "(" condition ")" | predicate
//	predicate = operand comparator operand
//	          | operand BETWEEN operand AND operand
//	          | operand IN "(" operand { "," operand } ")"
//	          | function
//	function = name "(" operand { "," operand } ")"
//	operand = path | :value | size "(" operand ")"
func parseCondition(parameter, text string, ph *placeholders) (condition, error) {
	return parse(parameter, text, ph, (*parser).condition)
}

func (p *parser) condition() condition {
	left := p.conjunction()
	for p.acceptWord("OR") {
		p.operator()
		left = orCondition{left, p.conjunction()}
	}
	return left
}

func (p *parser) conjunction() condition {
	left := p.negation()
	for p.acceptWord("AND") {
		p.operator()
		left = andCondition{left, p.negation()}
	}
	return left
}

func (p *parser) negation() condition {
	if p.acceptWord("NOT") {
		p.operator()
		return notCondition{p.negation()}
	}
	if !p.accept("(") {
		return p.predicate()
	}
	inside := p.at
	inner := p.condition()
	if p.tokens[inside].is("(") && p.closes(inside) {
		p.fail("The expression has redundant parentheses;")
	}
	p.expect(")")
	return inner
}

// closes reports whether the parenthesis that opens at a token closes just before the next
// token to be read.
func (p *parser) closes(open int) bool {
	depth := 0
	for i := open; i < p.at; i++ {
		switch {
		case p.tokens[i].is("("):
			depth++
		case p.tokens[i].is(")"):
			depth--
		}
		if depth == 0 {
			return i == p.at-1
		}
	}
	return false
}

func (p *parser) predicate() condition {
	if p.calls() && p.peek().text != "size" {
		return p.function()
	}
	left := p.operand()
	t := p.next()
	p.operator()
	switch {
	case t.keyword("BETWEEN"):
		return p.between(left)
	case t.keyword("IN"):
		return p.in(left)
	case t.comparator():
		right := p.operand()
		p.distinct(t.text, left, right)
		if t.text != "=" && t.text != "<>" {
			p.ordered(t.text, left, right)
		}
		return comparison{t.text, left, right}
	}
	if _, ok := left.(sizeOperand); ok && p.fault == "" {
		p.fail("The function is not allowed to be used this way in an expression; " +
			"function: size")
	}
	p.back(t)
	p.syntax()
	return nil
}

// back stands at the token again, to fail there.
func (p *parser) back(t token) {
	for p.at > 0 && p.tokens[p.at].from > t.from {
		p.at--
	}
}

func (p *parser) between(value operand) condition {
	low := p.operand()
	if !p.acceptWord("AND") {
		p.syntax()
	}
	high := p.operand()
	p.distinct("BETWEEN", value, low, high)
	p.ordered("BETWEEN", value, low, high)
	l, isLow := low.(valueOperand)
	h, isHigh := high.(valueOperand)
	if isLow && isHigh && p.fault == "" {
		order, ok := itemstore.Compare(l.constant, h.constant)
		if !ok {
			p.fail("The BETWEEN operator requires same data type for lower and upper bounds; "+
				"lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s",
				braced(l.constant), braced(h.constant))
		}
		if order > 0 {
			p.fail("The BETWEEN operator requires upper bound to be greater than or equal to "+
				"lower bound; lower bound operand: AttributeValue: %s, "+
				"upper bound operand: AttributeValue: %s", braced(l.constant), braced(h.constant))
		}
	}
	return between{value, low, high}
}

func (p *parser) in(value operand) condition {
	p.expect("(")
	list := p.operands()
	if len(list) > maxInOperands {
		p.fail("Invalid number of operands for operator or function; operator or function: "+
			"IN, number of operands: %d", len(list))
	}
	p.distinct("IN", append([]operand{value}, list...)...)
	return oneOf{value, list}
}

// operands reads a list up to its closing parenthesis.
func (p *parser) operands() []operand {
	list := []operand{p.operand()}
	for p.accept(",") {
		list = append(list, p.operand())
	}
	p.expect(")")
	return list
}

// operand reads one. After a fault it may be nil.
func (p *parser) operand() operand {
	switch {
	case p.peek().kind == tokenColon:
		name := p.peek().text
		return valueOperand{p.value(), name}
	case !p.calls():
		return pathOperand{p.path()}
	}
	name := p.next().text
	p.expect("(")
	list := p.operands()
	p.operator()
	switch {
	case name == "size":
		if p.count(name, list, 1) {
			p.kinds(name, list[0], "B", "BS", "L", "M", "NS", "S", "SS")
			return sizeOperand{list[0]}
		}
	case name == "if_not_exists" || name == "list_append":
		p.fail("The function is not allowed in a condition expression; function: %s", name)
	case conditionFunctions[name]:
		p.fail("The function is not allowed to be used this way in an expression; "+
			"function: %s", name)
	default:
		p.fail("Invalid function name; function: %s", name)
	}
	return nil
}
