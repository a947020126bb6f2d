package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// neighbour answers as a service does: GetResult with a result, Refuse with an error that has a
// name of its own, Fail with an internal failure, everything else with nothing.
func neighbour(auth *Credentials) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, err := Begin(w, r, Checks{Keys: auth})
		if err != nil {
			return
		}
		defer x.Close()
		switch x.Call.Operation {
		case "GetResult":
			x.Answer([]byte("    <Is>" + x.Call.World.Account + " " + x.Call.World.Region + "</Is>\n"))
		case "Refuse":
			x.Fail(&Error{Code: "ns#WrongException", Query: "Wrong", Message: "a <b> & \"c\" \x01"})
		case "Fail":
			x.Fail(InternalFailure(x.Call.Service))
		default:
			x.Answer(nil)
		}
	})
}

type neighbourCase struct {
	name, method, path, contentType, body string
	headers                               map[string]string

	status     int
	answer     string // with ID for the request's id
	answerType string
}

const watchError = "<ErrorResponse xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\">\n  <Error>\n" +
	"    <Type>Sender</Type>\n    <Code>CODE</Code>\n    <Message>TEXT</Message>\n  </Error>\n" +
	"  <RequestId>ID</RequestId>\n</ErrorResponse>\n"

func xmlError(code, text string) string {
	return strings.NewReplacer("CODE", code, "TEXT", text).Replace(watchError)
}

var (
	rpcHeaders = map[string]string{"Smithy-Protocol": "rpc-v2-cbor"}
	watchPath  = "/service/GraniteServiceVersion20100801/operation/"
	noTarget   = "<AccessDeniedException>\n  <Message>Unable to determine service/operation name " +
		"to be authorized</Message>\n</AccessDeniedException>\n"
)

