package main

import (
	"go/scanner"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// passage is one line of prose and the number of its line in the file.
type passage struct {
	line int
	text string
}

// passages returns the prose of a file, line by line: of Markdown all text outside code; of Go all
// comments and, outside tests, the string literals with three words or more.
func passages(name string, text []byte) []passage {
	if strings.HasSuffix(name, ".md") {
		return markdownPassages(string(text))
	}
	return goPassages(text, !strings.HasSuffix(name, "_test.go"))
}

var inlineCode = regexp.MustCompile("`[^`]*`")

func markdownPassages(text string) []passage {
	var found []passage
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "```") {
			fenced = !fenced
		} else if !fenced {
			found = append(found, passage{i + 1, inlineCode.ReplaceAllString(line, "")})
		}
	}
	return found
}

// goPassages scans Go tokens, so that "//" inside a string is no comment. A file that does not
// scan gives the passages before its first fault; the compiler reports the fault.
func goPassages(text []byte, literals bool) []passage {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Position, string) {}, scanner.ScanComments)
	var found []passage
	for {
		pos, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return found
		case kind == token.COMMENT && !isDirective(literal):
			found = append(found, lines(file.Line(pos), strings.Trim(literal, "/*"))...)
		case kind == token.STRING && literals:
			found = append(found, sentences(file.Line(pos), literal)...)
		}
	}
}

// sentences returns the lines of a string literal that read as text. A raw literal on one line is
// left out: it is a pattern or markup.
func sentences(first int, literal string) []passage {
	value, err := strconv.Unquote(literal)
	if err != nil || literal[0] == '`' && !strings.Contains(literal, "\n") {
		return nil
	}
	return slices.DeleteFunc(lines(first, value),
		func(p passage) bool { return !isSentence(p.text) })
}

// isDirective reports comments for tools, not for readers.
func isDirective(comment string) bool {
	return strings.HasPrefix(comment, "//go:") || strings.HasPrefix(comment, "//nolint") ||
		strings.HasPrefix(comment, "// nolint")
}

var longWord = regexp.MustCompile(`[A-Za-z']{2,}`)

// isSentence separates messages and help from keys, names and formats.
func isSentence(text string) bool { return len(longWord.FindAllString(text, 3)) == 3 }

func lines(first int, text string) []passage {
	var found []passage
	for i, line := range strings.Split(text, "\n") {
		found = append(found, passage{first + i, line})
	}
	return found
}
