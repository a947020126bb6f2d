package awswire

import (
	"bytes"
	"cmp"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// echo answers every call with what was understood of it.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	x, err := Begin(w, r)
	if err != nil {
		return
	}
	defer x.Close()
	c := &x.Call
	if c.Operation == "Fail" {
		x.Fail(&Error{Code: "SomeException", Message: "a <b> & \"c\"", Extra: map[string]any{
			"z": 1, "Item": map[string]string{"k": "v"},
		}})
		return
	}
	x.Answer([]byte(`{"is":"` + strings.Join([]string{
		c.Service, c.Operation, c.World.Account,
		c.World.Region, string(c.Body),
	}, " ") + `"}`))
})

type wireCase struct {
	name, method, contentType, target, authorization, encoding, body string

	status      int
	answer      string
	answerType  string
	noRequestID bool
}

const (
	json10 = "application/x-amz-json-1.0"
	json11 = "application/x-amz-json-1.1"
)

var wireCases = []wireCase{
	{
		name: "a Kinesis call", contentType: json11, target: "Kinesis_20131202.Op", body: "{}",
		status: 200, answer: `{"is":"kinesis Op 000000000000 us-east-1 {}"}`, answerType: json11,
	},
	{
		name: "charset and case of the type", contentType: "Application/X-Amz-JSON-1.1; charset=UTF-8",
		target: "Kinesis_20131202.Op", body: "{}", status: 200,
		answer: `{"is":"kinesis Op 000000000000 us-east-1 {}"}`, answerType: json11,
	},
	{
		name: "another world", contentType: json10, target: "DynamoDB_20120810.Op", body: "{}",
		authorization: "AWS4-HMAC-SHA256 Credential=111122223333/1/ap-south-1/x/aws4_request",
		status:        200, answer: `{"is":"dynamodb Op 111122223333 ap-south-1 {}"}`,
		answerType: json10,
	},
	{
		name: "an error", contentType: json11, target: "Kinesis_20131202.Fail", body: "{}",
		status: 400, answer: `{"__type":"SomeException","message":"a <b> & \"c\"",` +
			`"Item":{"k":"v"},"z":1}`, answerType: json11,
	},
	{
		name: "not a POST", method: "GET", status: 403,
		answer: "<AccessDeniedException>\n  <Message>Unable to determine service/operation name " +
			"to be authorized</Message>\n</AccessDeniedException>\n", answerType: "text/xml",
	},
	{
		name: "no type", target: "Kinesis_20131202.Op", body: "{}", status: 404,
		answer: "<UnknownOperationException/>\n", answerType: "text/xml",
	},
	{
		name: "plain JSON at Kinesis", contentType: "application/json", body: "{}",
		target: "Kinesis_20131202.Op", status: 404, answerType: "application/json",
		answer: `{"__type":"com.amazon.coral.service#UnknownOperationException"}`,
	},
	{
		name: "plain JSON at DynamoDB", contentType: "application/json", body: "{}",
		target: "DynamoDB_20120810.Op", status: 200, answerType: "application/json",
		answer: `{"is":"dynamodb Op 000000000000 us-east-1 {}"}`,
	},
	{
		name: "CBOR", contentType: "application/x-amz-cbor-1.1", body: "\xa0", status: 400,
		target: "Kinesis_20131202.Op", answerType: json11,
		answer: `{"__type":"SerializationException","Message":"CBOR is not supported by this ` +
			`version of runnel: switch it off in the client (Java: AWS_CBOR_ENABLED=false in ` +
			`the environment, or -Daws.cborEnabled=false)"}`,
	},
	{
		name: "no target", contentType: json11, body: "{}", status: 400, answerType: json11,
		answer: `{"__type":"UnknownOperationException"}`,
	},
	{
		name: "another service", contentType: json11, body: "{}", target: "Foo_1.Bar", status: 400,
		answer: `{"__type":"UnknownOperationException"}`, answerType: json11,
	},
	{
		name: "no body", contentType: json11, target: "Kinesis_20131202.Op", status: 400,
		answer: `{"__type":"SerializationException"}`, answerType: json11,
	},
	{
		name: "no body at DynamoDB", contentType: json10, target: "DynamoDB_20120810.Op", status: 400,
		answer:     `{"__type":"com.amazon.coral.service#SerializationException"}`,
		answerType: json10,
	},
	{
		name: "gzip", contentType: json11, target: "Kinesis_20131202.Op", encoding: "gzip", body: "x",
		status: 400, answerType: json11, answer: `{"__type":"SerializationException","Message":` +
			`"Content-Encoding \"gzip\" is not supported by this version of runnel: send the ` +
			`body as it is"}`,
	},
	{
		name: "half a signature", contentType: json10, target: "DynamoDB_20120810.Op", body: "{}",
		authorization: "AWS4-HMAC-SHA256 Signature=00", status: 400, answerType: json10,
		answer: `{"__type":"com.amazon.coral.service#IncompleteSignatureException","message":` +
			`"Authorization header requires 'Credential' parameter."}`,
	},
	{
		name: "too long", contentType: json11, target: "Kinesis_20131202.Op", status: 413,
		body: strings.Repeat("x", MaxBody+1), noRequestID: true,
	},
}

