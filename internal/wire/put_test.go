package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// TestDecodePut has the bodies on which two decoders may differ: both formats of a body give the
// same input or the same error.
func TestDecodePut(t *testing.T) {
	text := func(s string) *string { return &s }
	records := func(list ...PutEntry) PutRecordsInput {
		return PutRecordsInput{Records: append([]PutEntry{}, list...)}
	}
	for name, c := range map[string]struct {
		json, cbor string
		want       PutRecordsInput
		refused    string
	}{
		"null":      {json: `null`, cbor: "\xf6"},
		"no member": {json: ` { } `, cbor: "\xa0"},
		"other case": {
			json: `{"streamname":"a","records":[{}]}`, cbor: "\xa1\x6astreamname\x61a",
		},
		"unknown members": {
			json: `{"StreamId":[{"x":1}],"Records":[{"x":[]}]}`,
			cbor: "\xa2\x68StreamId\x81\xa1\x61x\x01\x67Records\x81\xa1\x61x\x80",
			want: records(PutEntry{}),
		},
		"null members": {
			json: `{"StreamName":null,"Records":[null,{"Data":null,"PartitionKey":null}]}`,
			cbor: "\xa2\x6aStreamName\xf6\x67Records\x82\xf6\xa2\x64Data\xf7\x6cPartitionKey\xf6",
			want: records(PutEntry{}, PutEntry{}),
		},
		"a member twice": {
			json: `{"Records":[{},{}],"Records":[{"PartitionKey":"a","PartitionKey":"b"}]}`,
			cbor: "\xa2\x67Records\x82\xa0\xa0\x67Records\x81" +
				"\xa2\x6cPartitionKey\x61a\x6cPartitionKey\x61b",
			want: records(PutEntry{PartitionKey: text("b")}),
		},
		"a member, then null": {
			json: `{"Records":[{}],"Records":null,"StreamName":"a","StreamName":null}`,
			cbor: "\xa4\x67Records\x81\xa0\x67Records\xf6\x6aStreamName\x61a\x6aStreamName\xf6",
		},
		"escapes": {
			json: `{"Records":[{"PartitionKey":"\ud83d\ude00\u00e9","D\u0061ta":"QQ=\u003d"}]}`,
			cbor: "\xa1\x67Records\x81\xa2\x6cPartitionKey\x66😀é\x64Data\x7f\x62QQ\x62==\xff",
			want: records(PutEntry{PartitionKey: text("😀é"), Data: []byte("A")}),
		},
		"empty data": {
			json: `{"Records":[{"Data":""}]}`, cbor: "\xa1\x67Records\x81\xa1\x64Data\x40",
			want: records(PutEntry{Data: []byte{}}),
		},
		"a list": {
			json: `[]`, cbor: "\x80", refused: "Start of list found where not expected",
		},
		"a number": {json: `1`, cbor: "\x01", refused: "Expected null"},
		"records of numbers": {
			json: `{"Records":[{},1]}`, cbor: "\xa1\x67Records\x82\xa0\x01", refused: "Expected null",
		},
		"records of lists": {
			json: `{"Records":[[]]}`, cbor: "\xa1\x67Records\x81\x80",
			refused: "Start of list found where not expected",
		},
		"Records a number": {
			json: `{"Records":1}`, cbor: "\xa1\x67Records\x01", refused: "Expected list or null",
		},
		"Records an object": {
			json: `{"Records":{}}`, cbor: "\xa1\x67Records\xa0",
			refused: "Start of structure or map found where not expected.",
		},
		"a key of a number": {
			json: `{"Records":[{"PartitionKey":1}]}`, cbor: "\xa1\x67Records\x81\xa1\x6cPartitionKey\x01",
			refused: "class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be " +
				"converted to an String",
		},
		"data of a boolean": {
			json: `{"Records":[{"Data":true}]}`, cbor: "\xa1\x67Records\x81\xa1\x64Data\xf5",
			refused: "class java.lang.Boolean can not be converted to a Blob",
		},
		"base64 of a wrong length": {
			json: `{"Records":[{"Data":"QQ="}]}`, cbor: "\xa1\x67Records\x81\xa1\x64Data\x63QQ=",
			refused: "'QQ=' can not be converted to a Blob: Base64 encoded length is expected a " +
				"multiple of 4 bytes but found: 3",
		},
		"base64 with a line break": {
			json:    `{"Records":[{"Data":"QUJD\n\n\r\n"}]}`,
			cbor:    "\xa1\x67Records\x81\xa1\x64Data\x68QUJD\n\n\r\n",
			refused: "'QUJD\n\n\r\n' can not be converted to a Blob: Invalid Base64 character: '\n'",
		},
		"base64 with unused bits": {
			json: `{"Records":[{"Data":"QR=="}]}`, cbor: "\xa1\x67Records\x81\xa1\x64Data\x64QR==",
			refused: "'QR==' can not be converted to a Blob: Invalid last non-pad Base64 character " +
				"dectected",
		},
	} {
		for format, body := range map[Format]string{JSON: c.json, CBOR: c.cbor} {
			got := records(PutEntry{Data: []byte("of an earlier request")})
			err := got.Decode(format, []byte(body))
			switch {
			case c.refused != "":
				if err == nil || err.Code != "SerializationException" || err.Message != c.refused {
					t.Errorf("%s: %q: %v; want %s", name, body, err, c.refused)
				}
			case err != nil || !reflect.DeepEqual(got, c.want):
				t.Errorf("%s: %q: %+v, %v; want %+v", name, body, got, err, c.want)
			}
		}
	}
}

