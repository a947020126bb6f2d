package awscbor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/runneltest"
)

// putFake is a server of PutRecords behind a transport: it answers each content type by a function.
type putFake struct {
	t              *testing.T
	inCBOR, inJSON func(call int) answer
	calls          []string
}

// Do implements kinesis.HTTPClient.
func (f *putFake) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != r.ContentLength || r.Method != http.MethodPost || r.URL.Path != "/" ||
		r.Header.Get("X-Amz-Target") != "Kinesis_20131202.PutRecords" || r.Header.Get("Authorization") == "" {
		f.t.Errorf("the request is %+v, %v", r, err)
	}
	answers := f.inJSON
	if r.Header.Get("Content-Type") == typeCBOR {
		f.calls, answers = append(f.calls, "cbor"), f.inCBOR
	} else {
		f.calls = append(f.calls, "json")
	}
	got := answers(len(f.calls))
	if got.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: got.status, Header: http.Header{"Content-Type": []string{got.kind}}, Request: r,
		Body: io.NopCloser(strings.NewReader(got.body)), ContentLength: int64(len(got.body)),
	}, nil
}

func (f *putFake) took() string {
	defer func() { f.calls = nil }()
	return strings.Join(f.calls, " ")
}

func (f *putFake) client() *kinesis.Client {
	return (&fake{t: f.t}).client(func(o *kinesis.Options) { o.HTTPClient = f })
}

func putInput() *kinesis.PutRecordsInput {
	return &kinesis.PutRecordsInput{
		StreamARN: aws.String(streamARN),
		Records: []types.PutRecordsRequestEntry{
			{PartitionKey: aws.String("k"), Data: []byte("data"), ExplicitHashKey: aws.String("7")},
		},
	}
}

// putAnswers is an answer in both encodings: a record was stored and one was not.
func putAnswers(t testing.TB) (inCBOR, inJSON answer) {
	result := object{"FailedRecordCount": 1, "EncryptionType": "KMS", "Records": []any{
		object{"ShardId": "shardId-000000000000", "SequenceNumber": strings.Repeat("49", 28)},
		object{"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "Rate exceeded für"},
	}}
	encoded, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: 200, kind: typeCBOR, body: encode(t, result)},
		answer{status: 200, kind: typeJSON, body: string(encoded)}
}

// A result in CBOR is the result that the SDK reads in JSON.
func TestPutResults(t *testing.T) {
	page, inJSON := putAnswers(t)
	f := &putFake{t: t, inCBOR: always(page), inJSON: always(inJSON)}
	want, err := f.client().PutRecords(t.Context(), putInput())
	if err != nil {
		t.Fatal(err)
	}
	got, err := awscbor.NewWriter(f.client()).PutRecords(t.Context(), putInput())
	if calls := f.took(); err != nil || calls != "json cbor" {
		t.Fatalf("%s, %v", calls, err)
	}
	got.ResultMetadata, want.ResultMetadata = middleware.Metadata{}, middleware.Metadata{}
	if !reflect.DeepEqual(got, want) || *got.FailedRecordCount != 1 || len(got.Records) != 2 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Records that are put in CBOR are read as they are: keys, explicit hash keys, and data of any size.
func TestPutRecords(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("s", 1))
	writer, client := awscbor.NewWriter(server.Kinesis()), awscbor.New(server.Kinesis())
	in := begin(t, client)
	rapid.Check(t, func(t *rapid.T) {
		put := &kinesis.PutRecordsInput{StreamName: aws.String("s")}
		for n := range rapid.IntRange(1, 20).Draw(t, "records") {
			record := types.PutRecordsRequestEntry{
				PartitionKey: aws.String(rapid.StringN(1, 50, 200).Draw(t, "key")), Data: anyData.Draw(t, "data"),
			}
			if n%3 == 0 {
				record.ExplicitHashKey = aws.String(fmt.Sprint(rapid.Uint64().Draw(t, "hash")))
			}
			put.Records = append(put.Records, record)
		}
		result, err := writer.PutRecords(t.Context(), put)
		if err != nil || len(result.Records) != len(put.Records) || *result.FailedRecordCount != 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		page, err := client.GetRecords(t.Context(), in)
		if err != nil || len(page.Records) != len(put.Records) {
			t.Fatalf("%d records, %v", len(page.Records), err)
		}
		in.ShardIterator = page.NextShardIterator
		for i, record := range page.Records {
			if *record.PartitionKey != *put.Records[i].PartitionKey || string(record.Data) != string(put.Records[i].Data) ||
				*record.SequenceNumber != *result.Records[i].SequenceNumber {
				t.Errorf("record %d is %+v", i, record)
			}
		}
	})
}

