package kinesis

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/cboritem"
	"github.com/runnel-stream/runnel/internal/wire"
)

// A value is a document's value: nil, bool, float64, string, blob, eventTime, []any, or pairs that
// keep their order and may repeat a name.
type (
	blob      []byte
	eventTime int64 // ms
	pair      struct {
		name  string
		value any
	}
	pairs []pair
)

// appendValueJSON writes a value as a client does.
func appendValueJSON(dst []byte, value any) []byte {
	switch value := value.(type) {
	case blob:
		return appendValueJSON(dst, base64.StdEncoding.EncodeToString(value))
	case eventTime:
		return appendSeconds(dst, int64(value))
	case []any:
		dst = append(dst, '[')
		for i, element := range value {
			if i > 0 {
				dst = append(dst, " , "...)
			}
			dst = appendValueJSON(dst, element)
		}
		return append(dst, ']')
	case pairs:
		dst = append(dst, "{\n"...)
		for i, p := range value {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValueJSON(dst, p.name)
			dst = appendValueJSON(append(dst, ':', ' '), p.value)
		}
		return append(dst, '}')
	default:
		encoded, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return append(dst, encoded...)
	}
}

// appendValueCBOR writes a value as a client does. open decides for each map, list or string
// whether it is of indefinite length.
func appendValueCBOR(dst []byte, value any, open func() bool) []byte {
	switch value := value.(type) {
	case nil:
		return append(dst, cboritem.Simple<<5|cboritem.Null)
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return appendCBORInt(dst, int64(value))
		}
	case eventTime:
		return appendCBORTime(dst, int64(value))
	case string:
		return appendPieces(dst, cboritem.Text, value, open)
	case blob:
		return appendPieces(dst, cboritem.Bytes, string(value), open)
	case []any:
		dst, end := appendOpen(dst, cboritem.Array, len(value), open)
		for _, element := range value {
			dst = appendValueCBOR(dst, element, open)
		}
		return append(dst, end...)
	case pairs:
		dst, end := appendOpen(dst, cboritem.Map, len(value), open)
		for _, p := range value {
			dst = appendPieces(dst, cboritem.Text, p.name, open)
			dst = appendValueCBOR(dst, p.value, open)
		}
		return append(dst, end...)
	}
	encoded, err := cbor.Marshal(value)
	if err != nil {
		panic(err)
	}
	return append(dst, encoded...)
}

func appendOpen(dst []byte, major byte, length int, open func() bool) (head, end []byte) {
	if open() {
		return append(dst, major<<5|cboritem.Indefinite), []byte{cboritem.Break}
	}
	return appendCBORHead(dst, major, length), nil
}

// appendPieces cuts an indefinite text between characters: every piece is a text by itself.
func appendPieces(dst []byte, major byte, s string, open func() bool) []byte {
	if !open() {
		return cboritem.AppendString(dst, major, s)
	}
	dst = append(dst, major<<5|cboritem.Indefinite)
	for _, r := range strings.SplitAfter(s, "a") {
		dst = cboritem.AppendString(dst, major, r)
	}
	return append(dst, cboritem.Break)
}

