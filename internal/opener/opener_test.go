package opener_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/keyspace"
)

// taken takes up to limit user records.
type taken struct {
	limit    int
	expected int
	records  []runnel.Record
}

func (r *taken) Expect(n int) { r.expected += n }

func (r *taken) Take(record runnel.Record) bool {
	r.records = append(r.records, record)
	return len(r.records) < r.limit
}

func (r *taken) String() string {
	var text []string
	for _, record := range r.records {
		text = append(text, fmt.Sprintf("%s@%s", record.Data, record.Position))
	}
	return strings.Join(text, " ")
}

func record(number int, data []byte) *types.Record {
	return &types.Record{
		PartitionKey: aws.String("p"), Data: data, SequenceNumber: aws.String(strconv.Itoa(number)),
		ApproximateArrivalTimestamp: aws.Time(time.UnixMilli(int64(number))),
	}
}

// packed is an aggregate of records with these hash keys. A unit has a number from 1 on.
func packed(t *testing.T, unit uint64, hashes ...int) []byte {
	t.Helper()
	var e aggregate.Encoder
	for i, hash := range hashes {
		r := aggregate.Record{
			PartitionKey: "k", ExplicitHashKey: strconv.Itoa(hash), Data: fmt.Append(nil, hash),
		}
		if i == 0 && unit > 0 {
			r.Tags = aggregate.Unit{Number: unit, Low: unit}.AppendTo(nil)
		}
		if err := e.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return slices.Clone(e.Seal(nil))
}

// low is the range of the shard: the hash keys up to 9.
func low() keyspace.Range { return keyspace.Range{End: keyspace.Key{Lo: 9}} }

// Plain records and aggregates are opened in order, each user record once, from a position on that
// may lie inside an aggregate.
func TestOpen(t *testing.T) {
	got := []*types.Record{
		record(1, []byte("plain")), record(2, packed(t, 0, 1, 2, 3)), record(3, aggregate.Empty()),
		record(4, []byte("end")),
	}
	for _, c := range []struct {
		after runnel.Position
		want  string
	}{
		{runnel.Start(), "plain@1 1@2 2@2/1 3@2/2 end@4"},
		{runnel.Position{Sequence: "1"}, "1@2 2@2/1 3@2/2 end@4"},
		{runnel.Position{Sequence: "2"}, "2@2/1 3@2/2 end@4"},
		{runnel.Position{Sequence: "2", Sub: 1}, "3@2/2 end@4"},
		{runnel.Position{Sequence: "2", Sub: 2}, "end@4"},
		{runnel.Position{Sequence: "4"}, ""},
	} {
		o := opener.Opener{Shard: "s", Keys: low(), After: c.after}
		to := &taken{limit: 100}
		for range 2 { // the second time all is old
			for _, r := range got {
				opened := o.Open(r, to)
				if number := runnel.SequenceNumber(*r.SequenceNumber); opened.New &&
					opened.Last.Sequence != number {
					t.Errorf("after %s: %s is %+v", c.after, number, opened)
				}
			}
		}
		if to.String() != c.want || o.After != (runnel.Position{Sequence: "4"}) {
			t.Errorf("after %s: got %s up to %s, want %s", c.after, to, o.After, c.want)
		}
	}
}

// A void aggregate is dropped, delivered, or left unopened, and the filter does not see it: the
// unit that comes again is no double.
func TestVoid(t *testing.T) {
	for void, want := range map[opener.Void]string{
		opener.VoidAuto:    "1@3 2@3/1",
		opener.VoidDrop:    "1@3 2@3/1",
		opener.VoidDeliver: "1@2 77@2/1 1@3 2@3/1",
		opener.VoidStop:    "",
	} {
		o := opener.Opener{Keys: low(), Void: void, Filter: new(aggregate.Filter)}
		to := &taken{limit: 100}
		opened := o.Open(record(2, packed(t, 1, 1, 77)), to)
		if opened.Outside == nil || !opened.New || opened.Users != 2 {
			t.Errorf("%d: %+v", void, opened)
		}
		if stops := o.After == runnel.Start(); stops != (void == opener.VoidStop) {
			t.Errorf("%d: the opener is at %s", void, o.After)
		}
		if void != opener.VoidStop {
			o.Open(record(3, packed(t, 1, 1, 2)), to)
		}
		if to.String() != want {
			t.Errorf("%d: got %s, want %s", void, to, want)
		}
	}
}

// The filter drops a unit that comes again, and without one it is delivered.
func TestDoubles(t *testing.T) {
	for filter, want := range map[*aggregate.Filter]string{
		nil: "1@1 2@1/1 1@2 2@2/1", new(aggregate.Filter): "1@1 2@1/1",
	} {
		o := opener.Opener{Keys: low(), Filter: filter}
		to := &taken{limit: 100}
		unit := packed(t, 1, 1, 2)
		first, second := o.Open(record(1, unit), to), o.Open(record(2, unit), to)
		doubles := 0
		if filter != nil {
			doubles = 2
		}
		if to.String() != want || first.Doubles != 0 || second.Doubles != doubles {
			t.Errorf("got %s, want %s; doubles: %+v", to, want, second)
		}
	}
}

// A receiver learns how many user records an aggregate has, and gets no more than it wants.
func TestEnough(t *testing.T) {
	for _, filter := range []*aggregate.Filter{nil, new(aggregate.Filter)} {
		o := opener.Opener{Keys: low(), Filter: filter}
		to := &taken{limit: 2}
		o.Open(record(1, packed(t, 1, 1, 2, 3, 4)), to)
		if len(to.records) != 2 || to.expected != 4 {
			t.Errorf("got %s, of %d", to, to.expected)
		}
	}
}
