package awsclient

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

const (
	// eventWindow is the HTTP/2 window of one event stream: the bytes that the server may send
	// before they are read. Go's own is 4 MiB. A shard's 2 MB/s (AWS, "enhanced fan-out") fit
	// through this one up to a round trip of 130 ms.
	eventWindow = 256 << 10
	// A connection on which nothing comes is asked for a sign of life. Otherwise the next call
	// would use the same dead connection.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second
)

// EventClient is an HTTP client for event streams. Its connections are its own.
type EventClient struct {
	aws.HTTPClient
	transport *http.Transport // nil: the client could not be copied, and is the caller's
}

// ForEvents makes a client for event streams out of one for calls: with pings, and with a narrow
// HTTP/2 window, so that the server keeps the records for which a slow reader is not ready. It
// copies the SDK's own client, an *http.Client, and this package's. It returns any other client
// with plain bodies (see HTTPClient) and with its own window.
func ForEvents(client aws.HTTPClient) *EventClient {
	var transport *http.Transport
	var timeout time.Duration
	switch client := client.(type) {
	case *HTTPClient:
		transport = client.transport.Clone()
	case *awshttp.BuildableClient:
		transport, timeout = client.GetTransport(), client.GetTimeout()
	case *http.Client:
		timeout = client.Timeout
		switch under := client.Transport.(type) {
		case nil:
			transport = http.DefaultTransport.(*http.Transport).Clone()
		case *http.Transport:
			transport = under.Clone()
		}
	}
	if transport == nil {
		return &EventClient{HTTPClient: PlainBodies(client)}
	}
	settings := http.HTTP2Config{}
	if transport.HTTP2 != nil {
		settings = *transport.HTTP2
	}
	settings.MaxReceiveBufferPerStream = eventWindow
	settings.SendPingTimeout, settings.PingTimeout = pingAfter, pingTimeout
	transport.HTTP2 = &settings
	return &EventClient{
		transport: transport,
		HTTPClient: plainBodies{&http.Client{
			Transport: transport, Timeout: timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		}},
	}
}

// CloseIdleConnections closes the client's connections that no call is using.
func (c *EventClient) CloseIdleConnections() {
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
}