// anyValue draws a value of a shape, a value that breaks its constraints, or one of another type.
func anyValue(t *rapid.T, p *plan) any {
	switch rapid.IntRange(0, 24).Draw(t, "what") {
	case 0:
		return nil
	case 1:
		if p.kind != timestampShape { // a bare number is seconds in JSON and ms in CBOR
			return rapid.SampledFrom([]any{
				true, false, 7.0, -1.5, "yes", "x", "QUJD", "QQ=", 1e300,
				[]any{},
				[]any{nil},
				pairs{},
				pairs{{"x", []any{pairs{{"y", nil}}}}},
			}).Draw(t, "other")
		}
	}
	switch p.kind {
	case textShape:
		return anyText(t, p)
	case integerShape:
		return rapid.OneOf(rapid.Float64Range(-5, 20_000), rapid.Map(rapid.IntRange(-1, 10_241),
			func(n int) float64 { return float64(n) })).Draw(t, "number")
	case booleanShape:
		return rapid.Bool().Draw(t, "truth")
	case timestampShape:
		return eventTime(rapid.Int64Range(-1e13, 1e13).Draw(t, "ms"))
	case blobShape:
		return blob(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data"))
	case listShape:
		list := []any{}
		for range manyOf(t, p) {
			list = append(list, anyValue(t, p.element))
		}
		return list
	case mapShape:
		object := pairs{}
		for i := range manyOf(t, p) {
			key := rapid.SampledFrom([]string{"", "k", "K", "é", strings.Repeat("k", 129)}).Draw(t, "key")
			object = append(object, pair{fmt.Sprint(key, i%7), anyValue(t, p.element)})
		}
		return object
	default:
		return anyObject(t, p)
	}
}

func manyOf(t *rapid.T, p *plan) int {
	n := rapid.SampledFrom([]int{0, 1, 1, 2, 3, int(*p.max) + 1}).Draw(t, "count")
	return min(n, 60)
}

func anyText(t *rapid.T, p *plan) string {
	texts := []string{
		"", "a", "a b", "0", "01", "12", "é\u2028\"\\\x00<", "orders", "shardId-0",
		"arn:aws:kinesis:us-east-1:000000000000:stream/orders", "arn:aws:kinesis:r:1:stream/x",
		"arn:aws:kinesis:us-east-1:000000000000:stream/orders/consumer/c:1",
		strings.Repeat("é", 128), strings.Repeat("é", 257), strings.Repeat("7", 39),
		strings.Repeat("7", 40),
	}
	if p.values != nil {
		texts = append(p.values, "", strings.ToLower(p.values[0]))
	}
	return rapid.OneOf(rapid.SampledFrom(texts), rapid.String()).Draw(t, "text")
}

func anyObject(t *rapid.T, p *plan) pairs {
	var object pairs
	for _, f := range p.fields {
		if rapid.IntRange(0, 9).Draw(t, "there") > 1 {
			object = append(object, pair{f.name, anyValue(t, f.plan)})
		}
		if rapid.IntRange(0, 30).Draw(t, "other name") == 0 {
			object = append(object, pair{
				rapid.SampledFrom([]string{"Unknown", "StreamId", strings.ToLower(f.name), f.name}).Draw(t, "name"),
				anyValue(t, f.plan),
			})
		}
	}
	return rapid.Permutation(object).Draw(t, "order")
}

// decoded is the result for a request: an input, or an error's text.
func decoded(operation string, format wire.Format, body []byte) (in any, text string) {
	p := planFor(operation)
	in = reflect.New(operations[operation].input).Interface()
	if err := p.decode(format, body, in); err != nil {
		return nil, err.Error()
	}
	if err := p.validate(in.(interface{ validate(*violations) })); err != nil {
		text = err.Error()
	}
	return in, text
}

// The same request in JSON and in CBOR is the same input and the same error.
func TestJSONIsCBOR(t *testing.T) {
	for _, operation := range slices.Sorted(maps.Keys(operations)) {
		t.Run(operation, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				request := anyObject(t, planFor(operation))
				open := rapid.Bool()
				inJSON := appendValueJSON(nil, request)
				inCBOR := appendValueCBOR(nil, request, func() bool { return open.Draw(t, "open") })
				a, textA := decoded(operation, wire.JSON, inJSON)
				b, textB := decoded(operation, wire.CBOR, inCBOR)
				if !reflect.DeepEqual(a, b) || textA != textB {
					t.Fatalf("%s\n%x\nJSON: %+v %s\nCBOR: %+v %s", inJSON, inCBOR, a, textA, b, textB)
				}
			})
		})
	}
}

// fineRequests pass the own checks of the frequent inputs.
func fineRequest(t *rapid.T, operation string) pairs {
	if operation == "GetRecords" {
		return pairs{{"ShardIterator", strings.Repeat("i", rapid.IntRange(1, 512).Draw(t, "n"))}}
	}
	record := pairs{
		{"Data", blob("d")},
		{"PartitionKey", strings.Repeat("k", rapid.IntRange(1, 256).Draw(t, "n"))},
		{"ExplicitHashKey", strings.Repeat("7", rapid.IntRange(1, 39).Draw(t, "n"))},
	}
	name := pair{"StreamName", strings.Repeat("s", rapid.IntRange(1, 128).Draw(t, "n"))}
	if operation == "PutRecord" {
		return append(record, name)
	}
	list := make([]any, rapid.IntRange(1, 500).Draw(t, "n"))
	for i := range list {
		list[i] = record
	}
	return pairs{name, {"Records", list}}
}