// TestDecodePutNotUTF8: a text that is not UTF-8 is refused, in both formats.
func TestDecodePutNotUTF8(t *testing.T) {
	var in PutRecordInput
	for format, body := range map[Format]string{
		JSON: "{\"PartitionKey\":\"a\xff\"}", CBOR: "\xa1\x6cPartitionKey\x62a\xff",
	} {
		err := in.Decode(format, []byte(body))
		if err == nil || !strings.Contains(err.Message, "not UTF-8") {
			t.Errorf("%v: %v", format, err)
		}
	}
}

// FuzzDecodePut: no body breaks the decoder, or takes more records than may be kept; an input that
// is written again is read as the same.
func FuzzDecodePut(f *testing.F) {
	for _, seed := range []string{
		`{"StreamName":"orders","Records":[{"PartitionKey":"a","Data":"MQ==","ExplicitHashKey":"0"}]}`,
		`{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/orders","PartitionKey":"a","Data":""}`,
		`{"Records":[{}],"Records":null,"StreamId":{"x":[1]}}`, `{"Records":[{"Data":1`, `[]`, ``,
		"\xbf\x67Records\x9f\xa2\x64Data\x5f\x41a\x41b\xff\x6cPartitionKey\x61a\xff\xff",
		`{"Records":[{}` + strings.Repeat(`,{}`, KeptFactor*MaxPutRecords) + `]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, format := range []Format{JSON, CBOR} {
			var many PutRecordsInput
			decodesAgain(t, format, body, &many)
			if len(many.Records) > KeptFactor*MaxPutRecords {
				t.Fatalf("%d records are kept", len(many.Records))
			}
			decodesAgain(t, format, body, &PutRecordInput{})
		}
	})
}

// decodesAgain decodes a body, and checks that the input is the same after a client has encoded it.
func decodesAgain[Input any, P interface {
	*Input
	putInput
}](t *testing.T, format Format, body []byte, in P) {
	t.Helper()
	own := bytes.Clone(body)
	if err := in.Decode(format, own); err != nil {
		if err.Code != "SerializationException" {
			t.Fatalf("%.200q: %v", body, err)
		}
		return
	}
	marshal := json.Marshal
	if format == CBOR {
		marshal = cbor.Marshal
	}
	encoded, err := marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	again := P(new(Input))
	if err := again.Decode(format, encoded); err != nil || !reflect.DeepEqual(again, in) {
		t.Fatalf("%.200q is read as %+v, and encoded again as %+v, %v", body, in, again, err)
	}
	clear(own) // the input may keep nothing of it
	if !reflect.DeepEqual(again, in) {
		t.Fatalf("the input of %.200q changes with the body", body)
	}
}

// TestWrongBase64OfPadding: a body of nothing but padding is refused in linear time.
func TestWrongBase64OfPadding(t *testing.T) {
	var in PutRecordInput
	body := `{"PartitionKey":"a","Data":"` + strings.Repeat("=", 8<<20) + `"}`
	err := in.Decode(JSON, []byte(body))
	if err == nil || !strings.Contains(err.Message, "can not be converted to a Blob") {
		t.Errorf("got %v", err)
	}
}
