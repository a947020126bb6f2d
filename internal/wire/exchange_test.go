package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/runnel-stream/runnel/internal/budget"
)

// echo answers every call with its parsed parts.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	x, err := Begin(w, r, Checks{
		Serves: func(_, operation string) bool { return operation != "NoSuchOp" },
	})
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
	format := map[Format]string{JSON: "JSON", CBOR: "CBOR"}[c.Format]
	x.Answer([]byte(`{"is":"` + strings.Join([]string{
		format, c.Service, c.Operation, c.World.Account, c.World.Region, string(c.Body),
	}, " ") + `"}`))
})

type wireCase struct {
	name, method, contentType, target, authorization, encoding, body string

	status      int
	answer      string
	answerType  string
	noRequestID bool
}

var wireCases = []wireCase{
	{
		name: "a Kinesis call", contentType: json11, target: "Kinesis_20131202.Op", body: "{}",
		status: 200, answer: `{"is":"JSON kinesis Op 000000000000 us-east-1 {}"}`, answerType: json11,
	},
	{
		name: "charset and case of the type", contentType: "Application/X-Amz-JSON-1.1; charset=UTF-8",
		target: "Kinesis_20131202.Op", body: "{}", status: 200,
		answer: `{"is":"JSON kinesis Op 000000000000 us-east-1 {}"}`, answerType: json11,
	},
	{
		name: "another world", contentType: json10, target: "DynamoDB_20120810.Op", body: "{}",
		authorization: "AWS4-HMAC-SHA256 Credential=111122223333/1/ap-south-1/x/aws4_request",
		status:        200, answer: `{"is":"JSON dynamodb Op 111122223333 ap-south-1 {}"}`,
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
			"to be authorized</Message>\n</AccessDeniedException>\n",
	},
	{
		name: "no type", target: "Kinesis_20131202.Op", body: "{}", status: 404,
		answer: "<UnknownOperationException/>\n",
	},
	{
		name: "plain JSON at Kinesis", contentType: "application/json", body: "{}",
		target: "Kinesis_20131202.Op", status: 404, answerType: "application/json",
		answer: `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},` +
			`"Version":"1.0"}`,
	},
	{
		name: "plain JSON without a target", contentType: "application/json", body: " []",
		status: 404, answerType: "application/json",
		answer: `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},` +
			`"Version":"1.0"}`,
	},
	{
		name: "no JSON as plain JSON", contentType: " application/json ;x", body: "{hello",
		target: "Kinesis_20131202.Op", status: 400, answerType: "application/json",
		answer: `{"Output":{"__type":"com.amazon.coral.service#SerializationException"},` +
			`"Version":"1.0"}`,
	},
	{
		name: "no object as plain JSON", contentType: "application/json", body: " true ",
		target: "Kinesis_20131202.Op", status: 400, answerType: "application/json",
		answer: `{"Output":{"__type":"com.amazon.coral.service#SerializationException"},` +
			`"Version":"1.0"}`,
	},
	{
		name: "white space as plain JSON", contentType: "application/json", body: " ",
		target: "Kinesis_20131202.Op", status: 400, answerType: "application/json",
		answer: `{"Output":{"__type":"com.amazon.coral.service#SerializationException"},` +
			`"Version":"1.0"}`,
	},
	{
		name: "plain JSON that is longer than a body without memory", contentType: plainJSON,
		body:   strings.Repeat("x", budget.Free+1),
		target: "Kinesis_20131202.Op", status: 404, answerType: "application/json",
		answer: `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},` +
			`"Version":"1.0"}`,
	},
	{
		name: "plain JSON at DynamoDB", contentType: "application/json", body: "{}",
		target: "DynamoDB_20120810.Op", status: 200, answerType: "application/json",
		answer: `{"is":"JSON dynamodb Op 000000000000 us-east-1 {}"}`,
	},
	{
		name: "neither type nor target", body: "{}", status: 403,
		answer: "<AccessDeniedException>\n  <Message>Unable to determine service/operation name " +
			"to be authorized</Message>\n</AccessDeniedException>\n",
	},
	{
		name: "a type of DynamoDB's at Kinesis", contentType: json10, body: "{}", status: 404,
		target: "Kinesis_20131202.Op", answer: "<UnknownOperationException/>\n",
	},
	{
		name: "a type of Kinesis' at DynamoDB", contentType: json11, body: "{}", status: 404,
		target: "DynamoDB_20120810.Op", answer: "<UnknownOperationException/>\n",
	},
	{
		name: "CBOR", contentType: cbor11, target: "Kinesis_20131202.Op", body: "\xa0", status: 200,
		answer: "{\"is\":\"CBOR kinesis Op 000000000000 us-east-1 \xa0\"}", answerType: cbor11,
	},
	{
		name: "CBOR 1.0", contentType: cbor10, target: "Kinesis_20131202.Op", body: "\xa0", status: 200,
		answer: "{\"is\":\"CBOR kinesis Op 000000000000 us-east-1 \xa0\"}", answerType: cbor11,
	},
	{
		name: "an error in CBOR", contentType: cbor11, target: "Kinesis_20131202.Fail", body: "\xa0",
		status: 400, answerType: cbor11, answer: "\xbf\x66__type\x6dSomeException\x67message" +
			"\x6ba <b> & \"c\"\x64Item\xa1\x61k\x61v\x61z\x01\xff",
	},
	{
		name: "an unknown target in CBOR", contentType: cbor11, target: "X.Y", body: "\xa0",
		status: 400, answerType: cbor11, answer: "\xbf\x66__type\x78\x19UnknownOperationException\xff",
	},
	{
		name: "no body in CBOR", contentType: cbor11, target: "Kinesis_20131202.Op", status: 400,
		answerType: cbor11, answer: "\xbf\x66__type\x76SerializationException\xff",
	},
	{
		name: "no body and no type", target: "Kinesis_20131202.Op", status: 400,
		answerType: cbor11, answer: "\xbf\x66__type\x76SerializationException\xff",
	},
	{
		name: "no body, no type and no target", status: 400,
		answerType: cbor11, answer: "\xbf\x66__type\x78\x19UnknownOperationException\xff",
	},
	{
		name: "no body, and an unknown type", contentType: json11 + "x", status: 400,
		answerType: cbor11, answer: "\xbf\x66__type\x78\x19UnknownOperationException\xff",
	},
	{
		name: "no body, DynamoDB's type and no target", contentType: json10, status: 400,
		answerType: cbor11, answer: "\xbf\x66__type\x78\x19UnknownOperationException\xff",
	},
	{
		name: "no body, plain JSON and no target", contentType: plainJSON, status: 400,
		answerType: cbor11, answer: "\xbf\x66__type\x78\x19UnknownOperationException\xff",
	},
	{
		name: "no body, in plain JSON", contentType: plainJSON, target: "Kinesis_20131202.Op",
		status: 400, answerType: cbor11, answer: "\xbf\x66__type\x76SerializationException\xff",
	},
	{
		name: "no body, and an unknown operation", target: "Kinesis_20131202.NoSuchOp", status: 400,
		answerType: cbor11, answer: "\xbf\x66__type\x78\x19UnknownOperationException\xff",
	},
	{
		name: "no body, and an unknown operation in JSON", contentType: json11, status: 400,
		target: "Kinesis_20131202.NoSuchOp", answerType: json11,
		answer: `{"__type":"UnknownOperationException"}`,
	},
	{
		name: "no body at DynamoDB, in Kinesis' type", contentType: json11, status: 400,
		target: "DynamoDB_20120810.Op", answerType: plainJSON,
		answer: `{"__type":"com.amazon.coral.service#SerializationException"}`,
	},
	{
		name: "CBOR at DynamoDB", contentType: cbor11, target: "DynamoDB_20120810.Op", body: "\xa0",
		status: 404, answer: "<UnknownOperationException/>\n",
	},
	{
		name: "no target, in DynamoDB's type", contentType: json10, body: "{}", status: 400,
		answer: `{"__type":"com.amazon.coral.service#UnknownOperationException"}`, answerType: json10,
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
		name: "another encoding", contentType: json11, target: "Kinesis_20131202.Op", encoding: "br",
		body: "x", status: 400, answerType: json11, answer: `{"__type":"SerializationException",` +
			`"Message":"Content-Encoding \"br\" is not supported: send gzip, or the body as it is"}`,
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

// dynamoID is the form of DynamoDB's request ids (dynalite, test/connection.js).
var dynamoID = regexp.MustCompile(`^[0-9A-Z]{52}$`)

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
			form := uuid
			if strings.HasPrefix(c.target, "DynamoDB") {
				form = dynamoID
			}
			if id := got.Header.Get("X-Amzn-Requestid"); form.MatchString(id) == c.noRequestID {
				t.Errorf("%s: request id %q", c.name, id)
			}
			sum := ""
			if strings.HasPrefix(c.target, "DynamoDB") {
				sum = strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(answer))), 10)
			}
			id2, err := base64.StdEncoding.DecodeString(got.Header.Get("X-Amz-Id-2"))
			if want := 72; err != nil || len(id2) != want && sum == "" && !c.noRequestID {
				t.Errorf("%s: the second id has %d bytes, %v; want %d", c.name, len(id2), err, want)
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
		_, err := Begin(w, r, Checks{})
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
	for i := range 1000 {
		seen[requestID(i%2 == 0)] = true
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

func BenchmarkExchange(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 700_000)
	header := http.Header{
		"Content-Type": {json11}, "X-Amz-Target": {"Kinesis_20131202.Op"},
		"Authorization": {"AWS4-HMAC-SHA256 Credential=A/1/eu-west-1/kinesis/aws4_request"},
	}
	target := &url.URL{Path: "/"}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := &http.Request{
			Method: http.MethodPost, Header: header, ContentLength: int64(len(body)),
			Body: io.NopCloser(bytes.NewReader(body)), URL: target,
		}
		x, err := Begin(discard{}, r, Checks{})
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

// A call's room is its own until the call is closed.
func TestRoom(t *testing.T) {
	var a, b Exchange
	first := append(a.Call.Room(100), "first"...)
	second := append(b.Call.Room(100), "second"...)
	if string(first) != "first" || string(second) != "second" || cap(first) < 100 {
		t.Errorf("rooms hold %q and %q", first, second)
	}
	if again := a.Call.Room(1 << 20); len(again) != 0 || cap(again) < 1<<20 {
		t.Errorf("room for more is %d of %d", len(again), cap(again))
	}
	a.Close()
	if string(second) != "second" {
		t.Errorf("closing a call changes another's to %q", second)
	}
	b.Close()
	b.Close() // gives nothing back twice
	rooms := make([][]byte, 4)
	for i := range rooms {
		rooms[i] = append(new(Call).Room(8), byte(i))
	}
	for i, room := range rooms {
		if room[0] != byte(i) {
			t.Errorf("calls %d and %d share a room", i, room[0])
		}
	}
}
