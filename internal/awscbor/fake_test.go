package awscbor_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/fxamacker/cbor/v2"
)

const (
	typeCBOR = "application/x-amz-cbor-1.1"
	typeJSON = "application/x-amz-json-1.1"

	streamARN = "arn:aws:kinesis:us-east-1:000000000000:stream/s"
)

// answer is a fake server's answer. A negative length leaves the header out.
type answer struct {
	status int
	kind   string // the content type
	body   string
	length int
	header http.Header
}

// fake is a server behind an SDK client's transport: it answers each content type by a function.
type fake struct {
	t              *testing.T
	inCBOR, inJSON func(call int) answer
	calls          []string // "cbor" and "json"
}

// Do implements kinesis.HTTPClient.
func (f *fake) Do(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Target") != "Kinesis_20131202.GetRecords" || r.Header.Get("Authorization") == "" {
		f.t.Errorf("the headers are %v", r.Header)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != r.ContentLength {
		f.t.Errorf("a body of %d bytes, the header says %d: %v", len(body), r.ContentLength, err)
	}
	var in struct {
		ShardIterator, StreamARN string
		Limit                    int
	}
	answers, decode := f.inJSON, json.Unmarshal
	switch kind := r.Header.Get("Content-Type"); kind {
	case typeCBOR:
		f.calls, answers, decode = append(f.calls, "cbor"), f.inCBOR, cbor.Unmarshal
	case typeJSON:
		f.calls = append(f.calls, "json")
	default:
		f.t.Errorf("a request of the type %q", kind)
	}
	if err := decode(body, &in); err != nil || in.ShardIterator != "it" || in.Limit != 7 || in.StreamARN != streamARN {
		f.t.Errorf("the input is %+v, %v", in, err)
	}
	got := answers(len(f.calls))
	if got.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	resp := &http.Response{
		StatusCode: got.status, Header: got.header.Clone(), Request: r,
		Body: io.NopCloser(strings.NewReader(got.body)), ContentLength: int64(max(got.length, len(got.body))),
	}
	if got.length < 0 {
		resp.ContentLength = -1
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	if int(resp.ContentLength) > len(got.body) { // as net/http says that a body broke off
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(got.body), broken{}))
	}
	resp.Header.Set("X-Amzn-Requestid", "id-1")
	if got.kind != "" {
		resp.Header.Set("Content-Type", got.kind)
	}
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// client makes an SDK client of the server, that makes each call once, unless options say other.
func (f *fake) client(options ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region: "us-east-1", HTTPClient: f, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
	}, options...)
}

func input() *kinesis.GetRecordsInput {
	return &kinesis.GetRecordsInput{
		ShardIterator: aws.String("it"), StreamARN: aws.String(streamARN), Limit: aws.Int32(7),
	}
}

func always(a answer) func(int) answer { return func(int) answer { return a } }

// took returns the calls since the last time.
func (f *fake) took() string {
	defer func() { f.calls = nil }()
	return strings.Join(f.calls, " ")
}

func encode(t testing.TB, value any) string {
	t.Helper()
	data, err := cbor.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type object = map[string]any

// onePage is an answer with one record, in both encodings.
func onePage(t testing.TB) (inCBOR, inJSON answer) {
	page := object{
		"MillisBehindLatest": 5, "NextShardIterator": "next",
		"Records": []any{object{"PartitionKey": "k", "SequenceNumber": "1", "Data": []byte("data")}},
	}
	encoded, err := json.Marshal(page)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: 200, kind: typeCBOR, body: encode(t, page)},
		answer{status: 200, kind: typeJSON, body: string(encoded)}
}

func isOnePage(out *kinesis.GetRecordsOutput) bool {
	return len(out.Records) == 1 && out.ChildShards == nil && bytes.Equal(out.Records[0].Data, []byte("data")) &&
		slices.Equal([]string{*out.NextShardIterator, *out.Records[0].PartitionKey}, []string{"next", "k"})
}