// An input's own check agrees with its plan: see quick.
func TestQuick(t *testing.T) {
	for _, operation := range slices.Sorted(maps.Keys(operations)) {
		p, input := planFor(operation), operations[operation].input
		hot := reflect.PointerTo(input).Implements(reflect.TypeFor[quick]())
		if want := slices.Contains([]string{"PutRecords", "PutRecord", "GetRecords"}, operation); hot != want {
			t.Errorf("the input of %s is quick: %v, want %v", operation, hot, want)
		}
		if !hot {
			continue
		}
		rapid.Check(t, func(t *rapid.T) {
			request := fineRequest(t, operation)
			spoilt := rapid.Bool().Draw(t, "spoilt")
			if spoilt {
				request = append(request, anyObject(t, p)...)
			}
			in := reflect.New(input).Interface()
			if p.decode(wire.JSON, appendValueJSON(nil, request), in) != nil {
				t.Skip("no input")
			}
			fine := in.(quick).fine()
			if !fine && !spoilt {
				t.Fatalf("%+v is not fine", in)
			}
			var v violations
			p.checkFields(&v, "", reflect.ValueOf(in).Elem())
			if fine && len(v.texts) > 0 {
				t.Fatalf("%+v is fine, but %v", in, v.texts)
			}
		})
	}
}

// AWS's form of an ARN is fine; the pattern decides about others.
func TestFineARN(t *testing.T) {
	matches := matcher(modelShapes["StreamARN"].pattern)
	for arn, want := range map[string]bool{
		"arn:aws:kinesis:us-east-1:000000000000:stream/orders":                             true,
		"arn:aws-cn:kinesis:cn-north-1:000000000000:stream/orders":                         false,
		"arn:aws:kinesis:us-east-1:00000000000x:stream/orders":                             false,
		"arn:aws:kinesis:us-east-1:00000000000:stream/orders":                              false,
		"arn:aws:kinesis:us-east-1:000000000000:orders":                                    false,
		"arn:aws:kinesis:us-east-1:000000000000:stream/":                                   false,
		"arn:aws:kinesis:us-east-1:000000000000:stream/a b":                                false,
		"arn:aws:kinesis:us-east-1":                                                        false,
		"arn:aws:kinesis:us-east-1:000000000000:stream/" + strings.Repeat("a", 2048):       false,
		"arn:aws:kinesis:us-east-1:000000000000:stream/orders:arn:aws:kinesis:us-east-1:0": false,
	} {
		if got := fineARN(&arn); got != want || (got && !matches(arn)) {
			t.Errorf("%s is fine: %v, want %v", arn, got, want)
		}
	}
}

// The CBOR of clients, byte by byte.
func TestCBORRequests(t *testing.T) {
	number := func(n integer) *integer { return &n }
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		operation, body string // "h'…'" in hexadecimal is between the texts
		want            any
	}{
		"map without an end": {
			"DescribeStream", "\xbf\x6aStreamName\x61a\x65Limit\x0a\xff",
			&describeStreamInput{target: target{StreamName: text("a")}, Limit: number(10)},
		},
		"null and undefined": {
			"DescribeStream", "\xa2\x6aStreamName\xf6\x65Limit\xf7", &describeStreamInput{},
		},
		"numbers cut off": {
			"DescribeStream", "\xa1\x65Limit\xf9\x3e\x00", &describeStreamInput{Limit: number(1)},
		},
		"negative": {"DescribeStream", "\xa1\x65Limit\x38\x63", &describeStreamInput{Limit: number(-100)}},
		"huge": {
			"DescribeStream", "\xa1\x65Limit\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
			&describeStreamInput{Limit: number(math.MaxInt32)},
		},
		"single": {
			"DescribeStream", "\xa1\x65Limit\xfa\x42\xc8\x00\x00", &describeStreamInput{Limit: number(100)},
		},
		"pieces of a blob": {
			"PutRecord", "\xa2\x64Data\x5f\x42ab\x41c\xff\x6cPartitionKey\x7f\x61k\x60\x61l\xff",
			putInput(wire.PutEntry{Data: []byte("abc"), PartitionKey: text("kl")}),
		},
		"empty blob": {
			"PutRecord", "\xa1\x64Data\x40", putInput(wire.PutEntry{Data: []byte{}}),
		},
		"unknown members": {
			"PutRecord", "\xa3\x61x\x9f\xa1\xd8\x20\x01\x5f\x41a\xff\xf8\x40\xff\x68StreamId\x61q\x64Data\x41d",
			putInput(wire.PutEntry{Data: []byte("d")}),
		},
	} {
		in := reflect.New(operations[c.operation].input).Interface()
		if err := planFor(c.operation).decode(wire.CBOR, []byte(c.body), in); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(in, c.want) {
			t.Errorf("%s: %+v, want %+v", name, in, c.want)
		}
	}
}

