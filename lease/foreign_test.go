package lease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// The rows of several streams make a whole table unusable; a strange key is one bad row.
func TestMultiStreamKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"123456789012:orders:1700000000:shardId-000000000000":           true,
		"123456789012:orders:1700000000:eu-west-1:shardId-000000000000": true,
		"shardId-000000000000":         false,
		"a:b:c:d":                      false,
		"123456789012:orders:x:shard":  false,
		":orders:1700000000:shard":     false,
		"123456789012::1700000000:s":   false,
		"123456789012:orders:17000000": false,
		"":                             false,
	} {
		row := javaRow()
		row[attrKey] = str(key)
		if _, err := decode(row); errors.Is(err, ErrMultiStream) != want {
			t.Errorf("%q: %v", key, err)
		}
	}
	row := javaRow()
	row[attrStreamName] = str("123456789012:orders:1700000000")
	if _, err := decode(row); !errors.Is(err, ErrUnreadableRow) || errors.Is(err, ErrMultiStream) {
		t.Errorf("a plain key with a stream's name: %v", err)
	}
}

// A row without a stamp that cannot be one of the stream's shows that the table is another
// stream's.
func TestFits(t *testing.T) {
	half := keyspace.Uniform(2)
	shards := []runnel.Shard{
		{ID: "closed", Range: half[0], First: "100", Last: "200"},
		{ID: "open", Range: half[1], First: "100"},
	}
	at := func(key, number string) Lease {
		return Lease{
			Key:        runnel.ShardID(key),
			Checkpoint: runnel.Position{Sequence: runnel.SequenceNumber(number)},
		}
	}
	ranged := func(key string, keys keyspace.Range) Lease {
		l := at(key, "TRIM_HORIZON")
		l.Range = &keys
		return l
	}
	stamped := at("open", "99")
	stamped.Stream = "orders@1"
	for _, c := range []struct {
		name string
		row  Lease
		want string
	}{
		{"the first number", at("closed", "100"), ""},
		{"the last number", at("closed", "200"), ""},
		{"before the first", at("closed", "99"), "before the shard's first"},
		{"after the last", at("closed", "201"), "after the shard's last"},
		{"far on, in an open shard", at("open", "99999"), ""},
		{"a shorter number is smaller", at("open", "9"), "before the shard's first"},
		{"a word", at("closed", "SHARD_END"), ""},
		{"its own keys", ranged("open", half[1]), ""},
		{"other keys", ranged("open", half[0]), "its hash keys are"},
		{"a shard that is not listed", at("gone", "5"), ""},
		{"a stamped row is one bad row", stamped, ""},
	} {
		table := &Table{cfg: Config{Table: "app", Stream: Stream{Name: "orders"}}}
		err := table.Fits([]Lease{at("open", "150"), c.row}, shards)
		var foreign *StreamError
		switch {
		case c.want == "" && err == nil:
		case c.want == "" || !errors.As(err, &foreign) || !errors.Is(err, ErrOtherStream) ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), string(c.row.Key)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// The rows of a Java application suggest its origin.
func TestInferredOrigin(t *testing.T) {
	const early, late = 1_700_000_000_000, 1_700_000_100_000
	row := func(word runnel.SequenceNumber, from int64, parents ...runnel.ShardID) Lease {
		l := Lease{Checkpoint: runnel.Position{Sequence: word}, Parents: parents}
		if from != 0 {
			l.From = time.UnixMilli(from)
		}
		return l
	}
	ownTime := runnel.FromTime(time.UnixMilli(late))
	ownLatest := runnel.FromLatest().Pin(time.UnixMilli(late))
	oldest := runnel.FromOldest()
	for _, c := range []struct {
		name string
		rows []Lease
		own  runnel.From
		want runnel.From
	}{
		{"numbers say nothing", []Lease{row("77", 0), row(runnel.ShardEnd, 0)}, ownTime, ownTime},
		{"the oldest", []Lease{row(runnel.TrimHorizon, 0)}, ownLatest, oldest},
		{"a child begins there anyway", []Lease{row(runnel.TrimHorizon, 0, "p")}, ownTime, ownTime},
		{"the latest, of a child", []Lease{row(runnel.Latest, 0, "p")}, ownLatest, ownLatest},
		{"the latest, own is the oldest", []Lease{row(runnel.Latest, 0)}, oldest, runnel.FromLatest()},
		{"the latest, own is a time", []Lease{row(runnel.Latest, 0)}, ownTime, ownTime},
		{
			"the latest with a time",
			[]Lease{row(runnel.Latest, early)},
			ownTime,
			runnel.FromLatest().Pin(time.UnixMilli(early)),
		},
		{
			"a time of the Rust library",
			[]Lease{row(runnel.AtTimestamp, early)},
			ownTime,
			runnel.FromTime(time.UnixMilli(early)),
		},
		{"Java's time is in its configuration", []Lease{row(runnel.AtTimestamp, 0)}, ownTime, ownTime},
		{
			"a word beats a shard without parents",
			[]Lease{row(runnel.TrimHorizon, 0), row(runnel.AtTimestamp, early, "p")},
			oldest,
			runnel.FromTime(time.UnixMilli(early)),
		},
	} {
		if got := inferred(c.rows, c.own); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A row of another program without a time gets the application's, or the worker's own.
func TestTimesOfRows(t *testing.T) {
	now, at := time.UnixMilli(1_700_000_500_000).UTC(), time.UnixMilli(1_700_000_000_000).UTC()
	latest, timed, oldest := runnel.FromLatest().Pin(at), runnel.FromTime(at), runnel.FromOldest()
	for _, c := range []struct {
		name        string
		word        string
		sub         int64
		from        int64
		origin, own runnel.From
		want        time.Time // zero: the row cannot be read
	}{
		{
			"the row's own", "AT_TIMESTAMP", 0, 1_690_000_000_000, timed, timed,
			time.UnixMilli(1_690_000_000_000).UTC(),
		},
		{
			"the Rust library's", "AT_TIMESTAMP", 1_680_000_000_000, 0, timed, timed,
			time.UnixMilli(1_680_000_000_000).UTC(),
		},
		{"the application's", "AT_TIMESTAMP", 0, 0, timed, oldest, at},
		{"the worker's", "AT_TIMESTAMP", 0, 0, oldest, timed, at},
		{"a number of records is no time", "AT_TIMESTAMP", 17, 0, oldest, timed, at},
		{"a pinned latest", "AT_TIMESTAMP", 0, 0, oldest, latest, at},
		{"none", "AT_TIMESTAMP", 0, 0, oldest, oldest, time.Time{}},
		{"latest, of the application", "LATEST", 0, 0, latest, oldest, at},
		{"latest, of the worker", "LATEST", 0, 0, oldest, timed, at},
		{"latest, from now on", "LATEST", 0, 0, oldest, oldest, now},
	} {
		row := javaRow()
		row[attrCheckpoint], row[attrSub] = str(c.word), num(c.sub)
		if c.from != 0 {
			row[attrFrom] = num(c.from)
		}
		l, err := new(Table).WithTimes(TimesOf(c.origin, c.own, now)).read(row)
		if c.want.IsZero() {
			if !errors.Is(err, ErrUnreadableRow) || !strings.Contains(err.Error(), "--from") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || !l.From.Equal(c.want) {
			t.Errorf("%s: from %s, %v", c.name, l.From, err)
		}
	}
	row := javaRow()
	row[attrCheckpoint], row[attrSub] = str("AT_TIMESTAMP"), num(0)
	if l, err := new(Table).read(row); err != nil || !l.From.IsZero() {
		t.Errorf("without Times: %+v, %v", l, err)
	}
}
