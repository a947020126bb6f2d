package kinesis

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/wire"
)

type fataler interface{ Fatalf(string, ...any) }

// sameAsPlan checks that a put's own decoder, which the proxy shares, gives the same input and the
// same error as the plan of the model.
func sameAsPlan(t fataler, operation string, format wire.Format, body []byte) {
	own := reflect.New(operations[operation].input).Interface()
	planned := reflect.New(operations[operation].input).Interface()
	p := planFor(operation)
	ownErr := own.(selfDecoded).Decode(format, body)
	planErr := p.decode(format, body, planned)
	if ownErr != nil || planErr != nil {
		if !reflect.DeepEqual(ownErr, planErr) {
			t.Fatalf("%s %.500q: decoded with %v, by the plan with %v", operation, body, ownErr, planErr)
		}
		return
	}
	if !reflect.DeepEqual(own, planned) {
		t.Fatalf("%s %.500q:\ndecoded %+v\nby the plan %+v", operation, body, own, planned)
	}
}

// TestPutDecode compares the two decoders on random requests, right and wrong.
func TestPutDecode(t *testing.T) {
	for _, operation := range []string{"PutRecord", "PutRecords"} {
		p := planFor(operation)
		rapid.Check(t, func(t *rapid.T) {
			request := anyObject(t, p)
			open := rapid.Bool()
			sameAsPlan(t, operation, wire.JSON, appendValueJSON(nil, request))
			sameAsPlan(t, operation, wire.CBOR, appendValueCBOR(nil, request,
				func() bool { return open.Draw(t, "open") }))
		})
	}
}

// TestPutDecodeFarTooMany: both keep the same number of records.
func TestPutDecodeFarTooMany(t *testing.T) {
	n := wire.KeptFactor*wire.MaxPutRecords + 1
	sameAsPlan(t, "PutRecords", wire.JSON, []byte(`{"Records":[{}`+strings.Repeat(`,{}`, n)+`]}`))
	sameAsPlan(t, "PutRecords", wire.CBOR,
		slices.Concat([]byte("\xa1\x67Records\x9f"), slices.Repeat([]byte{0xa0}, n), []byte{0xff}))
}

// FuzzPutDecode compares the two decoders on any body.
func FuzzPutDecode(f *testing.F) {
	request := pairs{
		{"StreamName", "s"},
		{"SequenceNumberForOrdering", "1"},
		{"Data", blob("d")},
		{"x", 1.5},
		{"Records", []any{pairs{{"Data", blob("d")}, {"PartitionKey", "é"}}, nil}},
	}
	f.Add([]byte(`{"Records":[{"Data":"QQ==","PartitionKey":"\u00e9"}],"StreamId":[{"x":"]"}]}`))
	f.Add(appendValueJSON(nil, request))
	for _, open := range []bool{false, true} {
		f.Add(appendValueCBOR(nil, request, func() bool { return open }))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, operation := range []string{"PutRecord", "PutRecords"} {
			sameAsPlan(t, operation, wire.JSON, body)
			sameAsPlan(t, operation, wire.CBOR, body)
		}
	})
}
