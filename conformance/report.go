package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// report writes the results as a page of Markdown that depends on nothing but the answers: no
// times, no random names, facts in the order of their operation and id. known are the reasons of
// differences that were decided on, by the fact's id.
func report(results []result, prefix string, known map[string]string) string {
	var b strings.Builder
	b.WriteString(`# Fidelity

What ` + "`runnel serve`" + ` answers, fact by fact, beside where each fact comes from. This page is
written by the conformance suite (` + "`make fidelity`" + `), and CI fails when it is out of date.

The suite asks any endpoint: ` + "`go run ./conformance --endpoint URL`" + ` an emulator,
` + "`go run ./conformance --endpoint aws --cost`" + ` says what AWS would count for it. Nothing
here was compared with live AWS. So the source of a fact is part of it, and a guess is called one.

`)
	writeCounts(&b, results)
	byOperation := map[string][]result{}
	var operations []string
	for _, r := range results {
		op := r.fact.op
		if _, seen := byOperation[op]; !seen {
			operations = append(operations, op)
		}
		byOperation[op] = append(byOperation[op], r)
	}
	slices.Sort(operations)
	for _, op := range operations {
		title := op
		if op == "" {
			title = "The protocol"
		}
		fmt.Fprintf(&b, "\n## %s\n\n| fact | behaviour | source | runnel |\n|---|---|---|---|\n",
			title)
		for _, r := range byOperation[op] {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.fact.id, cell(r.fact.says, prefix),
				cell(r.fact.source.String(), prefix), cell(verdict(r, known), prefix))
		}
	}
	writeGuesses(&b, results, prefix)
	return b.String()
}

func verdict(r result, known map[string]string) string {
	switch r.outcome {
	case outcomeDiffers:
		if reason := known[r.fact.id]; reason != "" {
			return "**differs**: " + reason
		}
		return "**differs**: " + r.got + " instead of " + r.expected
	case outcomeSkipped:
		if r.fact.needs&patience != 0 {
			return "not asked in CI: it takes minutes"
		}
		return "not asked: " + r.reason
	case outcomeError:
		return "**in error**: " + r.reason
	case outcomeOK, outcomeKnown, outcomeStale: // the last two are not for the page
	}
	return "ok"
}

func writeCounts(b *strings.Builder, results []result) {
	columns := []outcome{outcomeOK, outcomeDiffers, outcomeSkipped, outcomeError}
	b.WriteString("| source | facts | ok | differs | not asked | in error " +
		"|\n|---|---|---|---|---|---|\n")
	line := func(name string, in func(result) bool) {
		counts := map[outcome]int{}
		total := 0
		for _, r := range results {
			if in(r) {
				counts[r.outcome]++
				total++
			}
		}
		fmt.Fprintf(b, "| %s | %d ", name, total)
		for _, column := range columns {
			fmt.Fprintf(b, "| %d ", counts[column])
		}
		b.WriteString("|\n")
	}
	for _, kind := range kinds {
		line(kind.String(), func(r result) bool { return r.fact.source.is(kind) })
	}
	line("all", func(result) bool { return true })
}

func writeGuesses(b *strings.Builder, results []result, prefix string) {
	b.WriteString("\n## Guesses\n\nWhat nobody was found to have said. Whoever knows better, or " +
		"runs the suite against AWS, is\nasked to tell.\n\n")
	for _, r := range results {
		if r.fact.source.is(guessed) {
			fmt.Fprintf(b, "- %s: %s Why so: %s.\n", r.fact.id, cell(r.fact.says, prefix),
				cell(r.fact.source.where, prefix))
		}
	}
}

// long are numbers and ids that differ from run to run.
var long = regexp.MustCompile(`\d{40,}|[0-9a-f]{8}-[0-9a-f-]{27}|\b1\d{9,12}(\.\d+)?\b`)

// cell makes a text fit for a table, and the same in every run.
func cell(s, prefix string) string {
	s = strings.ReplaceAll(s, prefix, "")
	s = long.ReplaceAllString(s, "…")
	s = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`).Replace(s)
	return strings.ReplaceAll(s, `\*\*differs\*\*`, "**differs**")
}
