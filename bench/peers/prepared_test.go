package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestMember(t *testing.T) {
	for _, c := range []struct{ object, want string }{
		{`{"NextShardIterator":"AAA=","Records":[]}`, "AAA="},
		{`{"Records":[], "NextShardIterator" : "AAA="}`, "AAA="},
		{`{"NextShardIterator":null}`, ""},
		{`{"Records":[]}`, ""},
		{`{"NextShardIterator":"AAA`, ""},
		{`{"NextShardIterator"`, ""},
	} {
		if got := member([]byte(c.object), "NextShardIterator"); got != c.want {
			t.Errorf("%s: %q, want %q", c.object, got, c.want)
		}
	}
}

// TestPreparedRefuses checks that refused calls are errors and do not count.
func TestPreparedRefuses(t *testing.T) {
	client := func(status int, answer string) *prepared {
		server := httptest.NewServer(http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, answer)
			}))
		t.Cleanup(server.Close)
		c := newPrepared(server.URL)
		t.Cleanup(c.close)
		return c
	}
	payload, err := newPayload(small)
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"FailedRecordCount":0,"Records":[{"SequenceNumber":"1","ErrorCode":null}]}`
	for _, test := range []struct {
		status int
		answer string
		ok     bool
	}{
		{http.StatusOK, good, true},
		{http.StatusBadRequest, good, false},
		{http.StatusOK, `{"Records":[{"SequenceNumber":"1"},{"ErrorCode":"X"}]}`, false},
		{http.StatusOK, `{}`, false},
	} {
		c := client(test.status, test.answer)
		if err := c.putBatch(t.Context(), payload); (err == nil) != test.ok {
			t.Errorf("%d %s: %v", test.status, test.answer, err)
		}
	}
	c := client(http.StatusOK, `{}`)
	if _, err := c.iterator(t.Context(), 0); err == nil {
		t.Error("GetShardIterator without an iterator is no error")
	}
	if _, _, err := c.read(t.Context(), "x"); err == nil {
		t.Error("GetRecords without Records is no error")
	}
}
