package fault

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocs: docs/chaos.md has every fault, and each of its specifications can be read.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, kind := range kinds {
		if !strings.Contains(text, "`"+kind.name) {
			t.Errorf("docs/chaos.md does not tell of %s", kind.name)
		}
	}
	_, recipes, _ := strings.Cut(text, "## Recipes")
	specs := regexp.MustCompile("\\? \\| `(.*)` \\||night \\| `(.*)` \\|").
		FindAllStringSubmatch(recipes, -1)
	specs = append(specs, regexp.MustCompile(`--chaos '(.*)'|Faults\("(seed=.*)"\)`).
		FindAllStringSubmatch(text, -1)...)
	if len(specs) < 11 {
		t.Fatalf("docs/chaos.md has only these specifications: %q", specs)
	}
	for _, found := range specs {
		spec := found[1] + found[2]
		if plan, err := Parse(spec); err != nil || len(plan.rules) == 0 {
			t.Errorf("docs/chaos.md: %q: %v", spec, err)
		}
	}
}
