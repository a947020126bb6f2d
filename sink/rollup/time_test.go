package rollup

import (
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
)

const timeReason = "/t is neither RFC 3339 nor a number of a time in the years 1 to 9999"

func TestTime(t *testing.T) {
	for _, c := range []struct{ json, want, reason string }{
		{`"2026-01-02T03:04:05Z"`, "2026-01-02T03:04:05Z", ""},
		{`"2026-01-02T03:04:05.678901234Z"`, "2026-01-02T03:04:05.678901234Z", ""},
		{`"2026-01-02T03:04:05.5+02:00"`, "2026-01-02T01:04:05.5Z", ""},
		{`"2026-01-02T03:04:05\u005a"`, "2026-01-02T03:04:05Z", ""},
		{`"0001-01-01T00:00:00Z"`, "0001-01-01T00:00:00Z", ""},
		{`"9999-12-31T23:59:59.999999999Z"`, "9999-12-31T23:59:59.999999999Z", ""},
		{`"0001-01-01T00:00:00+00:01"`, "", timeReason},
		{`"9999-12-31T23:59:59-00:01"`, "", timeReason},
		{`"0000-12-31T23:59:59Z"`, "", timeReason},
		{`"2026-01-02 03:04:05Z"`, "", timeReason},
		{`"2026-01-02T3:04:05Z"`, "", timeReason},
		{`"2026-01-02T03:04:05,5Z"`, "", timeReason},
		{`"2026-01-02T03:04:05+23:59"`, "2026-01-01T03:05:05Z", ""},
		{`"2026-01-02T03:04:05+24:00"`, "", timeReason},
		{`"2026-01-02T03:04:05+00:60"`, "", timeReason},
		{`"2026-02-29T03:04:05Z"`, "", timeReason},
		{`"2026-01-02T03:04:60Z"`, "", timeReason},
		{`"2026-01-02t03:04:05z"`, "", timeReason},
		{`"2026-01-02"`, "", timeReason},
		{`"1700000000"`, "", timeReason},
		{`""`, "", timeReason},
		{`true`, "", timeReason},
		{`{}`, "", timeReason},
		{`null`, "", "/t is null"},
		{`"\ud800"`, "", "/t has half of a surrogate pair, which is no character"},
		// Numbers: the magnitude decides the unit.
		{`0`, "1970-01-01T00:00:00Z", ""},
		{`-0`, "1970-01-01T00:00:00Z", ""},
		{`0.5`, "1970-01-01T00:00:00.5Z", ""},
		{`-0.5`, "1969-12-31T23:59:59.5Z", ""},
		{`1e-9`, "1970-01-01T00:00:00.000000001Z", ""},
		{`1e-10`, "1970-01-01T00:00:00Z", ""},
		{`1e-999999999999`, "1970-01-01T00:00:00Z", ""},
		{`1700000000`, "2023-11-14T22:13:20Z", ""},
		{`1.7e9`, "2023-11-14T22:13:20Z", ""},
		{`1700000000.123456789`, "2023-11-14T22:13:20.123456789Z", ""},
		{`1700000000123`, "2023-11-14T22:13:20.123Z", ""},
		{`1700000000123.5`, "2023-11-14T22:13:20.1235Z", ""},
		{`1700000000123456`, "2023-11-14T22:13:20.123456Z", ""},
		{`1700000000123456789`, "2023-11-14T22:13:20.123456789Z", ""},
		{`99999999999`, "5138-11-16T09:46:39Z", ""},              // the last second
		{`-62135596800`, "0001-01-01T00:00:00Z", ""},             // the first second
		{`-62135596801`, "", timeReason},                         // before year 1
		{`100000000000`, "1973-03-03T09:46:40Z", ""},             // the first millisecond
		{`99999999999999`, "5138-11-16T09:46:39.999Z", ""},       // the last millisecond
		{`100000000000000`, "1973-03-03T09:46:40Z", ""},          // the first microsecond
		{`99999999999999999`, "5138-11-16T09:46:39.999999Z", ""}, // the last microsecond
		{`100000000000000000`, "1973-03-03T09:46:40Z", ""},       // the first nanosecond
		{`253402300799999999999`, "9999-12-31T23:59:59.999999999Z", ""},
		{`253402300800000000000`, "", timeReason},
		{`1e22`, "", timeReason},
		{`1e999999999999`, "", timeReason},
	} {
		f, err := NewFolder(Definition{Keys: []Field{{Pointer: "/t"}}, Time: "/t", Columns: []Column{{Op: Count}}})
		if err != nil {
			t.Fatal(err)
		}
		got, reason := "", ""
		if err := f.Add(&runnel.Record{Data: []byte(`{"t":` + c.json + `}`)}); err != nil {
			reason = reasonOf(t, f, err)
		} else {
			got = f.Rows()[0].Order.Time.Format(time.RFC3339Nano)
		}
		if got != c.want || reason != c.reason {
			t.Errorf("%s: %s, %q; want %s, %q", c.json, got, reason, c.want, c.reason)
		}
	}
}

