package dynamo

import "github.com/runnel-stream/runnel/server/internal/itemstore"

// parseCondition parses a ConditionExpression or FilterExpression; parameter says which:
//
//	condition = conjunction { OR conjunction }
//	conjunction = negation { AND negation }
//	negation = NOT negation | "(" condition ")" | predicate
//	predicate = operand comparator operand
//	          | operand BETWEEN operand AND operand
//	          | operand IN "(" operand { "," operand } ")"
//	          | function
//	function = name "(" operand { "," operand } ")"
//	operand = path | :value | size "(" operand ")" | "(" operand ")"
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
	if p.peek().is("(") && !p.tokens[p.after(p.at)].compares() {
		return inParentheses(p, p.condition)
	}
	return p.predicate()
}

func (p *parser) predicate() condition {
	if p.calls() && p.peek().text != "size" {
		return p.function()
	}
	left := p.operand()
	if p.peek().compares() {
		return p.compared(left)
	}
	if _, ok := left.(sizeOperand); ok {
		p.misused("size")
	} else {
		p.syntax()
	}
	return nil
}

// compared parses the rest of a comparison after its first operand.
func (p *parser) compared(left operand) condition {
	t := p.next()
	p.operator()
	switch {
	case t.keyword("BETWEEN"):
		return p.between(left)
	case t.keyword("IN"):
		return p.in(left)
	}
	right := p.operand()
	p.distinct(t.text, left, right)
	if t.text != "=" && t.text != "<>" {
		p.ordered(t.text, left, right)
	}
	return comparison{t.text, left, right}
}

func (p *parser) misused(function string) {
	p.fail("The function is not allowed to be used this way in an expression; function: %s",
		function)
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

// operands parses a list up to its closing parenthesis.
func (p *parser) operands() []operand {
	list := []operand{p.operand()}
	for p.accept(",") {
		list = append(list, p.operand())
	}
	p.expect(")")
	return list
}

// operand parses one operand. After a fault it may return nil.
func (p *parser) operand() operand {
	switch {
	case p.peek().kind == tokenColon:
		name := p.peek().text
		return valueOperand{p.value(), name}
	case p.peek().is("("):
		return inParentheses(p, p.operand)
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
		p.misused(name)
	default:
		p.fail("Invalid function name; function: %s", name)
	}
	return nil
}
