package dynamo

import (
	"fmt"
	"strconv"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// Limits of expressions ("Quotas in Amazon DynamoDB", Expression parameters).
const (
	maxExpression = 4 << 10 // bytes of an expression
	maxOperators  = 300     // operators and functions in a UpdateExpression, or in a condition
	maxInOperands = 100     // operands of one IN
)

// parser parses one expression. It continues after a fault, because a syntax error anywhere takes
// precedence over a fault in the meaning. After a syntax error it moves to the end of the text,
// where it reads no further token. So a grammar need not check for faults, except to avoid
// consequential ones; its result after a fault is meaningless.
type parser struct {
	text      string
	tokens    []token
	at        int
	operators int
	fault     string // the first of the most serious ones
	grave     gravity
	*placeholders
}

// gravity ranks faults.
type gravity uint8

const (
	ofMeaning gravity = iota
	ofParentheses
	ofSyntax
)

// parse runs a grammar over the whole text; parameter is the expression's name, such as
// "ConditionExpression".
func parse[T any](
	parameter, text string, ph *placeholders, grammar func(*parser) T,
) (T, error) {
	p := &parser{text: text, placeholders: ph}
	var result T
	switch {
	case text == "":
		p.fail("The expression can not be empty;")
	case len(text) > maxExpression:
		p.fail("Expression size has exceeded the maximum allowed size; expression size: %d",
			len(text))
	default:
		p.tokens = lex(text)
		result = grammar(p)
		if p.peek().kind != tokenEnd {
			p.syntax()
		}
	}
	if p.fault != "" {
		var none T
		return none, validation("Invalid %s: %s", parameter, p.fault)
	}
	return result, nil
}

func (p *parser) fail(format string, args ...any) {
	p.failed(ofMeaning, fmt.Sprintf(format, args...))
}

func (p *parser) failed(grave gravity, fault string) {
	if p.fault == "" || grave > p.grave {
		p.fault, p.grave = fault, grave
	}
}

// syntax reports a syntax error at the next token.
func (p *parser) syntax() {
	from, to := uint16(0), p.tokens[p.at].to
	if p.at > 0 {
		from = p.tokens[p.at-1].from
	}
	if p.at+1 < len(p.tokens) {
		to = p.tokens[p.at+1].to
	}
	p.failed(ofSyntax, fmt.Sprintf("Syntax error; token: %q, near: %q", p.peek().text,
		p.text[from:to]))
	p.at = len(p.tokens) - 1
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// accept takes the next token if it is this sign.
func (p *parser) accept(sign string) bool {
	if p.peek().is(sign) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(sign string) {
	if !p.accept(sign) {
		p.syntax()
	}
}

// acceptWord takes the next token if it is this keyword.
func (p *parser) acceptWord(word string) bool {
	if p.peek().keyword(word) {
		p.at++
		return true
	}
	return false
}

// operator counts an operator.
func (p *parser) operator() {
	if p.operators++; p.operators > maxOperators {
		p.fail("The expression contains too many operators; operator count: %d", p.operators)
	}
}

// inParentheses parses the content of parentheses, which may not be doubled.
func inParentheses[T any](p *parser, read func() T) T {
	p.expect("(")
	inside := p.at
	inner := read()
	if p.tokens[inside].is("(") && p.after(inside) == p.at {
		p.failed(ofParentheses, "The expression has redundant parentheses;")
	}
	p.expect(")")
	return inner
}

// after returns the index of the token behind the parenthesis that closes the one at open, or the
// text's end.
func (p *parser) after(open int) int {
	depth := 0
	for i, t := range p.tokens[open:] {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		}
		if depth == 0 {
			return open + i + 1
		}
	}
	return len(p.tokens) - 1
}

// calls reports whether the next tokens begin a function call.
func (p *parser) calls() bool {
	return p.peek().kind == tokenName && p.tokens[p.at+1].is("(")
}

// path parses a document path: a.b[0].#c.
func (p *parser) path() path {
	steps := path{p.name()}
	for {
		switch {
		case p.accept("."):
			steps = append(steps, p.name())
		case p.accept("["):
			steps = append(steps, p.index())
			p.expect("]")
		default:
			if len(steps) > 1 {
				p.nested = append(p.nested, steps[0].name)
			}
			if len(steps) > itemstore.MaxDepth {
				p.fail("The document path has too many nesting levels; nesting levels: %d",
					len(steps))
			}
			return steps
		}
	}
}

func (p *parser) name() step {
	switch t := p.peek(); t.kind {
	case tokenName:
		if reserved().has(t.text) {
			p.fail("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
		p.next()
		return step{name: t.text}
	case tokenHash:
		p.next()
		name, ok := use(p.names, t.text)
		if !ok {
			p.fail("An expression attribute name used in the document path is not defined; "+
				"attribute name: %s", t.text)
		}
		return step{name: name}
	}
	p.syntax()
	return step{}
}

func (p *parser) index() step {
	if p.peek().kind != tokenIndex {
		p.syntax()
	}
	t := p.next()
	index, err := strconv.ParseInt(t.text, 10, 32)
	if err != nil {
		p.fail("List index is not within the allowable range; index: [%s]", t.text)
	}
	return step{index: int(index), list: true}
}

// value parses a :placeholder.
func (p *parser) value() itemstore.Value {
	t := p.next()
	value, ok := use(p.values, t.text)
	if !ok {
		p.fail("An expression attribute value used in expression is not defined; "+
			"attribute value: %s", t.text)
	}
	return value
}
