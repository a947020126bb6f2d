// Package spell finds the intended name for a misspelt one.
package spell

import "strings"

// Near returns the name with the fewest edits from word, ignoring case, and the first of several.
// It returns "" if every name is too far: more than two edits, or for longer words more than a
// third of the letters.
func Near(word string, names []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, name := range names {
		if d := edits(strings.ToLower(name), strings.ToLower(word)); d < least {
			best, least = name, d
		}
	}
	return best
}

// DidYouMean returns " (did you mean NAME?)" for the nearest name, or "".
func DidYouMean(word string, names []string) string {
	if near := Near(word, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// edits is the Levenshtein distance of two words, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