// An input in CBOR has what the SDK sends in JSON, whichever members it has, in memory of its size.
func TestPutInputs(t *testing.T) {
	text := func(t *rapid.T, name string, all *rapid.Generator[string]) *string {
		if rapid.Bool().Draw(t, name+"?") {
			return nil
		}
		return aws.String(all.Draw(t, name))
	}
	rapid.Check(t, func(t *rapid.T) {
		in := &kinesis.PutRecordsInput{
			StreamName: text(t, "name", rapid.StringMatching(`[a-z]{1,128}`)), Records: []types.PutRecordsRequestEntry{},
			StreamId: text(t, "id", rapid.StringMatching(`[a-z]{1,24}`)),
		}
		if rapid.IntRange(0, 5).Draw(t, "dry") == 0 {
			in.DryRun = aws.Bool(true)
		}
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String(anyText.Draw(t, "key")), Data: anyData.Draw(t, "data"),
				ExplicitHashKey: text(t, "hash", anyText),
			})
		}
		bodies := map[string]map[string]any{}
		api := kinesis.New(kinesis.Options{
			Region: "us-east-1", Retryer: aws.NopRetryer{}, BaseEndpoint: aws.String("http://localhost"),
			Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
			HTTPClient: smithyhttp.ClientDoFunc(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				into := map[string]any{}
				kind := r.Header.Get("Content-Type")
				if kind == typeCBOR {
					if err = mapsOfText.Unmarshal(body, &into); err == nil {
						body, err = json.Marshal(into) // with data in base64
					}
				}
				if err == nil {
					into = map[string]any{}
					err = json.Unmarshal(body, &into)
				}
				bodies[kind] = into
				return nil, errors.Join(err, errors.New("no answer"))
			}),
		})
		_, _ = api.PutRecords(context.Background(), in)
		_, _ = awscbor.NewWriter(api).PutRecords(context.Background(), in)
		if got, want := bodies[typeCBOR], bodies[typeJSON]; len(bodies) != 2 || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

var mapsOfText, _ = cbor.DecOptions{DefaultMapType: reflect.TypeFor[map[string]any]()}.DecMode()

// A server that refuses CBOR has stored nothing: it is asked in JSON at once, and from then on.
func TestPutsRefused(t *testing.T) {
	_, inJSON := putAnswers(t)
	for name, first := range map[string]answer{
		"unsupported type":    {status: 415},
		"serialization error": {status: 400, kind: typeJSON, body: `{"__type":"SerializationException"}`},
		"the same, in CBOR":   {status: 400, kind: typeCBOR, body: encode(t, object{"__type": "SerializationException"})},
		"validation error":    {status: 400, kind: typeJSON, body: `{"__type":"ValidationException"}`},
		"unknown":             {status: 404, kind: "text/xml", body: "<UnknownOperationException/>"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &putFake{t: t, inCBOR: always(first), inJSON: always(inJSON)}
			writer := awscbor.NewWriter(f.client())
			for _, want := range []string{"cbor json", "json", "json"} {
				out, err := writer.PutRecords(t.Context(), putInput())
				if got := f.took(); err != nil || len(out.Records) != 2 || got != want {
					t.Fatalf("%s, %v", got, err)
				}
			}
		})
	}
}

