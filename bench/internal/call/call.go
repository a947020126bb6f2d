// Package call sends a benchmark's calls to a server of Kinesis and DynamoDB: JSON over plain HTTP,
// unsigned, as cheap as a client can be.
package call

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Send sends a call to the server at address (HOST:PORT) and returns its answer. The answer of a
// refused call is an error. Safe for concurrent use, as the client is.
func Send(
	ctx context.Context, client *http.Client, address, operation string, body []byte,
) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/",
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	service, contentType := "Kinesis_20131202", "application/x-amz-json-1.1"
	if strings.HasSuffix(operation, "Item") || strings.HasSuffix(operation, "Table") {
		service, contentType = "DynamoDB_20120810", "application/x-amz-json-1.0"
	}
	r.Header.Set("X-Amz-Target", service+"."+operation)
	r.Header.Set("Content-Type", contentType)
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", operation, answer.Status, text[:min(len(text), 1000)])
	}
	return text, err
}
