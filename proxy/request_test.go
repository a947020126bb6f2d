package proxy

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/runnel-stream/runnel/internal/wire"
)

// FuzzDecode: no body breaks the reader or takes more records than may be kept, and of what is
// read and right nothing is lost: written again it is read as the same.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"StreamName":"orders","Records":[{"PartitionKey":"a","Data":"MQ==","ExplicitHashKey":"0"}]}`,
		`{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/orders","PartitionKey":"a","Data":""}`,
		`{"Records":[{}],"Records":null,"StreamId":{"x":[1]}}`, `{"Records":[{"Data":1`, `[]`, ``,
		"\xbf\x67Records\x9f\xa2\x64Data\x5f\x41a\x41b\xff\x6cPartitionKey\x61a\xff\xff",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, one bool) {
		for _, format := range []wire.Format{wire.JSON, wire.CBOR} {
			call := &wire.Call{Operation: putRecords, Format: format, Body: body}
			if one {
				call.Operation = putRecord
			}
			read, failure := decode(call)
			if failure != nil {
				if failure.Code != "SerializationException" {
					t.Fatalf("%q: %v", body, failure)
				}
				continue
			}
			if len(read.Records) > maxKept+1 {
				t.Fatalf("%d records are kept", len(read.Records))
			}
			if read.check(call.Operation, maxRecordBytes) != nil {
				continue
			}
			again := *call
			again.Body = write(t, &again, read)
			if got, failure := decode(&again); failure != nil || !reflect.DeepEqual(got, read) {
				t.Fatalf("%q is read as %+v, and written again as %+v, %v", body, read, got, failure)
			}
		}
	})
}

// write is a request as a client writes it.
func write(t *testing.T, call *wire.Call, r *request) []byte {
	t.Helper()
	var document any = r
	if call.Operation == putRecord {
		document = single{r.target, r.Records[0]}
	}
	marshal := json.Marshal
	if call.Format == wire.CBOR {
		marshal = cbor.Marshal
	}
	body, err := marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