var neighbourCases = []neighbourCase{
	{
		name: "CloudWatch", contentType: formType + "; charset=utf-8", body: "Version=2010-08-01&Action=Op&",
		status: 200, answerType: xmlType, answer: "<OpResponse xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\">\n" +
			"  <ResponseMetadata>\n    <RequestId>ID</RequestId>\n  </ResponseMetadata>\n</OpResponse>\n",
	},
	{
		name: "STS", contentType: formType, body: "Action=GetResult&Version=2011-06-15",
		headers: map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=111122223333/1/eu-west-1/sts/aws4_request"},
		status:  200, answerType: xmlType, answer: "<GetResultResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n" +
			"  <GetResultResult>\n    <Is>111122223333 eu-west-1</Is>\n  </GetResultResult>\n" +
			"  <ResponseMetadata>\n    <RequestId>ID</RequestId>\n  </ResponseMetadata>\n</GetResultResponse>\n",
	},
	{
		name: "an error", contentType: formType, body: "Action=Refuse&Version=2010-08-01", status: 400,
		answerType: xmlType, answer: xmlError("Wrong", "a &lt;b&gt; &amp; &#34;c&#34; \uFFFD"),
	},
	{
		name: "an internal failure", contentType: formType, body: "Action=Fail&Version=2010-08-01", status: 500,
		answerType: xmlType, answer: strings.Replace(xmlError("InternalServiceError", ""), "Sender", "Receiver", 1),
	},
	{
		name: "no version", contentType: formType, body: "Action=<x>", status: 400, answerType: xmlType,
		answer: xmlError("InvalidAction", "Could not find operation &lt;x&gt; for version NO_VERSION_SPECIFIED"),
	},
	{
		name: "another service", contentType: formType, body: "Action=Send&Version=2012-11-05", status: 400,
		answerType: xmlType, answer: xmlError("InvalidAction", "Could not find operation Send for version 2012-11-05"),
	},
	{name: "no action", contentType: formType, body: "Version=2010-08-01", status: 403, answer: noTarget},
	{name: "an empty form", contentType: formType, status: 403, answer: noTarget},
	{name: "a form by GET", method: "GET", contentType: formType, path: "/?Action=Op&Version=2010-08-01", status: 403, answer: noTarget},
	{
		name: "no form", contentType: formType, body: "Action=%zz", status: 400, answerType: xmlType,
		answer: xmlError("MalformedQueryString", "the form cannot be read: invalid URL escape &#34;%zz&#34;"),
	},
	{
		name: "half a signature", contentType: formType, body: "Action=Op&Version=2010-08-01", status: 400, answerType: xmlType,
		headers: map[string]string{"Authorization": "AWS4-HMAC-SHA256 Signature=00"},
		answer:  xmlError("IncompleteSignature", "Authorization header requires &#39;Credential&#39; parameter."),
	},
	{
		name: "a target in a form", contentType: formType, body: "Action=Op&Version=2010-08-01", status: 404,
		headers: map[string]string{"X-Amz-Target": "Kinesis_20131202.ListStreams"}, answer: "<UnknownOperationException/>\n",
	},
	{
		name: "JSON", contentType: json10, body: "{}", status: 400, answerType: json10,
		headers: map[string]string{"X-Amz-Target": "GraniteServiceVersion20100801.Refuse"},
		answer:  `{"__type":"ns#WrongException","message":"a <b> & \"c\" \u0001"}`,
	},
	{
		name: "JSON 1.1", contentType: json11, body: "{}", status: 404,
		headers: map[string]string{"X-Amz-Target": "GraniteServiceVersion20100801.Op"}, answer: "<UnknownOperationException/>\n",
	},
	{
		name: "a target in CBOR", contentType: cbor11, body: "\xa0", status: 404,
		headers: map[string]string{"X-Amz-Target": "GraniteServiceVersion20100801.Op"}, answer: "<UnknownOperationException/>\n",
	},
	{name: "rpc", path: watchPath + "Op", contentType: plainCBOR, headers: rpcHeaders, body: "\xa0", status: 200},
	{name: "rpc below a path", path: "/a/b" + watchPath + "Op", contentType: plainCBOR, headers: rpcHeaders, body: "\xa0", status: 200},
	{name: "rpc without input", path: watchPath + "Op", headers: rpcHeaders, status: 200},
	{
		name: "an error in rpc", path: watchPath + "Refuse", contentType: plainCBOR, headers: rpcHeaders, body: "\xa0", status: 400,
		answerType: plainCBOR, answer: "\xbf\x66__type\x71ns#WrongException\x67message\x6da <b> & \"c\" \x01\xff",
	},
	{
		name: "rpc of another type", path: watchPath + "Op", contentType: json10, headers: rpcHeaders, body: "{}", status: 400,
		answerType: plainCBOR, answer: "\xbf\x66__type\x76SerializationException\x67Message\x78\x29The body's type must be application/cbor.\xff",
	},
}

func (c *neighbourCase) send(t *testing.T, h http.Handler) (*http.Response, string) {
	t.Helper()
	method, path := c.method, c.path
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = "/"
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(c.body))
	if c.contentType != "" {
		r.Header.Set("Content-Type", c.contentType)
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer, _ := io.ReadAll(w.Result().Body)
	return w.Result(), string(answer)
}

var anID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func TestNeighbours(t *testing.T) {
	for _, c := range neighbourCases {
		got, answer := c.send(t, neighbour(nil))
		id := got.Header.Get("X-Amzn-Requestid")
		if in := anID.FindString(answer); in != "" && in != id {
			t.Errorf("%s: the id is %s in the body and %s in the header", c.name, in, id)
		}
		answer = anID.ReplaceAllString(answer, "ID")
		if got.StatusCode != c.status || answer != c.answer {
			t.Errorf("%s: %d %q; want %d %q", c.name, got.StatusCode, answer, c.status, c.answer)
		}
		if is := got.Header.Get("Content-Type"); is != c.answerType {
			t.Errorf("%s: type %q, want %q", c.name, is, c.answerType)
		}
		rpc := c.headers["Smithy-Protocol"]
		if is := got.Header.Get("Smithy-Protocol"); is != rpc {
			t.Errorf("%s: protocol %q, want %q", c.name, is, rpc)
		}
		if c.answerType == xmlType && xml.Unmarshal([]byte(answer), new(struct{})) != nil {
			t.Errorf("%s: no XML: %s", c.name, answer)
		}
		named := got.Header.Get("X-Amzn-Query-Error")
		if want := strings.Contains(c.answer, "WrongException"); want != (named == "Wrong;Sender") {
			t.Errorf("%s: the error's name is %q", c.name, named)
		}
	}
}