// An answer that leaves open whether the records are stored fails the call: nothing is put twice
// unless the caller does it. The caller's next call goes in JSON.
func TestPutsInDoubt(t *testing.T) {
	page, inJSON := putAnswers(t)
	for name, first := range map[string]answer{
		"crash":           {status: 500, kind: "text/html", body: "<html>"},
		"not implemented": {status: 501},
		"unreadable":      {status: 500, kind: typeCBOR, body: "\xff"},
		"no result":       {status: 200, kind: typeCBOR, body: "\x1f\x8b\x08"},
		"half a result":   {status: 200, kind: typeCBOR, body: page.body[:len(page.body)/2]},
		"a page":          {status: 200, kind: "text/html", body: "<html>"},
		"no body":         {status: 200, kind: typeJSON},
	} {
		t.Run(name, func(t *testing.T) {
			f := &putFake{t: t, inCBOR: always(first), inJSON: always(inJSON)}
			writer := awscbor.NewWriter(f.client())
			out, err := writer.PutRecords(t.Context(), putInput())
			if got := f.took(); got != "cbor" || err == nil && out.Records != nil {
				t.Fatalf("%s, %v", got, err)
			}
			for range 2 {
				out, err := writer.PutRecords(t.Context(), putInput())
				if got := f.took(); err != nil || len(out.Records) != 2 || got != "json" {
					t.Fatalf("%s, %v", got, err)
				}
			}
			// If JSON fails too, the server is at fault, and CBOR is tried again.
			writer = awscbor.NewWriter(f.client())
			f.inJSON = always(answer{status: 500})
			_, _ = writer.PutRecords(t.Context(), putInput())
			if _, err := writer.PutRecords(t.Context(), putInput()); err == nil {
				t.Error("a fault is no error")
			}
			f.inCBOR = always(page)
			for range 2 {
				if _, err := writer.PutRecords(t.Context(), putInput()); err != nil {
					t.Error(err)
				}
			}
			// A server that has answered in CBOR is not doubted.
			f.inCBOR = always(first)
			_, _ = writer.PutRecords(t.Context(), putInput())
			_, _ = writer.PutRecords(t.Context(), putInput())
			if got := f.took(); got != "cbor json cbor cbor cbor cbor" {
				t.Error(got)
			}
		})
	}
}

// Ordinary failures are the call's error, and change nothing.
func TestPutFailures(t *testing.T) {
	page, _ := putAnswers(t)
	for name, failure := range map[string]answer{
		"throttle":         {status: 400, kind: typeCBOR, body: encode(t, object{"__type": "ProvisionedThroughputExceededException"})},
		"throttle in JSON": {status: 400, kind: typeJSON, body: `{"__type":"ProvisionedThroughputExceededException"}`},
		"missing":          {status: 400, kind: typeCBOR, body: encode(t, object{"__type": "ResourceNotFoundException"})},
		"internal failure": {status: 500, kind: typeCBOR, body: encode(t, object{"__type": "InternalFailure"})},
		"overload":         {status: 503},
		"lost":             {},
	} {
		f := &putFake{t: t, inCBOR: always(failure)}
		writer := awscbor.NewWriter(f.client())
		if _, err := writer.PutRecords(t.Context(), putInput()); err == nil {
			t.Errorf("%s is no error", name)
		}
		f.inCBOR = always(page)
		if _, err := writer.PutRecords(t.Context(), putInput()); err != nil || f.took() != "cbor cbor" {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := &putFake{t: t, inCBOR: always(answer{
		status: 400, kind: typeCBOR, body: encode(t, object{"__type": "KMSDisabledException", "message": "off"}),
	})}
	_, err := awscbor.NewWriter(f.client()).PutRecords(t.Context(), putInput())
	var disabled *types.KMSDisabledException
	if !errors.As(err, &disabled) || *disabled.Message != "off" {
		t.Error(err)
	}
}
