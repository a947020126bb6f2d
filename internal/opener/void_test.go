package opener_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/keyspace"
)

// foreign is a Kinesis record under an outer key, with user records of these keys. A key may have
// an explicit hash key behind a "=", and its data is the whole text.
func foreign(t *testing.T, number int, unit uint64, outer, keys string) *types.Record {
	t.Helper()
	var e aggregate.Encoder
	for i, text := range strings.Fields(keys) {
		key, hash, _ := strings.Cut(text, "=")
		r := aggregate.Record{PartitionKey: key, ExplicitHashKey: hash, Data: []byte(text)}
		if i == 0 && unit > 0 {
			r.Tags = aggregate.Unit{Number: unit, Low: unit}.AppendTo(nil)
		}
		if err := e.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	got := record(number, slices.Clone(e.Seal(nil)))
	got.PartitionKey = aws.String(outer)
	return got
}

// The lower half of the keys holds the MD5 of k0 and a, and the upper half that of k3.
func half() keyspace.Range { return keyspace.Uniform(2)[0] }

// Each policy delivers, of the aggregates of each kind of producer, the user records that it
// promises, by both kinds of hash keys, also from a position inside the aggregate on.
func TestVoidByProducer(t *testing.T) {
	const high = "340282366920938463463374607431768211455"
	for _, name := range []string{"k0", "a", "k3"} {
		if inside := half().Contains(keyspace.Of(name)); inside != (name != "k3") {
			t.Fatalf("%s is not where the test wants it", name)
		}
	}
	mixed := "k0 k3 k3=7 k0=" + high + " k0"
	for _, c := range []struct {
		producer, outer, keys string
		unit                  uint64
		auto                  string // the records that VoidAuto delivers; "-": none
	}{
		{"own, under one key", "k0", mixed, 1, "-"},
		{"own, under many keys", "a", mixed, 1, "-"},
		{"KPL, mixed", "a", mixed, 0, "k0 k3=7 k0"},
		{"KPL, first outside", "a", "k3 k0", 0, "k0"},
		{"KPL, all outside", "a", "k3 k0=" + high, 0, "-"},
		{"other, under its first key", "k0", mixed, 0, mixed},
		{"other, all outside", "k3", "k3 k3", 0, "k3 k3"},
		{"other, whose first key is the KPL's", "a", "a k3", 0, "a k3"},
	} {
		all := strings.Fields(c.keys)
		for policy, want := range map[opener.Void]string{
			opener.VoidAuto: c.auto, opener.VoidDrop: "-", opener.VoidDeliver: c.keys,
			opener.VoidStop: "-",
		} {
			for begin := range all { // user records before were processed
				o := opener.Opener{Keys: half(), Void: policy, Filter: new(aggregate.Filter)}
				if begin > 0 {
					o.After = runnel.Position{Sequence: "5", Sub: int64(begin - 1)}
				}
				before, to := o.After, &taken{limit: 100}
				opened := o.Open(foreign(t, 5, c.unit, c.outer, c.keys), to)
				got := expectDelivered(all, begin, want)
				if to.String() != got.text {
					t.Errorf("%s, %s, from %d: got %s, want %s", c.producer, policy, begin, to,
						got.text)
				}
				if policy == opener.VoidStop {
					got.dropped = 0
				}
				if opened.Outside == nil || opened.Delivered != got.delivered ||
					opened.Dropped != got.dropped || opened.Users != len(all) {
					t.Errorf("%s, %s, from %d: %+v, want %+v", c.producer, policy, begin, opened,
						got)
				}
				after := opened.Last
				if policy == opener.VoidStop {
					after = before
				}
				if o.After != after || !o.Filter.Empty() {
					t.Errorf("%s, %s, from %d: the opener is at %s", c.producer, policy, begin,
						o.After)
				}
			}
		}
	}
}

type delivered struct {
	text               string
	delivered, dropped int
}

// expectDelivered returns the result of opening from the record at begin on, under a policy that
// delivers the records in want.
func expectDelivered(all []string, begin int, want string) (d delivered) {
	wanted := strings.Fields(strings.TrimPrefix(want, "-"))
	var texts []string
	for sub, key := range all {
		takes := len(wanted) > 0 && wanted[0] == key
		if takes {
			wanted = wanted[1:]
		}
		switch {
		case sub < begin:
		case takes:
			d.delivered++
			texts = append(texts, fmt.Sprintf("%s@%s", key,
				runnel.Position{Sequence: "5", Sub: int64(sub)}))
		default:
			d.dropped++
		}
	}
	d.text = strings.Join(texts, " ")
	return d
}

// Aggregates inside the range are delivered under every policy. Data that cannot be decoded is an
// ordinary record.
func TestNotVoid(t *testing.T) {
	for _, policy := range []opener.Void{
		opener.VoidAuto, opener.VoidDrop, opener.VoidDeliver, opener.VoidStop,
	} {
		o, to := opener.Opener{Keys: half(), Void: policy}, &taken{limit: 100}
		broken := foreign(t, 8, 0, "a", "k0 k3")
		broken.Data[len(broken.Data)-1] ^= 1
		for _, r := range []*types.Record{
			foreign(t, 6, 1, "k0", "k0 k3=7"), foreign(t, 7, 0, "a", "k0 a"), broken,
		} {
			if opened := o.Open(r, to); opened.Outside != nil || opened.Delivered != 0 ||
				opened.Dropped != 0 {
				t.Errorf("%s: %+v", policy, opened)
			}
		}
		want := "k0@6 k3=7@6/1 k0@7 a@7/1 " + string(broken.Data) + "@8"
		if to.String() != want {
			t.Errorf("%s: got %q, want %q", policy, to, want)
		}
	}
}

// A policy has a name.
func TestVoidNames(t *testing.T) {
	if got := fmt.Sprint(opener.VoidAuto, opener.VoidStop, opener.Void(9), opener.Void(-1)); got !=
		"auto stop policy 9 policy -1" {
		t.Error(got)
	}
}
