package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// habits are the counted ways of writing that hide a sentence's subject.
var habits = [...]struct {
	name    string
	pattern *regexp.Regexp
}{
	// A noun made of a clause, where the field has a word.
	{"clause", regexp.MustCompile(`(?i)\b(?:what|who|whose|whom|that which)\b`)},
	// A value or a file that takes a posture, where it exists or is written.
	{"stands", regexp.MustCompile(`(?i)\b(?:stands|stood|standing)\b`)},
	// A value or a log that speaks, where it contains or reports.
	{"told", regexp.MustCompile(`(?i)\b(?:told|tells|tell)\b`)},
	// A person in place of a part of the program.
	{"nobody", regexp.MustCompile(`(?i)\b(?:nobody|somebody|no one|someone|anyone|whoever)\b`)},
}

var word = regexp.MustCompile(`[A-Za-z']+`)

// count holds the words of a text and its hits, one number for each of habits.
type count struct {
	words  int
	habits [len(habits)]int
}

func measure(text string) count {
	c := count{words: len(word.FindAllString(text, -1))}
	for i, habit := range habits {
		c.habits[i] = len(habit.pattern.FindAllString(text, -1))
	}
	return c
}

func (c count) plus(other count) count {
	c.words += other.words
	for i := range c.habits {
		c.habits[i] += other.habits[i]
	}
	return c
}

func (c count) hits() int {
	sum := 0
	for _, n := range c.habits {
		sum += n
	}
	return sum
}

// per1000 is hits per 1,000 words; 0 for a text without words.
func (c count) per1000(hits int) float64 {
	if c.words == 0 {
		return 0
	}
	return float64(hits) * 1000 / float64(c.words)
}

// report prints the figures, worst package first, and returns errAboveGoal if a goal is missed.
func report(out io.Writer, total count, packages map[string]count, verbose bool) error {
	names := slices.Collect(maps.Keys(packages))
	slices.SortFunc(names, func(a, b string) int {
		x, y := packages[a].figure(), packages[b].figure()
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		case a < b:
			return -1
		default:
			return 1
		}
	})
	var text strings.Builder
	missed := total.figure() > goal
	for _, name := range names {
		figure, note := packages[name].figure(), ""
		if figure > goal && packages[name].hits() > 1 {
			missed, note = true, "  above the goal"
		}
		if verbose || note != "" {
			fmt.Fprintf(&text, "%6.2f  %-28s %6d words%s\n",
				figure, name, packages[name].words, note)
		}
	}
	fmt.Fprintf(&text, "%6.2f  per 1,000 of %d words (goal %.1f):",
		total.figure(), total.words, goal)
	for i, habit := range habits {
		fmt.Fprintf(&text, " %s %.2f", habit.name, total.per1000(total.habits[i]))
	}
	if _, err := fmt.Fprintln(out, text.String()); err != nil {
		return err
	}
	if missed {
		return errAboveGoal
	}
	return nil
}

func (c count) figure() float64 { return c.per1000(c.hits()) }
