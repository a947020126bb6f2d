package demo

import (
	"testing"

	"github.com/runnel-stream/runnel/internal/ndjson"
)

// The generator gives the same events for a seed, in each repository a creation first and
// nothing after a destruction but another creation, and no repository more than 2 %.
func TestRepositoryEvents(t *testing.T) {
	const n = 50_000
	perKey, alive := map[string]int{}, map[string]bool{}
	var first []event
	for e := range repositoryEvents(7, n) {
		first = append(first, e)
		perKey[e.key]++
		kind := kindOf(t, e)
		if (kind == "create") == alive[e.key] {
			t.Fatalf("%s of %s, which is there: %v", kind, e.key, alive[e.key])
		}
		alive[e.key] = kind != "destroy"
	}
	hottest := 0
	for _, count := range perKey {
		hottest = max(hottest, count)
	}
	if len(first) != n || hottest > n/50 || hottest < n/100 || len(perKey) < n/20 {
		t.Errorf("%d events, %d keys, the hottest has %d", len(first), len(perKey), hottest)
	}
	i := 0
	for e := range repositoryEvents(7, n) {
		if string(e.data) != string(first[i].data) {
			t.Fatalf("event %d differs in the second run", i)
		}
		i++
	}
}

func kindOf(t *testing.T, e event) string {
	t.Helper()
	field, err := ndjson.ParseField("type")
	if err != nil {
		t.Fatal(err)
	}
	kind, err := field.Of(e.data)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}
