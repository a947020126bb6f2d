package server_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/server"
)

// TestDynamoOverHTTP checks answers that AWS's DynamoDB was seen to give (dynalite,
// test/connection.js and test/updateItem.js), for calls that an SDK does not send so: in both types
// of JSON, with DynamoDB's form of request ids. An update of a new item reads the item's key.
func TestDynamoOverHTTP(t *testing.T) {
	v := serve(t, server.Config{Memory: true})
	ask := func(operation, contentType, body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.endpoint,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
		r.Header.Set("Content-Type", contentType)
		answer, err := v.Options().HTTPClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(text)
	}
	_, _ = ask("CreateTable", "application/x-amz-json-1.0", `{"TableName":"table",
		"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"}]}`)
	seen := map[string]bool{}
	for _, c := range []struct{ operation, contentType, body, want string }{
		{
			"UpdateItem", "application/json", `{"TableName":"table","Key":{"a":{"S":"k"}},
				"UpdateExpression":"SET b = if_not_exists(b, a)","ReturnValues":"UPDATED_NEW"}`,
			`{"Attributes":{"b":{"S":"k"}}}`,
		},
		{
			"GetItem", "application/x-amz-json-1.0", `{"TableName":"table","Key":{"a":{"S":"k"}}}`,
			`{"Item":{"a":{"S":"k"},"b":{"S":"k"}}}`,
		},
		{
			"GetItem", "application/json", "hi",
			`{"__type":"com.amazon.coral.service#SerializationException"`,
		},
		{
			"ListTable", "application/json", "",
			`{"__type":"com.amazon.coral.service#UnknownOperationException"}`,
		},
	} {
		answer, text := ask(c.operation, c.contentType, c.body)
		if !strings.HasPrefix(text, c.want) || answer.Header.Get("Content-Type") != c.contentType {
			t.Errorf("%s: %s %s; want %s", c.operation, answer.Header.Get("Content-Type"), text, c.want)
		}
		id := answer.Header.Get("X-Amzn-Requestid")
		if !regexp.MustCompile(`^[0-9A-Z]{52}$`).MatchString(id) || seen[id] {
			t.Errorf("%s: the request id is %q", c.operation, id)
		}
		seen[id] = true
	}
}
