package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// report returns the results as a page of Markdown. The same answers give the same page: it has no
// times and no random names, and the facts are sorted by operation and id. known has the reasons
// of decided differences, by fact id.
func report(results []result, prefix string, known map[string]string) string {
	var b strings.Builder
	b.WriteString(`# Fidelity

This page lists facts about the Kinesis API. Each fact has a source and a result: whether
` + "`runnel serve`" + ` behaves so. The conformance suite writes the page, by
` + "`make fidelity`" + `, and CI fails if it is out of date. The suite has not run against live
AWS. A fact without any source is marked as a guess; the guesses are listed at the end.

The suite can ask any endpoint. ` + "`go run ./conformance --endpoint URL`" + ` checks an
emulator; with ` + "`--endpoint aws --cost`" + ` it lists the units that AWS would bill for a run,
and makes no call.

The page is about Kinesis. In DynamoDB one limit is runnel's own: a request has at most 524,288
values, whereas an item of 400 KB has room for 400,000 ([serve.md](serve.md)).

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
	case outcomeOK, outcomeKnown, outcomeStale: // the page's results are never known or stale
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
	b.WriteString("\n## Guesses\n\nNo source was found for these facts. Please report a source, " +
		"or a run against AWS.\n\n")
	for _, r := range results {
		if r.fact.source.is(guessed) {
			fmt.Fprintf(b, "- %s: %s Why so: %s.\n", r.fact.id, cell(r.fact.says, prefix),
				cell(r.fact.source.where, prefix))
		}
	}
}

// long matches numbers and ids that differ from run to run.
var long = regexp.MustCompile(`\d{40,}|[0-9a-f]{8}-[0-9a-f-]{27}|\b1\d{9,12}(\.\d+)?\b`)

// cell escapes a text for a table and removes the parts that differ from run to run.
func cell(s, prefix string) string {
	s = strings.ReplaceAll(s, prefix, "")
	s = long.ReplaceAllString(s, "…")
	s = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`).Replace(s)
	return strings.ReplaceAll(s, `\*\*differs\*\*`, "**differs**")
}
