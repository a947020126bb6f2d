package aggregate_test

import (
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/aggregate"
)

func units() *rapid.Generator[aggregate.Unit] {
	return rapid.Custom(func(t *rapid.T) aggregate.Unit {
		return aggregate.Unit{
			Producer:  aggregate.ProducerID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "producer")),
			Number:    rapid.Uint64Range(1, aggregate.MaxNumber).Draw(t, "number"),
			Low:       rapid.Uint64Range(1, aggregate.MaxNumber).Draw(t, "low"),
			Unordered: rapid.Bool().Draw(t, "unordered"),
		}
	})
}

func TestUnitRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := units().Draw(t, "unit")
		tags := aggregate.Tags(nil).Append("other", "tag")
		if got, ok := (aggregate.Record{Tags: want.AppendTo(tags)}).Unit(); !ok || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, ok, want)
		}
		id, err := aggregate.ParseProducerID(want.Producer.String())
		if err != nil || id != want.Producer {
			t.Fatalf("got %s, %v, want %s", id, err, want.Producer)
		}
	})
}

// The tag is read strictly: anything that AppendTo does not write is no identity.
func TestUnitIsStrict(t *testing.T) {
	const id = "AAECAwQFBgcICQoLDA0ODw"
	tagged := func(values ...string) aggregate.Record {
		var r aggregate.Record
		for _, value := range values {
			r.Tags = r.Tags.Append(aggregate.UnitTag, value)
		}
		return r
	}
	for value, want := range map[string]aggregate.Unit{
		id + ".1.1":     {Number: 1, Low: 1},
		id + ".17.12":   {Number: 17, Low: 12},
		id + ".17.12.u": {Number: 17, Low: 12, Unordered: true},
		id + ".12.17":   {Number: 12, Low: 17}, // malformed, which the filter says
		id + ".9223372036854775807.1": {
			Number: math.MaxInt64, Low: 1,
		},
	} {
		want.Producer = aggregate.ProducerID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
		if got, ok := tagged(value).Unit(); !ok || got != want {
			t.Errorf("%s: got %+v, %v", value, got, ok)
		}
	}
	for _, value := range []string{
		"", ".", "..", id, id + ".", id + ".1", id + ".1.", id + ".1.1.", id + ".1.1.x", id + ".1.1.uu",
		id + ".1.1.1", id + ".1.1u", id + ".0.1", id + ".1.0", id + ".01.1", id + ".1.01", id + ".+1.1",
		id + ".-1.1", id + ". 1.1", id + ".1.1 ", id + ".1,1", id + "-1-1", id + ".1..1", id + ".a.1",
		id + ".9223372036854775808.1", id + ".1.9223372036854775808", id + ".18446744073709551617.1",
		id + ".99999999999999999999.1",
		id[:21] + ".1.1", id + "A.1.1", id[:21] + "x.1.1", id[:21] + "=.1.1", id[:21] + "\n.1.1",
		id[:20] + "\r\n" + ".1.1", id[:21] + "+.1.1", id[:21] + "/.1.1", strings.ToLower(id[:21]) + "!.1.1",
	} {
		if got, ok := tagged(value).Unit(); ok {
			t.Errorf("%q is %+v", value, got)
		}
	}
	if got, ok := tagged(id+".1.1", id+".1.1").Unit(); ok {
		t.Errorf("two tags are %+v", got)
	}
	if got, ok := tagged(id+".1.1", "x").Unit(); ok {
		t.Errorf("two tags, one of them malformed, are %+v", got)
	}
	other := aggregate.Record{Tags: aggregate.Tags(nil).Append("RNL", id+".1.1")}
	if got, ok := other.Unit(); ok {
		t.Errorf("another tag is %+v", got)
	}
	for _, text := range []string{"", id + "A", id[:21], id[:21] + "x", id[:20] + "\n\n"} {
		if got, err := aggregate.ParseProducerID(text); !errors.Is(err, aggregate.ErrProducerIDSyntax) {
			t.Errorf("ParseProducerID(%q) = %s, %v", text, got, err)
		}
	}
}

// Sinks keep lanes, so the hash is part of the format. The expectations are those of sha256sum.
func TestLaneOf(t *testing.T) {
	for _, c := range []struct{ key, explicit, want string }{
		{"", "", "6e340b9cffb37a989ca544e6bb780a2c"}, // of one zero byte
		{"k", "", "b78902b850cd9a0a1a3d8ed55ece0fbb"},
		{"k", "7", "f9df64c306d6623a973a8d6d292e3f43"},
		{strings.Repeat("k", 200), "", "07ea3f980606ef754bd419252217501b"},
	} {
		lane := aggregate.LaneOf(c.key, c.explicit)
		if got := hex.EncodeToString(lane[:]); got != c.want {
			t.Errorf("LaneOf(%q, %q) = %s, want %s", c.key, c.explicit, got, c.want)
		}
	}
	if aggregate.LaneOf("k1", "2") == aggregate.LaneOf("k", "12") {
		t.Error("the key's end and the hash key's begin are one")
	}
	r := aggregate.Record{PartitionKey: "k", ExplicitHashKey: "7"}
	if got := (aggregate.Unit{Number: 3}).Lane(r); got != aggregate.LaneOf("k", "7") {
		t.Errorf("a unit's lane is %x", got)
	}
	if got := (aggregate.Unit{Number: 0x0102, Unordered: true}).Lane(r); got != (aggregate.Lane{14: 1, 15: 2}) {
		t.Errorf("an unordered unit's lane is %x", got)
	}
	if n := testing.AllocsPerRun(10, func() { aggregate.LaneOf(r.PartitionKey, r.ExplicitHashKey) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
