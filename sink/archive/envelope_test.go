package archive

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
)

func TestAppendRecord(t *testing.T) {
	at := time.Date(2026, 1, 2, 5, 4, 5, 678_999_999, time.FixedZone("", 7200))
	for _, c := range []struct {
		record runnel.Record
		want   string
	}{
		{
			runnel.Record{
				PartitionKey: "runnel/runnel", Data: []byte(`{"a": 1}`), ArrivalTime: at,
				ShardID: "shardId-000000000003", Position: runnel.Position{Sequence: "4959", Sub: 2},
			},
			`{"partitionKey":"runnel/runnel","sequenceNumber":"4959","subSequenceNumber":2,` +
				`"arrivalTime":"2026-01-02T03:04:05.678Z","shardId":"shardId-000000000003",` +
				`"data":{"a": 1}}`,
		},
		{
			runnel.Record{
				PartitionKey: "a\"\\\n\u2028é", ExplicitHashKey: "0", Data: []byte("x\n"),
				ShardID: "s", Position: runnel.Position{Sequence: "7"},
			},
			`{"partitionKey":"a\"\\\u000a` + "\u2028é" + `","explicitHashKey":"0",` +
				`"sequenceNumber":"7","subSequenceNumber":0,"shardId":"s","dataBase64":"eAo="}`,
		},
		{
			runnel.Record{PartitionKey: "\xff", ShardID: "s", Position: runnel.Position{Sequence: "7"}},
			`{"partitionKeyBase64":"/w==","sequenceNumber":"7","subSequenceNumber":0,` +
				`"shardId":"s","dataBase64":""}`,
		},
	} {
		if got := string(AppendRecord(nil, &c.record)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		roundTrip(t, c.record)
	}
}

// TestVerbatim shows which data is written verbatim.
func TestVerbatim(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for data, want := range map[string]bool{
		`null`: true, `0`: true, `""`: true, `"x"`: true, `true`: true, `[]`: true, `{}`: true,
		`-0`: true, `1e999999`: true, `123456789012345678901234567890.000000000000000001`: true,
		`{"a":1,"a":2,"A":3}`: true, `{ "a" :	1 , "b":[ ] }`: true, `"<&>"`: true,
		`"\u2028 \ud800"`: true, "\"\u2028\u2029\x7f\"": true, `"\/"`: true,
		deep(9_999):                                   true,
		`"` + strings.Repeat("[", 20_000) + `"`:       true,
		`["` + strings.Repeat("\\\"{", 20_000) + `"]`: true,
		``: false, ` 1`: false, `1 `: false, "1\t": false, "[1,\n2]": false, "1\r": false,
		`{`: false, `{"a":1}{`: false, `nul`: false, `01`: false, `'x'`: false, "\"\xff\"": false,
		"\ufeff1": false, "\"\x01\"": false, deep(10_000): false, "1}": false, "1,\"data\":2": false,
	} {
		if got := verbatim([]byte(data)); got != want {
			t.Errorf("verbatim(%.40q) = %v", data, got)
		}
		roundTrip(t, runnel.Record{
			PartitionKey: "k", Data: []byte(data), ShardID: "s",
			Position: runnel.Position{Sequence: "1"},
		})
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record := runnel.Record{
			PartitionKey: rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()),
				func(b []byte) string { return string(b) })).Draw(t, "key"),
			ExplicitHashKey: rapid.StringMatching(`([1-9][0-9]{0,38})?`).Draw(t, "hash"),
			ShardID:         runnel.ShardID(rapid.String().Draw(t, "shard")),
			Position: runnel.Position{
				Sequence: runnel.SequenceNumber(rapid.StringMatching(`[1-9][0-9]{0,128}`).Draw(t, "seq")),
				Sub:      rapid.Int64Range(0, 9_999_999_999).Draw(t, "sub"),
			},
			ArrivalTime: time.UnixMilli(rapid.Int64Range(-1e12, 1e13).Draw(t, "time")),
			Data: rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(),
				func(s string) []byte { text, _ := json.Marshal(s); return text })).Draw(t, "data"),
		}
		roundTrip(t, record)
	})
}

