package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The content types of the protocols.
const (
	typeJSON = "application/x-amz-json-1.1"
	typeCBOR = "application/x-amz-cbor-1.1"
	// typeEvents is the content type of SubscribeToShard's answers.
	typeEvents = "application/vnd.amazon.eventstream"
)

// targetPrefix is the beginning of X-Amz-Target, before the operation.
const targetPrefix = "Kinesis_20131202."

// errAnswer marks the errors about an answer that cannot be read or decoded.
var errAnswer = errors.New("the answer cannot be read")

// signing signs a request in a special way; nil means a regular signature.
type signing func(ctx context.Context, k *kit, r *http.Request, body []byte) error

// request is a handwritten HTTP request. The zero value is an empty POST to /, signed.
type request struct {
	method  string
	path    string
	headers map[string]string
	body    []byte
	signer  signing
	client  *http.Client
}

// jsonRequest returns the request of a call in JSON.
func jsonRequest(op string, in object) request {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err) // a mistake in the fact
	}
	return request{headers: map[string]string{
		"Content-Type": typeJSON, "X-Amz-Target": targetPrefix + op,
	}, body: body}
}

// with returns a copy with a header set; "" removes the header.
func (r request) with(name, value string) request {
	headers := map[string]string{}
	for k, v := range r.headers {
		if !strings.EqualFold(k, name) {
			headers[k] = v
		}
	}
	if value != "" {
		headers[name] = value
	}
	r.headers = headers
	return r
}

// unsigned sends no Authorization.
func unsigned(context.Context, *kit, *http.Request, []byte) error { return nil }

// wrongSecret signs with another secret than the caller's.
func wrongSecret(ctx context.Context, k *kit, r *http.Request, body []byte) error {
	c, err := k.credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	c.SecretAccessKey += "x"
	return k.signAs(ctx, c, r, body, time.Now())
}

func rightly(ctx context.Context, k *kit, r *http.Request, body []byte) error {
	c, err := k.credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	return k.signAs(ctx, c, r, body, time.Now())
}

func (k *kit) signAs(ctx context.Context, c aws.Credentials, r *http.Request, body []byte,
	at time.Time,
) error {
	sum := sha256.Sum256(body)
	// This needs a new signer: a signer caches its key by the access key id, not by the secret.
	err := v4.NewSigner().SignHTTP(ctx, c, r, hex.EncodeToString(sum[:]), "kinesis", k.region, at)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return nil
}

// answer is an HTTP response with its decoded body.
type answer struct {
	status int
	proto  string
	header http.Header
	body   []byte
	value  object // the body decoded, nil if it is none
}

// send makes a request and reads the answer whole.
func (k *kit) send(ctx context.Context, r request) (*answer, error) {
	response, err := k.do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	a := &answer{status: response.StatusCode, proto: response.Proto, header: response.Header}
	if strings.HasPrefix(response.Header.Get("Content-Type"), typeEvents) {
		a.body = []byte("(an event stream)") // which may last for minutes
		return a, nil
	}
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	switch response.Header.Get("Content-Type") {
	case typeCBOR:
		a.value, _ = decodeCBOR(a.body)
	default:
		a.value, _ = parseObject(a.body)
	}
	return a, nil
}

// maxAnswer bounds an answer, in bytes. GetRecords returns up to 10 MiB of data, in base64.
const maxAnswer = 32 << 20

// do makes a request and returns the response with its unread body.
func (k *kit) do(ctx context.Context, r request) (*http.Response, error) {
	method, sign, client := r.method, r.signer, r.client
	if method == "" {
		method = http.MethodPost
	}
	if sign == nil {
		sign = rightly
	}
	if client == nil {
		client = k.http
	}
	url := strings.TrimSuffix(k.endpoint.String(), "/") + "/" + strings.TrimPrefix(r.path, "/")
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	for name, value := range r.headers {
		request.Header.Set(name, value)
	}
	if err := sign(ctx, k, request, r.body); err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, r.headers["X-Amz-Target"], err)
	}
	return response, nil
}

// call makes a call in JSON and repeats it while it is throttled.
func (k *kit) call(ctx context.Context, op string, in object) (*answer, error) {
	return k.patiently(ctx, jsonRequest(op, in))
}

// patiently sends a request and repeats it while it is throttled, up to maxTries times. The pause
// grows by 300 ms with each try.
func (k *kit) patiently(ctx context.Context, r request) (*answer, error) {
	for try := 0; ; try++ {
		a, err := k.send(ctx, r)
		if err != nil || !isThrottled(a) || try == maxTries {
			return a, err
		}
		timer := time.NewTimer(time.Duration(try+1) * 300 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return a, nil
		}
	}
}

const maxTries = 10

// code returns an error's code, "" of a success.
func (a *answer) code() string { return a.value.text("__type") }

// message returns an error's text. SerializationException spells its member Message.
func (a *answer) message() string {
	if text := a.value.text("message"); text != "" {
		return text
	}
	return a.value.text("Message")
}

func (a *answer) String() string {
	if code := a.code(); code != "" {
		return fmt.Sprintf("%d %s: %s", a.status, code, a.message())
	}
	return fmt.Sprintf("%d %s", a.status, show(string(a.body)))
}

// newPrefix returns a random prefix.
func newPrefix() string {
	return "conformance-" + strings.ToLower(rand.Text()[:8]) + "-"
}
