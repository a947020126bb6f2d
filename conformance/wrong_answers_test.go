package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/runneltest"
)

// TestWrongAnswers puts a proxy before the server that changes one part of its answers. The fact
// about this part must differ with the change, and be ok without it.
func TestWrongAnswers(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStreamDelay(50*time.Millisecond))
	replace := func(old, with string) func(a *http.Response, body []byte) []byte {
		return func(_ *http.Response, body []byte) []byte {
			return bytes.ReplaceAll(body, []byte(old), []byte(with))
		}
	}
	iterator := regexp.MustCompile(`"NextShardIterator":"[^"]*"`)
	for _, c := range []struct {
		fact   string
		change func(a *http.Response, body []byte) []byte
	}{
		{"wire/request-id", func(a *http.Response, body []byte) []byte {
			a.Header.Del("X-Amzn-Requestid")
			return body
		}},
		{"wire/content-type", func(a *http.Response, body []byte) []byte {
			a.Header.Set("Content-Type", "application/json")
			return body
		}},
		{"wire/error-type", replace(`"message"`, `"Message"`)},
		{"describe-stream/absent", replace(" not found.", " is not found.")},
		{"constraints/shard-count-0", replace("than or equal to 1", "than or equal to 2")},
		{"types/integer", replace("can not be converted", "cannot be converted")},
		{"create-stream/ranges", replace(thirds[1][1], thirds[1][0])},
		{"put-record/routing", replace(shardID(0), shardID(2))},
		{"put-records/order", replace(shardID(1), shardID(2))},
		{"put-records/members", replace(`"FailedRecordCount":0,`, "")},
		{"get-records/caught-up", replace(`"MillisBehindLatest":0`, `"MillisBehindLatest":1`)},
		{"get-records/record-members", replace(`"PartitionKey"`, `"EncryptionType":"NONE","PartitionKey"`)},
		{"get-records/data", replace(base64Of([]byte("test")), base64Of([]byte("tEst")))},
		{"get-records/fresh-iterator", func(_ *http.Response, body []byte) []byte {
			return iterator.ReplaceAll(body, []byte(`"NextShardIterator":"the same"`))
		}},
		{"get-records/shard-end", replace(`"ChildShards"`, `"NextShardIterator":"x","ChildShards"`)},
		{"list-shards/pages", replace(`"NextToken"`, `"nextToken"`)},
		{"list-tags-for-stream/members", replace(`"HasMoreTags":false`, `"HasMoreTags":true`)},
		{"cbor/time", replace("\xc1\x1b", "\x1b")},
		{"register-stream-consumer/arn", replace("/consumer/", "/reader/")},
		{"sdk/errors", replace("ResourceNotFoundException", "ResourceMissingException")},
	} {
		t.Run(c.fact, func(t *testing.T) {
			t.Parallel()
			f := chosenOne(t, c.fact)
			for _, changed := range []bool{false, true} {
				r := f.run(t.Context(), behindProxy(t, server, changed, c.change))
				if noticed := r.outcome == outcomeDiffers; noticed != changed {
					t.Errorf("changed: %v, but %s: %s %s", changed, r.outcome, r.got, r.reason)
				}
			}
		})
	}
}

// behindProxy returns a kit that asks a server through a proxy, which may change the answers.
func behindProxy(t *testing.T, server *runneltest.Server, changed bool,
	change func(a *http.Response, body []byte) []byte,
) *kit {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(mustParse(t, server.Endpoint()))
	proxy.ModifyResponse = func(a *http.Response) error {
		body, err := io.ReadAll(a.Body)
		if err != nil {
			return err
		}
		if changed {
			body = change(a, body)
		}
		a.Body = io.NopCloser(bytes.NewReader(body))
		a.ContentLength = int64(len(body))
		a.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	k := newKit(t.Context(), target{
		endpoint: mustParse(t, front.URL), region: "us-east-1", wait: 2 * time.Second,
		credentials: server.AWSConfig().Credentials,
	})
	return k
}
