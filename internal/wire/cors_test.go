package wire

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCORS(t *testing.T) {
	const exposed = "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2," +
		"x-amzn-ErrorMessage,Date"
	auth, err := NewCredentials(Key{AccessKeyID: "a", SecretAccessKey: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, method string
		asks         map[string]string
		auth         *Credentials
		status       int
		want         map[string]string
	}{
		{
			"a preflight", "OPTIONS",
			map[string]string{"Headers": "a, b, c", "Method": "POST"},
			nil, 200,
			map[string]string{
				"Origin": "*", "Headers": "a, b, c", "Methods": "POST", "Max-Age": "172800",
			},
		},
		{
			"a preflight that asks for nothing", "OPTIONS", nil, nil, 200,
			map[string]string{"Origin": "*", "Max-Age": "172800"},
		},
		{ // which a browser does not sign
			"a preflight where signatures are checked", "OPTIONS",
			map[string]string{"Method": "POST"},
			auth, 200,
			map[string]string{"Origin": "*", "Methods": "POST", "Max-Age": "172800"},
		},
		{"a call", "POST", nil, nil, 200, map[string]string{"Origin": "*", "Expose": exposed}},
		{"a refused call", "POST", nil, auth, 400, map[string]string{"Origin": "*", "Expose": exposed}},
		{"a GET", "GET", nil, nil, 403, map[string]string{"Origin": "*", "Expose": exposed}},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/", strings.NewReader("{}"))
		r.Header.Set("Origin", "http://localhost:3000")
		r.Header.Set("Content-Type", json11)
		r.Header.Set("X-Amz-Target", "Kinesis_20131202.Op")
		for name, value := range c.asks {
			r.Header.Set("Access-Control-Request-"+name, value)
		}
		w := httptest.NewRecorder()
		x, err := Begin(w, r, Checks{Keys: c.auth})
		if err == nil {
			x.Answer(nil)
			x.Close()
		} else if !errors.Is(err, ErrAnswered) {
			t.Errorf("%s: %v", c.name, err)
		}
		if w.Code != c.status {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.status)
		}
		for name, header := range map[string]string{
			"Origin": "Allow-Origin", "Headers": "Allow-Headers", "Methods": "Allow-Methods",
			"Max-Age": "Max-Age", "Expose": "Expose-Headers",
		} {
			if got := w.Header().Get("Access-Control-" + header); got != c.want[name] {
				t.Errorf("%s: %s is %q, want %q", c.name, header, got, c.want[name])
			}
		}
		preflight := c.method == "OPTIONS"
		if preflight != (w.Header().Get("X-Amz-Id-2") == "") ||
			!uuid.MatchString(w.Header().Get("X-Amzn-Requestid")) {
			t.Errorf("%s: ids %v", c.name, w.Header())
		}
	}
}

func TestNoOriginNoCORS(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "/", nil)
	w := httptest.NewRecorder()
	if _, err := Begin(w, r, Checks{}); w.Code != http.StatusForbidden {
		t.Errorf("%d, %v", w.Code, err)
	}
	for name := range w.Header() {
		if strings.HasPrefix(name, "Access-Control") {
			t.Errorf("%s: %s", name, w.Header().Get(name))
		}
	}
}
