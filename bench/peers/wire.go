package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// wire makes calls with bodies that are ready: it measures the server and not the SDK. Safe for
// concurrent use.
type wire struct {
	client   *http.Client
	endpoint string
}

func newWire(endpoint string) *wire {
	return &wire{client: &http.Client{Transport: newTransport()}, endpoint: endpoint}
}

// newTransport keeps a connection for each call that is in flight.
func newTransport() *http.Transport {
	return &http.Transport{MaxIdleConns: mostInFlight, MaxIdleConnsPerHost: mostInFlight}
}

func (w *wire) close() { w.client.CloseIdleConnections() }

// call posts a body to an operation, and copies the answer into it if that is not nil. Anything
// but status 200 is an error.
func (w *wire) call(ctx context.Context, target string, body []byte, into *bytes.Buffer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.endpoint,
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	// Some peers want to see a signature; none of them checks it.
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=bench/"+
		"20260101/us-east-1/kinesis/aws4_request, SignedHeaders=host, Signature=00")
	request.Header.Set("X-Amz-Date", time.Now().UTC().Format("20060102T150405Z"))
	request.Header.Set("X-Amz-Target", target)
	version := "1.1"
	if target[0] == 'D' {
		version = "1.0" // DynamoDB's
	}
	request.Header.Set("Content-Type", "application/x-amz-json-"+version)
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return fmt.Errorf("%s: %s: %s", target, response.Status, text)
	}
	if into == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	_, err = into.ReadFrom(response.Body)
	return err
}