func putInput(e wire.PutEntry) *putRecordInput {
	return &putRecordInput{PutRecordInput: wire.PutRecordInput{PutEntry: e}}
}

// A timestamp is tag 1 and whole ms in CBOR (captured from an SDK for Java), seconds in JSON.
func TestTimestamps(t *testing.T) {
	at := time.Date(2026, 8, 22, 13, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		format wire.Format
		value  string
		want   int64 // 0: an error
	}{
		{wire.CBOR, "\xc1\x1b\x00\x00\x01\xa0\x13\xac\xc3\x88", 0x01a013acc388},
		{wire.CBOR, "\x1b\x00\x00\x01\xa0\x13\xac\xc3\x88", 0x01a013acc388},
		{wire.CBOR, "\xc1\xfb\x3f\xf8\x00\x00\x00\x00\x00\x00", 1500},
		{wire.CBOR, "\xc1\xf9\x7e\x00", 0}, // NaN
		{wire.CBOR, "\xc1\x1b\xff\xff\xff\xff\xff\xff\xff\xff", 0},
		{wire.CBOR, "\x63now", 0},
		{wire.JSON, "1787403600", at.UnixMilli()},
		{wire.JSON, "1.787403600123E9", at.UnixMilli() + 123},
		{wire.JSON, "1e300", 0},
		{wire.JSON, `"2026"`, 0},
	} {
		name := "StreamCreationTimestamp"
		body := `{"` + name + `":` + c.value + `}`
		if c.format == wire.CBOR {
			body = "\xa1" + string(appendCBORText(nil, name)) + c.value
		}
		var in listShardsInput
		err := planFor("ListShards").decode(c.format, []byte(body), &in)
		switch {
		case c.want == 0:
			if err == nil || err.Code != codeSerialization {
				t.Errorf("%q is %v, %v", body, in.StreamCreationTimestamp, err)
			}
		case err != nil || int64(*in.StreamCreationTimestamp) != c.want:
			t.Errorf("%q is %v, %v; want %d", body, in.StreamCreationTimestamp, err, c.want)
		}
	}
}

func TestCBORSerialization(t *testing.T) {
	n := newNode(t)
	for body, want := range map[string]string{
		"":                              "not a CBOR document",
		"{}":                            "not a CBOR document",
		"\xa1\x6aStreamName":            "not a CBOR document",
		"\xa0\xa0":                      "not a CBOR document",
		"\x80":                          "Start of list found where not expected",
		"\x01":                          "Expected null",
		"\xa1\x6aStreamName\x01":        "TruncatingBigNumber can not be converted to an String",
		"\xa1\x6aStreamName\x41a":       "class java.nio.HeapByteBuffer can not be converted to an String",
		"\xa1\x6aStreamName\x61\xff":    "a text that is not UTF-8",
		"\xa1\x6aStreamName\xf8\x40":    "class java.lang.Object can not be converted to an String",
		"\xa1\x01\x01":                  "a key that is not a text",
		"\xa1\x65Limit\xf9\x7e\x00":     "NaN can not be converted to an Integer",
		strings.Repeat("\x81", 40):      "not a CBOR document",
		"\xa1\x61x\x9a\xff\xff\xff\xff": "not a CBOR document",
	} {
		_, err := n.Serve(n.ctx, &wire.Call{
			Operation: "DescribeStream", Format: wire.CBOR, Body: []byte(body), World: here,
		})
		wantError(t, err, codeSerialization, want)
	}
}

// Names of members are case-sensitive on AWS; of two members of one name the last counts.
func TestNames(t *testing.T) {
	for body, want := range map[string]string{
		`{"streamname":"a","STREAMNAME":"b"}`:                                      "<nil>",
		`{"StreamName":"a","StreamName":"b"}`:                                      "b",
		`{"StreamName":"a","StreamName":null}`:                                     "<nil>",
		`{"Stream\u004eame":"\ud83d\ude00\u00e9"}`:                                 "😀é",
		` { "x" : [ { "]" : "\"}" } , -1.5e3 ] , "StreamName" : "a" , "y":true } `: "a",
	} {
		in := describeSummaryInput{}
		if err := planFor("DescribeStreamSummary").decode(wire.JSON, []byte(body), &in); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got := "<nil>"
		if in.StreamName != nil {
			got = *in.StreamName
		}
		if got != want {
			t.Errorf("%s names %q, want %q", body, got, want)
		}
	}
}

