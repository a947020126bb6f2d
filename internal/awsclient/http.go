package awsclient

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

const (
	dialTimeout = 5 * time.Second
	// The client drops an idle connection before a server does (runnel's: 3 minutes; AWS' load
	// balancers: 60 s and more), so that no call starts on a connection that is being closed.
	idleTimeout = 50 * time.Second
	// The longest wait for the answer's headers. Callers that cannot wait so long set a deadline in
	// their context.
	answerTimeout = 60 * time.Second
	idlePerHost   = 256
)

// HTTPClient is the HTTP client under the SDK's clients. It differs from the SDK's own in one
// point of substance: the body that net/http sees is a plain reader.
//
// The SDK's body wrapper (smithy-go's safeReadCloser) has a WriteTo that returns io.EOF once
// the body is closed, and the SDK closes it as soon as the answer's headers are there. net/http
// looks for surplus bytes after the body; when this look comes after that Close, it goes
// through WriteTo, the io.EOF counts as a failed write, and the connection is closed while the
// answer's body is being read. The caller then sees "StatusCode: 200 … use of closed network
// connection" for a batch that is stored, and the SDK's default retries would send it again.
// Without WriteTo net/http calls Read, whose io.EOF is a normal end.
type HTTPClient struct {
	transport *http.Transport
	client    *http.Client
}

// newHTTPClient sets the time-outs and pools of a transport, which it then owns. nil selects the
// SDK's default transport.
func newHTTPClient(transport *http.Transport, dial Dial) *HTTPClient {
	if transport == nil {
		transport = awshttp.NewBuildableClient().GetTransport()
	}
	transport.IdleConnTimeout = idleTimeout
	transport.ResponseHeaderTimeout = answerTimeout
	transport.MaxIdleConns = 0 // the limit per host is enough
	transport.MaxIdleConnsPerHost = idlePerHost
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	transport.DialContext = dial
	return &HTTPClient{transport: transport, client: &http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a signed request is valid for one host
		},
	}}
}

// Do sends a request.
func (c *HTTPClient) Do(r *http.Request) (*http.Response, error) {
	return plainBodies{c.client}.Do(r)
}

// PlainBodies wraps a client that this package did not make, as one from a user of the producer, so
// that it gets plain bodies; see HTTPClient.
func PlainBodies(client aws.HTTPClient) aws.HTTPClient {
	if _, ours := client.(*HTTPClient); ours {
		return client
	}
	return plainBodies{client}
}

type plainBodies struct{ client aws.HTTPClient }

func (p plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return p.client.Do(r)
	}
	wrapped := *r // a sender must not change its caller's request
	wrapped.Body = plainBody{r.Body}
	return p.client.Do(&wrapped)
}

// CloseIdleConnections closes the connections that no call is using.
func (c *HTTPClient) CloseIdleConnections() { c.transport.CloseIdleConnections() }

// plainBody hides every method of a body but Read and Close.
type plainBody struct{ body io.ReadCloser }

func (b plainBody) Read(p []byte) (int, error) { return b.body.Read(p) }
func (b plainBody) Close() error               { return b.body.Close() }