func TestUnknownRPC(t *testing.T) {
	for name, c := range map[string]neighbourCase{
		"another protocol": {path: watchPath + "Op", headers: map[string]string{"Smithy-Protocol": "rpc-v2-json"}},
		"another service":  {path: "/service/Kinesis_20131202/operation/Op", headers: rpcHeaders},
		"no operation":     {path: watchPath, headers: rpcHeaders},
		"no path":          {path: "/", headers: rpcHeaders},
	} {
		c.contentType, c.body = plainCBOR, "\xa0"
		got, answer := c.send(t, neighbour(nil))
		if got.StatusCode != http.StatusNotFound || !strings.Contains(answer, "UnknownOperationException") ||
			got.Header.Get("Content-Type") != plainCBOR {
			t.Errorf("%s: %d %q", name, got.StatusCode, answer)
		}
	}
}

// TestPackedForm: packed, also in words that LocalStack's test_put_metric_data_gzip uses.
func TestPackedForm(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, "Action=Op&Version=2010-08-01")
	_ = z.Close()
	c := neighbourCase{
		contentType: formType, body: packed.String(), headers: map[string]string{"Content-Encoding": "GZIP"},
	}
	if got, answer := c.send(t, neighbour(nil)); got.StatusCode != http.StatusOK || !strings.Contains(answer, "<OpResponse") {
		t.Errorf("%d %s", got.StatusCode, answer)
	}
	c.body = packed.String()[:packed.Len()-3]
	if got, answer := c.send(t, neighbour(nil)); got.StatusCode != http.StatusBadRequest || !strings.Contains(answer, "<Code>MalformedInput<") {
		t.Errorf("cut off: %d %s", got.StatusCode, answer)
	}
}

// TestSignedNeighbours: the scope names the service, the body must too, and refusals are the
// query protocol's.
func TestSignedNeighbours(t *testing.T) {
	h := neighbour(keysAt(t, noon))
	watch, sts := "Action=Op&Version=2010-08-01", "Action=Op&Version=2011-06-15"
	for _, c := range []struct {
		name, service, body string
		spoil               func(r *http.Request)
		status              int
		has                 string
	}{
		{"CloudWatch", CloudWatch, watch, nil, 200, "<OpResponse"},
		{"STS", STS, sts, nil, 200, "<OpResponse"},
		{"STS with CloudWatch's scope", CloudWatch, sts, nil, 400, "<Code>InvalidAction<"},
		{"CloudWatch with STS's scope", STS, watch, nil, 400, "<Code>InvalidAction<"},
		{"another scope", Kinesis, watch, nil, 403, "<Code>SignatureDoesNotMatch<"},
		{"no signature", CloudWatch, watch, func(r *http.Request) { r.Header.Del("Authorization") }, 403, "<Code>MissingAuthenticationToken<"},
		{"another body", CloudWatch, watch, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(watch + "x"))
			r.ContentLength++
		}, 403, "<Code>SignatureDoesNotMatch<"},
		{"another origin", CloudWatch, watch, func(r *http.Request) { r.Header.Set("Origin", "https://example.com") }, 200, "<OpResponse"},
	} {
		r := formRequest(t, c.service, c.body)
		if c.spoil != nil {
			c.spoil(r)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s: %d %s; want %d %s", c.name, w.Code, w.Body, c.status, c.has)
		}
	}
}

// formRequest is a form that is signed for a service.
func formRequest(t *testing.T, service, body string) *http.Request {
	r := clientRequest(service, "/", "", []byte(body))
	r.Header.Del("X-Amz-Target")
	r.Header.Set("Content-Type", formType)
	return r.signed(t, temporaryKey).Request
}
