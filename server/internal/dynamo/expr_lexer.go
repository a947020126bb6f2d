package dynamo

import "strings"

// tokenKind is the kind of a token of an expression.
type tokenKind uint8

const (
	tokenEnd   tokenKind = iota
	tokenName            // an attribute name or a function
	tokenWord            // a word of the grammar, in any expression
	tokenIndex           // digits
	tokenHash            // a placeholder for a name: # and its name
	tokenColon           // a placeholder for a value: : and its name
	tokenSign            // an operator or punctuation mark
	tokenBad             // a character that no expression may contain
)

// grammarWords are never names. REMOVE is one of them although the reserved words lack it.
var grammarWords = wordSet("ADD AND BETWEEN DELETE IN NOT OR REMOVE SET")

// token is a piece of an expression, text[from:to]; the text has at most 4 KiB.
type token struct {
	text     string
	from, to uint16
	kind     tokenKind
}

func newToken(kind tokenKind, text string, from, to int) token {
	return token{text, uint16(from), uint16(to), kind}
}

// is reports whether the token is this sign.
func (t token) is(sign string) bool { return t.kind == tokenSign && t.text == sign }

// keyword reports whether the token is this keyword, in upper, lower or mixed case.
func (t token) keyword(word string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, word)
}

// comparator reports whether the token is = <> < <= > or >=.
func (t token) comparator() bool {
	return t.kind == tokenSign && strings.Contains(" = <> < <= > >= ", " "+t.text+" ")
}

// compares reports whether the token can follow a comparison's first operand.
func (t token) compares() bool {
	return t.comparator() || t.keyword("BETWEEN") || t.keyword("IN")
}

// lex cuts an expression into tokens; the last is tokenEnd.
func lex(text string) []token {
	tokens := make([]token, 0, len(text)/3+2)
	at := 0
	for {
		for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
			at++
		}
		if at == len(text) {
			return append(tokens, newToken(tokenEnd, "<EOF>", at, at))
		}
		kind, length := lexOne(text[at:])
		tokens = append(tokens, newToken(kind, text[at:at+length], at, at+length))
		at += length
	}
}

func lexOne(rest string) (tokenKind, int) {
	first := rest[0]
	switch {
	case first == '#' || first == ':':
		length := 1 + wordLength(rest[1:])
		switch {
		case length == 1:
			return tokenBad, 1
		case first == '#':
			return tokenHash, length
		default:
			return tokenColon, length
		}
	case first >= '0' && first <= '9':
		length := 1
		for first != '0' && length < len(rest) && rest[length] >= '0' && rest[length] <= '9' {
			length++
		}
		return tokenIndex, length
	case isWord(first) && first != '_': // a name begins with a letter
		length := wordLength(rest)
		if grammarWords.has(rest[:length]) {
			return tokenWord, length
		}
		return tokenName, length
	case strings.HasPrefix(rest, "<>"), strings.HasPrefix(rest, "<="),
		strings.HasPrefix(rest, ">="):
		return tokenSign, 2
	case strings.IndexByte("()[].,=<>+-", first) >= 0:
		return tokenSign, 1
	}
	length := 1 // a whole character, for the message
	for length < len(rest) && rest[length]&0xc0 == 0x80 {
		length++
	}
	return tokenBad, length
}

func wordLength(text string) int {
	length := 0
	for length < len(text) && isWord(text[length]) {
		length++
	}
	return length
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