var uuid = regexp.MustCompile(
	`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func (c *wireCase) send(t *testing.T, url string, chunked bool) (*http.Response, string) {
	t.Helper()
	var body io.Reader = strings.NewReader(c.body)
	if chunked {
		body = struct{ io.Reader }{body}
	}
	r, err := http.NewRequestWithContext(t.Context(), cmp.Or(c.method, http.MethodPost), url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": c.contentType, "X-Amz-Target": c.target,
		"Authorization": c.authorization, "Content-Encoding": c.encoding,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	if chunked {
		r.ContentLength = -1
	}
	echo.ServeHTTP(w, r)
	answer, _ := io.ReadAll(w.Result().Body)
	return w.Result(), string(answer)
}

func TestWire(t *testing.T) {
	for _, c := range wireCases {
		for _, chunked := range []bool{false, true} {
			got, answer := c.send(t, "http://test/", chunked)
			if got.StatusCode != c.status || answer != c.answer {
				t.Errorf("%s: %d %s; want %d %s", c.name, got.StatusCode, answer, c.status, c.answer)
			}
			if is := got.Header.Get("Content-Type"); is != c.answerType {
				t.Errorf("%s: type %q, want %q", c.name, is, c.answerType)
			}
			if id := got.Header.Get("X-Amzn-Requestid"); uuid.MatchString(id) == c.noRequestID {
				t.Errorf("%s: request id %q", c.name, id)
			}
			sum := ""
			if strings.HasPrefix(c.target, "DynamoDB") {
				sum = strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(answer))), 10)
			}
			if is := got.Header.Get("X-Amz-Crc32"); is != sum {
				t.Errorf("%s: checksum %q, want %q", c.name, is, sum)
			}
		}
	}
}

func TestBrokenOffBody(t *testing.T) {
	for _, length := range []int64{5, -1} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", iotest.TimeoutReader(
			iotest.OneByteReader(strings.NewReader("abcde"))))
		r.ContentLength = length
		w := httptest.NewRecorder()
		_, err := Begin(w, r)
		if !errors.Is(err, iotest.ErrTimeout) || errors.Is(err, ErrAnswered) {
			t.Errorf("length %d: %v, want the read's error", length, err)
		}
		if w.Body.Len() != 0 {
			t.Errorf("length %d: answered %q", length, w.Body)
		}
	}
}

func TestRequestIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		seen[requestID()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("1000 request ids are %d", len(seen))
	}
}

func TestEnvelopeOfBadExtra(t *testing.T) {
	w := httptest.NewRecorder()
	x := &Exchange{w: w, contentType: json11}
	x.Fail(&Error{Code: "X", Extra: map[string]any{"f": func() {}}})
	if w.Code != http.StatusInternalServerError || w.Body.String() != `{"__type":"InternalFailure"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// FuzzReadBody compares with io.ReadAll, over readers that give the bytes piecemeal, and
// buffers that come back dirty.
func FuzzReadBody(f *testing.F) {
	f.Add([]byte("hello"), 5, uint8(0))
	f.Add(bytes.Repeat([]byte("x"), 70_000), -1, uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, length int, how uint8) {
		length = max(-1, min(length, len(data)+3))
		var r io.Reader = bytes.NewReader(data)
		switch how % 4 {
		case 1:
			r = iotest.OneByteReader(r)
		case 2:
			r = iotest.HalfReader(r)
		case 3:
			r = iotest.DataErrReader(r)
		}
		body, err := readBody(r, int64(length))
		switch {
		case length > len(data):
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d of %d bytes: %v", len(data), length, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			want := data
			if length >= 0 {
				want = data[:length]
			}
			if !bytes.Equal(*body, want) {
				t.Fatalf("read %d bytes, want %d", len(*body), len(want))
			}
			bodies.Put(body)
		}
	})
}

func BenchmarkExchange(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 700_000)
	header := http.Header{
		"Content-Type": {json11}, "X-Amz-Target": {"Kinesis_20131202.Op"},
		"Authorization": {"AWS4-HMAC-SHA256 Credential=A/1/eu-west-1/kinesis/aws4_request"},
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r := &http.Request{
			Method: http.MethodPost, Header: header, ContentLength: int64(len(body)),
			Body: io.NopCloser(bytes.NewReader(body)),
		}
		x, err := Begin(discard{}, r)
		if err != nil {
			b.Fatal(err)
		}
		x.Answer(nil)
		x.Close()
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
