package wire

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestScanPutRecords scans requests as clients send them: the result is that of the document.
func TestScanPutRecords(t *testing.T) {
	text := rapid.StringMatching(`[^"\\\x00-\x1f\x{2028}\x{2029}]{0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			Data            []byte
			ExplicitHashKey *string `json:",omitempty"`
			PartitionKey    string
		}
		records := []entry{}
		for range rapid.IntRange(0, 20).Draw(t, "records") {
			e := entry{
				Data:         rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data"),
				PartitionKey: text.Draw(t, "key"),
			}
			if rapid.Bool().Draw(t, "hashed") {
				hash := text.Draw(t, "hash")
				e.ExplicitHashKey = &hash
			}
			records = append(records, e)
		}
		indent := rapid.SampledFrom([]string{"", "\t", "  "}).Draw(t, "indent")
		body := marshal(t, map[string]any{
			rapid.SampledFrom([]string{"StreamName", "StreamARN"}).Draw(t, "target"): text.Draw(t, "stream"),
			"Records": records,
		}, indent)
		var in PutRecordsInput
		if !in.scan(body) {
			t.Fatalf("not scanned: %s", body)
		}
		sameAsDocument(t, body, &in)
	})
}

// marshal escapes only where necessary.
func marshal(t *rapid.T, value any, indent string) []byte {
	var body jsonBuffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return body
}

type jsonBuffer []byte

func (b *jsonBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// TestScanPutRecord does the same with PutRecord.
func TestScanPutRecord(t *testing.T) {
	text := rapid.StringMatching(`[^"\\\x00-\x1f\x{2028}\x{2029}]{0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		members := map[string]any{"Data": rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")}
		for _, name := range []string{
			"StreamName", "StreamARN", "PartitionKey", "ExplicitHashKey",
			"SequenceNumberForOrdering",
		} {
			if rapid.Bool().Draw(t, name) {
				members[name] = text.Draw(t, "text")
			}
		}
		body := marshal(t, members, rapid.SampledFrom([]string{"", "  "}).Draw(t, "indent"))
		var in PutRecordInput
		if !in.scan(body) {
			t.Fatalf("not scanned: %s", body)
		}
		sameAsDocument(t, body, &in)
	})
}

type fataler interface{ Fatalf(string, ...any) }

// putInput is an input of a put.
type putInput interface {
	structure
	scan(body []byte) bool
	Decode(format Format, body []byte) *Error
}

// sameAsDocument checks that a scanned input equals the one that is read from a document.
func sameAsDocument[Input any, P interface {
	*Input
	putInput
}](t fataler, body []byte, scanned P) {
	read := P(new(Input))
	if err := decodePut(JSON, body, read); err != nil {
		t.Fatalf("scanned, but not read as a document: %v: %q", err, body)
	}
	if !reflect.DeepEqual(read, scanned) {
		t.Fatalf("%q:\nscanned %+v\nread %+v", body, scanned, read)
	}
}

// TestScanRefusesOtherForms: any other form is left to the document's reader, which takes it or has
// the words of the error.
func TestScanRefusesOtherForms(t *testing.T) {
	for _, body := range []string{
		``, `{`, `[]`, `{"Records":[],}`, `{"Records":[]}x`, `{"Records":[{}],"Records":[]}`,
		`{"StreamName":"a\u0062"}`, `{"StreamName":"a","StreamName":"b"}`, `{"StreamName":null}`,
		`{"StreamName":"a","New":1}`, `{"streamname":"a"}`, `{"StreamName":"a` + "\n" + `"}`,
		`{"StreamName":"` + "\xff" + `"}`, `{"Records":[{"Data":"QQ="}]}`, `{"Records":[{"Data":"Q\n"}]}`,
		`{"Records":[{"Data":"QUJD` + "\n" + `"}]}`, `{"Records":[{"Data":"QUI\u003d"}]}`,
		`{"Records":[{"Data":7}]}`, `{"Records":[{"Data":"QQ==","Data":"QQ=="}]}`,
		`{"Records":[{"PartitionKey":"\""}]}`, `{"Records":[null]}`, `{"Records":{}}`,
		`{"Records":[{"Data":"+/+="}]}`, `{"Records":[{}` + strings.Repeat(`,{}`, 501) + `]}`,
	} {
		if new(PutRecordsInput).scan([]byte(body)) {
			t.Errorf("scanned: %q", body)
		}
	}
}

// TestScanPutRecordRefusesOtherForms does the same with PutRecord.
func TestScanPutRecordRefusesOtherForms(t *testing.T) {
	for _, body := range []string{
		``, `{"Data":"QQ=="`, `{"Data":"QQ=="}{}`, `{"Data":"QQ==","Data":"QQ=="}`,
		`{"PartitionKey":"a","PartitionKey":"b"}`, `{"StreamName":"a\u0062"}`,
		`{"SequenceNumberForOrdering":7}`, `{"StreamId":"a"}`, `{"Records":[]}`, `{"Data":null}`,
	} {
		if new(PutRecordInput).scan([]byte(body)) {
			t.Errorf("scanned: %q", body)
		}
	}
}

// FuzzScan: a scanned request is read the same from its document.
func FuzzScan(f *testing.F) {
	data := base64.StdEncoding.EncodeToString([]byte("some data"))
	f.Add([]byte(`{"StreamName":"s","Records":[{"Data":"` + data + `","PartitionKey":"k"}]}`))
	f.Add([]byte(` { "Records" : [ { "ExplicitHashKey":"1" , "Data" : "" } , {} ] , "StreamARN":"a" } `))
	f.Add([]byte(`{"Records":[{"Data":"QQ==","PartitionKey":"é"},{"PartitionKey":"\\"}]}`))
	f.Add([]byte(`{"StreamName":"s","SequenceNumberForOrdering":"1","Data":"` + data + `"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if in := new(PutRecordsInput); in.scan(body) {
			sameAsDocument(t, body, in)
		}
		if in := new(PutRecordInput); in.scan(body) {
			sameAsDocument(t, body, in)
		}
	})
}
