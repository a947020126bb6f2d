package transport

import (
	"net/http"
	"time"
)

const (
	// streamsPerConn is the least that RFC 9113 recommends; clients open more connections. While
	// handlers of reset streams run, net/http queues four times as many requests.
	streamsPerConn = 100
	streamWindow   = 256 << 10 // bytes
)

// http2Settings are the settings of every HTTP/2 connection.
func http2Settings(writeTimeout time.Duration) *http.HTTP2Config {
	return &http.HTTP2Config{
		// A call that waits for memory for its body (package budget) does not read. The part of the
		// body that has come by then stays in its stream's window and takes from the connection's.
		// So that such calls never starve those that have their memory, the connection's window is
		// as large as all its streams' together. The budget bounds the number of such calls. On a
		// path of 10 ms a stream brings 25 MB/s.
		MaxConcurrentStreams:          streamsPerConn,
		MaxReceiveBufferPerStream:     streamWindow,
		MaxReceiveBufferPerConnection: streamsPerConn * streamWindow,
		// A subscriber that has lost its network without a goodbye is noticed after 45 s. One that
		// has stopped reading the connection itself, or has a network that swallows the sent bytes,
		// is noticed after writeTimeout.
		SendPingTimeout:  30 * time.Second,
		PingTimeout:      15 * time.Second,
		WriteByteTimeout: writeTimeout,
	}
}
