package lease

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Values of attributes of ours survive their text, and values of other shapes are none.
func TestAttributeTexts(t *testing.T) {
	static := Static{Number: 7, Process: "P", Absence: 90 * time.Second}
	for _, a := range []Ask{
		{Worker: "w", Hold: "h", Beat: 1}, {Worker: "a b  c", Hold: "h", Beat: 9, ByHand: true},
	} {
		if got := parseAsk(a.String()); got != a {
			t.Errorf("%q is read as %+v", a, got)
		}
	}
	for _, c := range []Card{
		{Beat: 1}, {Beat: 5, MaxLeases: 3, Leaving: true}, {Beat: 5, Static: static},
	} {
		if got, ok := parseCard(c.String()); !ok || got != c {
			t.Errorf("%q is read as %+v, %v", c, got, ok)
		}
	}
	if got := parseStatic(static.String()); got != static {
		t.Errorf("%q is read as %+v", static, got)
	}
	stats := Stats{
		At: time.UnixMilli(1_700_000_000_123).UTC(), Behind: 1500 * time.Millisecond, Rate: 9,
		Busy: 0.125, Ingest: 12,
	}
	if got := parseStats(stats.String()); got != stats {
		t.Errorf("%q is read as %+v", stats, got)
	}
	stats.Busy, stats.Ingest = 0, 0
	if got := parseStats("1700000000123 1500 9"); got != stats {
		t.Errorf("an older version's measurements are read as %+v", got)
	}
	for value, want := range map[string]float64{
		"12.500000": 12.5, "0": 0, "-1": 0, "NaN": 0, "1e300": 0, "x": 0,
	} {
		row := item{attrThroughput: &types.AttributeValueMemberN{Value: value}}
		if got := readThroughput(row); got != want {
			t.Errorf("the throughput %s is read as %v", value, got)
		}
	}
	if got := readThroughput(item{attrThroughput: str("1")}); got != 0 {
		t.Errorf("a throughput that is a text is read as %v", got)
	}
	for _, text := range []string{
		"", "1", "0 h ask w", "-1 h ask w", "1  ask w", "1 h please w", "1 h ask ", "x h ask w",
	} {
		if got := parseAsk(text); got != (Ask{}) {
			t.Errorf("the ask %q is read as %+v", text, got)
		}
	}
	for _, text := range []string{"", "1 2", "0 2 here", "1 -2 here", "1 2 gone", "a 2 here"} {
		if got, ok := parseCard(text); ok {
			t.Errorf("the card %q is read as %+v", text, got)
		}
	}
	for _, text := range []string{"", "1 2", "0 2 P", "1 -2 P", "1 2 ", "1 86400001 P", "1 2 P Q"} {
		if got := parseStatic(text); got != (Static{}) {
			t.Errorf("the process %q is read as %+v", text, got)
		}
	}
	for _, text := range []string{"", "1 2", "1 2 -3", "1 2 3 4", "1 2 3 4 x", "1 2 3 4 5 6", "1 2 9999999999999999999"} {
		if got := parseStats(text); got != (Stats{}) {
			t.Errorf("the measurements %q are read as %+v", text, got)
		}
	}
}

// An ask counts for the present hold of a worker of this package alone.
func TestAsked(t *testing.T) {
	ask := Ask{Worker: "w2", Hold: "h", Beat: 1}
	for _, c := range []struct {
		row  Lease
		want bool
	}{
		{Lease{Owner: "w1", Holder: "w1", Hold: "h", Ask: ask}, true},
		{Lease{Owner: "w1", Holder: "w1", Hold: "later", Ask: ask}, false},
		{Lease{Owner: "w1", Holder: "w1", Hold: "h"}, false},
		{Lease{Owner: "w2", Holder: "w2", Hold: "h", Ask: ask}, false}, // its own
		{Lease{Owner: "java", Holder: "w1", Hold: "h", Ask: ask}, false},
		{Lease{Hold: "h", Ask: ask}, false},
	} {
		if _, ok := c.row.Asked(); ok != c.want {
			t.Errorf("%+v: %v, want %v", c.row, ok, c.want)
		}
	}
}

// FuzzAttributes reads texts of any shape. What is read survives its own text.
func FuzzAttributes(f *testing.F) {
	f.Add("1 h ask w")
	f.Add("7 3 leaving 4 1000 P")
	f.Add("4 1000 P")
	f.Add("1700000000123 1500 9")
	f.Fuzz(func(t *testing.T, text string) {
		if a := parseAsk(text); a != (Ask{}) && parseAsk(a.String()) != a {
			t.Errorf("%q is read as %+v", text, a)
		}
		if c, ok := parseCard(text); ok {
			if again, ok := parseCard(c.String()); !ok || again != c {
				t.Errorf("%q is read as %+v, then as %+v", text, c, again)
			}
		}
		if s := parseStatic(text); s != (Static{}) && parseStatic(s.String()) != s {
			t.Errorf("%q is read as %+v", text, s)
		}
		if s := parseStats(text); s != (Stats{}) && parseStats(s.String()) != s {
			t.Errorf("%q is read as %+v", text, s)
		}
	})
}