// A body of JSON that is not UTF-8 is refused, as one of CBOR is.
func TestNamesOfNoUTF8(t *testing.T) {
	in := describeSummaryInput{}
	err := planFor("DescribeStreamSummary").decode(wire.JSON, []byte("{\"StreamName\":\"\xff\"}"), &in)
	if err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("%v, and the name is %v", err, in.StreamName)
	}
}

// Answering a body takes a bounded amount of memory, for any body.
func TestDecodeIsBounded(t *testing.T) {
	const size = wire.MaxBody / 4
	open := strings.Repeat
	for name, c := range map[string]struct {
		format wire.Format
		body   string
	}{
		"records":        {wire.JSON, `{"Records":[{}` + open(`,{}`, size/3-10) + `]}`},
		"numbers":        {wire.JSON, `{"Unknown":[1` + open(`,1`, size/2-10) + `]}`},
		"depth":          {wire.JSON, `{"Unknown":` + open(`[`, 9_000) + open(`]`, 9_000) + `}`},
		"much depth":     {wire.JSON, open(`[`, size)},
		"escapes":        {wire.JSON, `{"StreamName":"` + open(`\n`, size/2-20) + `"}`},
		"open records":   {wire.CBOR, "\xa1\x67Records\x9f" + open("\xa0", 131_000) + "\xff"},
		"closed records": {wire.CBOR, "\xa1\x67Records\x9b\x7f\xff\xff\xff\xff\xff\xff\xff"},
		"a blob":         {wire.CBOR, "\xa1\x67Records\x81\xa1\x64Data\x5b\x7f\xff\xff\xff\xff\xff\xff\xff"},
	} {
		body, text := []byte(c.body), ""
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		in, p := new(putRecordsInput), planFor("PutRecords")
		if err := p.decodeInput(&wire.Call{Format: c.format, Body: body}, in); err != nil {
			text = err.Error()
		} else if err := p.validate(in); err != nil {
			text = err.Error()
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 6*size || text == "" {
			t.Errorf("%s: %d MiB, %.100s", name, grown>>20, text)
		}
	}
}

// FuzzDecodeJSON: every operation decodes or refuses any body, and decodes it as encoding/json
// does.
func FuzzDecodeJSON(f *testing.F) {
	names := slices.Sorted(maps.Keys(operations))
	for i := range names {
		f.Add(i, []byte(`{"StreamName":"s","Records":[{"Data":"QQ==","PartitionKey":"\u00e9"}],`+
			`"Tags":{"a":"b","c":null},"TagKeys":["x"],"ShardFilter":{"Type":"AT_TIMESTAMP","Timestamp":1.5},`+
			`"Limit":1e2,"EnforceConsumerDeletion":"yes","Unknown":[{"a":[1,"]"]}]}`))
	}
	f.Fuzz(func(t *testing.T, operation int, body []byte) {
		name := names[uint(operation)%uint(len(names))]
		in, text := decoded(name, wire.JSON, body)
		if in == nil {
			return
		}
		var tree any
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.UseNumber()
		if err := decoder.Decode(&tree); err != nil {
			t.Fatalf("%s %q is decoded, but %v", name, body, err)
		}
		again, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		in2, text2 := decoded(name, wire.JSON, again)
		if !reflect.DeepEqual(in, in2) || text != text2 {
			t.Fatalf("%s %q: %+v %s\n%s: %+v %s", name, body, in, text, again, in2, text2)
		}
	})
}

// FuzzDecodeCBOR: every operation decodes or refuses any body, the same way every time.
func FuzzDecodeCBOR(f *testing.F) {
	names := slices.Sorted(maps.Keys(operations))
	request := pairs{
		{"StreamName", "s"},
		{"Records", []any{pairs{{"Data", blob("d")}, {"PartitionKey", "é"}}}},
		{"Tags", pairs{{"a", "b"}, {"c", nil}}},
		{"TagKeys", []any{"x"}},
		{"Limit", 1.5},
		{"ShardFilter", pairs{{"Type", "AT_TIMESTAMP"}, {"Timestamp", eventTime(1500)}}},
	}
	for i := range names {
		f.Add(i, appendValueCBOR(nil, request, func() bool { return i%2 == 0 }))
	}
	f.Fuzz(func(t *testing.T, operation int, body []byte) {
		name := names[uint(operation)%uint(len(names))]
		in, text := decoded(name, wire.CBOR, body)
		in2, text2 := decoded(name, wire.CBOR, slices.Clone(body))
		if !reflect.DeepEqual(in, in2) || text != text2 {
			t.Fatalf("%s %x: %+v %s, then %+v %s", name, body, in, text, in2, text2)
		}
	})
}
