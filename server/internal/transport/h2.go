package transport

import (
	"net/http"
	"time"
)

const (
	streamsPerConn = 250       // net/http's own default; clients open more connections
	streamWindow   = 256 << 10 // bytes
)

// http2Settings are what every HTTP/2 connection has.
func http2Settings(writeTimeout time.Duration) *http.HTTP2Config {
	return &http.HTTP2Config{
		// A call whose body waits for memory (Config.MaxBodies) does not read. What of the
		// bodies has come by then stays in its stream's window and takes from the
		// connection's; so that such calls never starve those that have their memory, the
		// connection's window is that of all its streams. This bounds what a connection holds
		// beside MaxBodies; and on a path of 10 ms a stream brings 25 MB/s.
		MaxConcurrentStreams:          streamsPerConn,
		MaxReceiveBufferPerStream:     streamWindow,
		MaxReceiveBufferPerConnection: streamsPerConn * streamWindow,
		// A subscriber that has lost its network without a goodbye is noticed after 45 s, and
		// one that has stopped reading the connection itself, or whose network swallows what
		// is sent, after writeTimeout.
		SendPingTimeout:  30 * time.Second,
		PingTimeout:      15 * time.Second,
		WriteByteTimeout: writeTimeout,
	}
}
