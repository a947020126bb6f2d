package rollup

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
)

// orders draws orders that often share parts.
var orders = rapid.Custom(func(t *rapid.T) Order {
	at := func(label string) time.Time {
		seconds := rapid.OneOf(rapid.Int64Range(0, 1), rapid.Int64Range(firstSecond, endSecond-1)).
			Draw(t, label)
		return time.Unix(seconds, rapid.SampledFrom([]int64{0, 1, 999_999_999}).Draw(t, "nanos")).UTC()
	}
	sequence := rapid.OneOf(rapid.SampledFrom([]string{"0", "9", "10", "99", "100"}),
		rapid.StringMatching(`[1-9][0-9]{55}`), rapid.StringMatching(`[1-9][0-9]{128}`)).Draw(t, "sequence")
	o := Order{
		Time: at("time"), Arrival: at("arrival"),
		Shard: runnel.ShardID(rapid.SampledFrom([]string{"", "a", "a-", "a.b", "shardId-000000000000", "shardId-000000000001", "shardId-0000000000010"}).Draw(t, "shard")),
	}
	o.Position.Sequence = runnel.SequenceNumber(sequence)
	o.Position.Sub = rapid.SampledFrom([]int64{0, 1, 2, 10, 4096}).Draw(t, "sub")
	if sequence == "0" {
		o.Position = runnel.Start()
	}
	return o
})

// TestOrderText checks that the texts order as the orders do, and can be read back.
func TestOrderText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := orders.Draw(t, "a"), orders.Draw(t, "b")
		if rapid.Bool().Draw(t, "same times") {
			b.Time, b.Arrival = a.Time, a.Arrival
			if rapid.Bool().Draw(t, "same shard") {
				b.Shard = a.Shard
			}
		}
		if got, want := strings.Compare(a.String(), b.String()), a.Compare(b); got != want {
			t.Fatalf("%s and %s compare as %d, want %d", a, b, got, want)
		}
		if got, err := ParseOrder(a.String()); err != nil || got != a {
			t.Fatalf("%s was read as %s, %v", a, got, err)
		}
	})
}

// TestOrderCompare has a list in ascending order.
func TestOrderCompare(t *testing.T) {
	order := func(time1, arrival int64, shard runnel.ShardID, sequence runnel.SequenceNumber, sub int64) Order {
		return Order{
			time.UnixMicro(time1), time.UnixMicro(arrival), shard,
			runnel.Position{Sequence: sequence, Sub: sub},
		}
	}
	list := []Order{
		{},
		order(-1, 9, "b", "9", 9),
		order(0, 5, "b", "10", 0),
		order(0, 6, "a", "9", 0),
		order(0, 6, "a", "9", 1),
		order(0, 6, "a", "9", 10),
		order(0, 6, "a", "10", 0),
		order(0, 6, "b", "1", 0),
		order(1, 0, "a", "1", 0),
	}
	for i, a := range list {
		for j, b := range list {
			want := min(1, max(-1, i-j))
			if got := a.Compare(b); got != want {
				t.Errorf("%s and %s: %d, want %d", a, b, got, want)
			}
			if got := strings.Compare(a.String(), b.String()); got != want {
				t.Errorf("%s and %s as texts: %d, want %d", a, b, got, want)
			}
		}
	}
	const want = "1970-01-01T00:00:00.000001000Z 1970-01-01T00:00:00.000000000Z a 001-1-0000000000"
	if got := list[len(list)-1].String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestParseOrder(t *testing.T) {
	good := Order{Position: runnel.Position{Sequence: "7"}}.String()
	if _, err := ParseOrder(good); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", " ", good + " ", " " + good, good[1:], strings.Replace(good, "001-7", "001-07", 1),
		strings.Replace(good, "Z", "+00:00", 1), strings.Replace(good, ".000000000Z", "Z", 1),
		strings.Replace(good, "  ", " ", 1), strings.Replace(good, "-01-01", "-13-01", 1),
		strings.Replace(good, ".", ",", 1),
	} {
		if got, err := ParseOrder(text); !errors.Is(err, ErrOrderSyntax) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
