package wire

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestOrderOfChecks makes every mistake at once, and then corrects the refused one each time, until
// the call is taken.
func TestOrderOfChecks(t *testing.T) {
	keys := keysAt(t, noon)
	body := strings.Repeat("x", MaxBody+1)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Content-Encoding", "gzip")
	for _, step := range []struct {
		name   string
		right  func() // the correction before this step
		status int
		has    string // in the answer
	}{
		{"size", func() {}, 413, ""},
		{
			"method, without a signature", func() { body = "" }, 403,
			"<MissingAuthenticationTokenException>\n  <Message>Missing Authentication Token",
		},
		{
			"method", func() { r.Header.Set("Authorization", "X") }, 403,
			"<AccessDeniedException>\n  <Message>Unable to determine service/operation name",
		},
		{"no body, no target", func() { r.Method = http.MethodPost }, 400, "UnknownOperationException\xff"},
		{
			"no body", func() { r.Header.Set("X-Amz-Target", "Kinesis_20131202.Op") }, 400,
			"SerializationException\xff",
		},
		{"type", func() { body = "{}" }, 404, "<UnknownOperationException/>\n"},
		{
			"type, no target", func() { r.Header.Set("X-Amz-Target", "Kinesis_20131202") }, 403,
			"<AccessDeniedException>",
		},
		{
			"type, no target, no signature", func() { r.Header.Del("Authorization") }, 403,
			"<MissingAuthenticationTokenException>",
		},
		{
			"target", func() { r.Header.Set("Content-Type", json11) }, 400,
			`{"__type":"UnknownOperationException"}`,
		},
		{
			"signature", func() { r.Header.Set("X-Amz-Target", "Kinesis_20131202.Op") }, 400,
			`{"__type":"MissingAuthenticationTokenException","message":"Missing Authentication Token"}`,
		},
		{
			"packing", func() {
				signed := clientRequest(Kinesis, "/", "", []byte(body)).signed(t, temporaryKey)
				r.Host = signed.Host
				for name, values := range signed.Header {
					r.Header[name] = values
				}
				r.Header.Set("Content-Encoding", "gzip") // not signed
			}, 400, `{"__type":"SerializationException","Message":"The body is not whole in gzip`,
		},
		{"nothing", func() { r.Header.Del("Content-Encoding") }, 200, "taken"},
	} {
		step.right()
		r.Body = http.NoBody
		if r.ContentLength = int64(len(body)); body != "" {
			r.Body = readCloser{strings.NewReader(body)}
		}
		w := httptest.NewRecorder()
		x, err := Begin(w, r, Checks{Keys: keys})
		if err == nil {
			if want := (World{temporaryKey.AccessKeyID, "eu-west-1"}); x.Call.World != want {
				t.Errorf("%s: %v, want %v", step.name, x.Call.World, want)
			}
			x.Answer([]byte("taken"))
			x.Close()
		} else if !errors.Is(err, ErrAnswered) {
			t.Errorf("%s: %v", step.name, err)
		}
		if w.Code != step.status || !strings.Contains(w.Body.String(), step.has) {
			t.Errorf("%s: %d %s\nwant %d %s", step.name, w.Code, w.Body, step.status, step.has)
		}
		if id := w.Header().Get("X-Amzn-Requestid"); uuid.MatchString(id) == (w.Code == 413) {
			t.Errorf("%s: request id %q", step.name, id)
		}
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// TestSecretsAreNotLogged: AWS quotes the header that it refuses, and so does the answer.
func TestSecretsAreNotLogged(t *testing.T) {
	r := clientRequest(Kinesis, "/", "", []byte("{}")).onTheWire()
	r.Header.Set("Authorization", "Basic SECRET=")
	w := httptest.NewRecorder()
	_, err := Begin(w, r.Request, Checks{Keys: keysAt(t, noon)})
	if !errors.Is(err, ErrAnswered) || strings.Contains(err.Error(), "SECRET") ||
		!strings.Contains(err.Error(), "IncompleteSignatureException") {
		t.Error(err)
	}
	if !strings.Contains(w.Body.String(), "Authorization=Basic SECRET=") {
		t.Errorf("%s", w.Body)
	}
}

// TestSignedPacked: the signature is over the bytes as they were sent.
func TestSignedPacked(t *testing.T) {
	keys := keysAt(t, noon)
	c := clientRequest(Kinesis, "/", "", []byte(zip(t, "{}")))
	c.Header.Set("Content-Encoding", "gzip")
	r := c.signed(t, vectorKey)
	x, err := Begin(httptest.NewRecorder(), r.Request, Checks{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if string(x.Call.Body) != "{}" {
		t.Errorf("the body is %q", x.Call.Body)
	}
}

// TestPresignedWorld: a presigned request's world is its own, checked or not.
func TestPresignedWorld(t *testing.T) {
	for _, keys := range []*Credentials{nil, keysAt(t, noon)} {
		r := clientRequest(DynamoDB, "/", "", []byte("{}"))
		r.Header.Set("Content-Type", json10)
		r = r.presigned(t, temporaryKey)
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.Op")
		w := httptest.NewRecorder()
		x, err := Begin(w, r.Request, Checks{Keys: keys})
		if keys != nil { // the signer has moved the target away, so it is not signed
			if !strings.Contains(w.Body.String(), "com.amazon.coral.service#InvalidSignatureException") {
				t.Errorf("checked: %s, %v", w.Body, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := (World{temporaryKey.AccessKeyID, "eu-west-1"}); x.Call.World != want {
			t.Errorf("%v, want %v", x.Call.World, want)
		}
		x.Close()
	}
}

func TestPresignedNowhere(t *testing.T) {
	r := clientRequest(Kinesis, "/", "X-Amz-Credential=a/b", []byte("{}")).onTheWire()
	w := httptest.NewRecorder()
	if _, err := Begin(w, r.Request, Checks{}); !errors.Is(err, ErrAnswered) ||
		!strings.Contains(w.Body.String(), "IncompleteSignatureException") {
		t.Errorf("%s, %v", w.Body, err)
	}
}