func TestBucket(t *testing.T) {
	for _, c := range []struct {
		bucket   time.Duration
		at, want string
	}{
		{time.Minute, "2026-01-02T03:04:59.999Z", "2026-01-02T03:04:00Z"},
		{5 * time.Minute, "2026-01-02T03:05:00Z", "2026-01-02T03:05:00Z"},
		{7200 * time.Second, "2026-01-02T03:05:00Z", "2026-01-02T02:00:00Z"},
		{24 * time.Hour, "2026-01-02T00:30:00+01:00", "2026-01-01T00:00:00Z"},
		{100 * time.Millisecond, "2026-01-02T03:05:00.199Z", "2026-01-02T03:05:00.1Z"},
		{time.Hour, "1969-12-31T23:59:59.5Z", "1969-12-31T23:00:00Z"},
		{24 * time.Hour, "0001-01-01T23:59:59Z", "0001-01-01T00:00:00Z"},
		{0, "2026-01-02T03:04:59.999Z", "0001-01-01T00:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		d := Definition{
			Keys: []Field{{Pointer: "/k"}}, Bucket: c.bucket, Columns: []Column{{Op: Count}},
		}
		byArrival, _ := NewFolder(d)
		d.Time = "/t"
		byTime, err := NewFolder(d)
		if err != nil {
			t.Fatal(err)
		}
		data := []byte(`{"k":1,"t":"` + c.at + `"}`)
		for _, f := range []*Folder{byArrival, byTime} {
			arrival := at
			if f == byTime {
				arrival = arrival.AddDate(1, 0, 0)
			}
			if err := f.Add(&runnel.Record{Data: data, ArrivalTime: arrival}); err != nil {
				t.Fatal(err)
			}
			row := f.Rows()[0]
			if got := row.Bucket.Format(time.RFC3339Nano); got != c.want || row.Bucket.Location() != time.UTC {
				t.Errorf("%s of %s: %s, want %s", c.bucket, c.at, got, c.want)
			}
			if !row.Order.Time.Equal(at) || !row.Order.Arrival.Equal(arrival) {
				t.Errorf("%s: the order is %s", c.at, row.Order)
			}
		}
	}
}

func TestArrival(t *testing.T) {
	f, err := NewFolder(Definition{Bucket: time.Hour, Columns: []Column{{Op: Count}}})
	if err != nil {
		t.Fatal(err)
	}
	for want, at := range map[string]time.Time{
		"it has no arrival time, which decides the bucket": {},
		"its arrival time is not in the years 1 to 9999":   time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		"": time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC),
	} {
		f.Reset()
		reason := ""
		if err := f.Add(&runnel.Record{Data: []byte(`{}`), ArrivalTime: at}); err != nil {
			reason = reasonOf(t, f, err)
		}
		if reason != want {
			t.Errorf("%s: %q, want %q", at, reason, want)
		}
	}
}