// roundTrip checks that both readers return the record unchanged, and that any JSON reader gets the
// expected fields.
func roundTrip(t interface {
	Helper()
	Fatalf(string, ...any)
}, record runnel.Record,
) {
	t.Helper()
	line := AppendRecord([]byte("x"), &record)[1:]
	if bytes.ContainsAny(line, "\n\r") || !json.Valid(line) {
		t.Fatalf("not a line of JSON: %.200q", line)
	}
	got, err := ParseRecord(bytes.Clone(line))
	if err != nil {
		t.Fatalf("%v: %.200q", err, line)
	}
	slow, err := parseSlow(line)
	if err != nil {
		t.Fatalf("encoding/json: %v: %.200q", err, line)
	}
	for _, r := range []runnel.Record{got, slow} {
		if r.PartitionKey != record.PartitionKey || r.ExplicitHashKey != record.ExplicitHashKey ||
			r.ShardID != strings2valid(record.ShardID) || r.Position != record.Position ||
			!bytes.Equal(r.Data, record.Data) ||
			!r.ArrivalTime.Equal(record.ArrivalTime.Truncate(time.Millisecond)) {
			t.Fatalf("put %.200q\ngot %.200q", record, r)
		}
	}
}

func strings2valid(id runnel.ShardID) runnel.ShardID {
	return runnel.ShardID(strings.ToValidUTF8(string(id), "\ufffd"))
}

func TestParseRecordRefuses(t *testing.T) {
	for _, line := range []string{
		``, `{}`, `null`, `[]`, `{"partitionKey":"a","data":1}`,
		`{"partitionKey":"a","sequenceNumber":"x","data":1}`,
		`{"partitionKey":"a","sequenceNumber":"01","data":1}`,
		`{"partitionKey":"a","sequenceNumber":"0","data":1}`,
		`{"partitionKey":"a","sequenceNumber":"end","data":1}`,
		`{"partitionKey":"a","sequenceNumber":"1","subSequenceNumber":-1,"data":1}`,
		`{"partitionKey":"a","sequenceNumber":"1"}`,
		`{"sequenceNumber":"1","data":1}`,
		`{"partitionKey":"a","sequenceNumber":"1","data":1,"dataBase64":""}`,
		`{"partitionKey":"a","partitionKeyBase64":"","sequenceNumber":"1","data":1}`,
		`{"partitionKey":"a","sequenceNumber":"1","dataBase64":"*"}`,
		`{"partitionKey":"a","sequenceNumber":"1","arrivalTime":"yesterday","data":1}`,
		`{"partitionKey":"a","sequenceNumber":"1","data":1}{}`,
	} {
		if record, err := ParseRecord([]byte(line)); err == nil {
			t.Errorf("%s: read as %+v", line, record)
		}
	}
}

// FuzzParseRecord checks that no line causes a panic, that the fast reader accepts only lines that
// the slow one accepts and reads them in the same way, and that a parsed record can be written
// again.
func FuzzParseRecord(f *testing.F) {
	record := runnel.Record{
		PartitionKey: "k", Data: []byte(`{"a":[1]}`), ShardID: "s",
		ExplicitHashKey: "12", Position: runnel.Position{Sequence: "1", Sub: 3},
		ArrivalTime: time.UnixMilli(1e12),
	}
	f.Add(AppendRecord(nil, &record))
	record.Data, record.PartitionKey, record.ExplicitHashKey = []byte("\n"), "\"é", ""
	f.Add(AppendRecord(nil, &record))
	record.PartitionKey, record.ArrivalTime = "\xff", time.Time{}
	f.Add(AppendRecord(nil, &record))
	f.Fuzz(func(t *testing.T, line []byte) {
		fast, ok := parseFast(line)
		slow, err := parseSlow(line)
		if ok && err != nil {
			t.Fatalf("only the fast reader takes it: %v", err)
		}
		if ok && (!bytes.Equal(fast.Data, slow.Data) || fast.Position != slow.Position ||
			fast.PartitionKey != slow.PartitionKey || fast.ShardID != slow.ShardID ||
			fast.ExplicitHashKey != slow.ExplicitHashKey ||
			!fast.ArrivalTime.Equal(slow.ArrivalTime)) {
			t.Fatalf("fast %q\nslow %q", fast, slow)
		}
		if err == nil {
			if !hasTime(slow.ArrivalTime) {
				slow.ArrivalTime = time.Time{}
			}
			roundTrip(t, slow)
		}
	})
}

func BenchmarkAppendRecord(b *testing.B) {
	record := benchRecord(0)
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		line = AppendRecord(line[:0], &record)
	}
	b.SetBytes(int64(len(line)))
}

// BenchmarkParseRecord reads a line, beside the reading by encoding/json of lines in other forms.
func BenchmarkParseRecord(b *testing.B) {
	record := benchRecord(0)
	line := AppendRecord(nil, &record)
	for name, parse := range map[string]func([]byte) (runnel.Record, error){
		"fast": ParseRecord, "encoding json": parseSlow,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
