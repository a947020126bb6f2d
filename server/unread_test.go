package server

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// frames is a client's connection that sends and reads frames of HTTP/2 (RFC 9113, 4.1).
type frames struct {
	net.Conn
	t *testing.T
}

const (
	dataFrame, headersFrame, resetFrame, settingsFrame = 0, 1, 3, 4
	endStream, endHeaders                              = 1, 4
)

func (s *streaming) frames(t *testing.T) frames {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	if config := s.client.Transport.(*http.Transport).TLSClientConfig; config != nil {
		config = config.Clone()
		config.ServerName, config.NextProtos = "127.0.0.1", []string{"h2"}
		conn = tls.Client(conn, config)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	f := frames{conn, t}
	f.write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	f.send(settingsFrame, 0, 0, nil)
	return f
}

func (f frames) write(p []byte) {
	f.t.Helper()
	if _, err := f.Write(p); err != nil {
		f.t.Fatal(err)
	}
}

func (f frames) send(kind, flags byte, stream uint32, payload []byte) {
	f.t.Helper()
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	frame = binary.BigEndian.AppendUint32(append(frame, flags), stream)
	f.write(append(frame, payload...))
}

// headers encodes a request's head, without an index or a Huffman code (RFC 7541, 6.2.2).
func headers(fields ...string) []byte {
	var p []byte
	for n, text := range fields {
		if n%2 == 0 {
			p = append(p, 0)
		}
		p = append(append(p, byte(len(text))), text...)
	}
	return p
}

// answer reads the frames of stream 1 up to the answer's end, and those of the next 200 ms.
func (f frames) answer() (body []byte, ended bool, resets int) {
	f.t.Helper()
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(f, head); err != nil {
			return body, ended, resets
		}
		payload := make([]byte, binary.BigEndian.Uint32(head)>>8)
		if _, err := io.ReadFull(f, payload); err != nil {
			f.t.Fatal(err)
		}
		if binary.BigEndian.Uint32(head[5:]) != 1 {
			continue
		}
		switch head[3] {
		case resetFrame:
			resets++
			continue
		case dataFrame:
			body = append(body, payload...)
		case headersFrame:
		default:
			continue
		}
		if head[4]&endStream != 0 {
			ended = true
			_ = f.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		}
	}
}

// A call that is refused before its body has come gets its answer over HTTP/2, and no reset of its
// stream, while the client sends on.
func TestEarlyRefusalsOverHTTP2(t *testing.T) {
	for _, protocol := range []string{"h2c", "https h2"} {
		for name, c := range map[string]struct{ field, value, want string }{
			"another page's": {"origin", "http://other.example", "other.example"},
			"no operation": {
				"x-amz-target", "Kinesis_20131202", "UnknownOperationException",
			},
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				t.Parallel()
				f := serveStreams(t, Config{}, protocol).frames(t)
				fields := []string{
					":method", "POST", ":scheme", "http", ":path", "/", ":authority", "127.0.0.1",
					"content-type", "application/x-amz-json-1.1", c.field, c.value,
				}
				if strings.HasPrefix(protocol, "https") {
					fields[3] = "https"
				}
				f.send(headersFrame, endHeaders, 1, headers(fields...))
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for range 20 {
						f.send(dataFrame, 0, 1, bytes.Repeat([]byte(" "), 4<<10))
						<-time.After(5 * time.Millisecond)
					}
					f.send(dataFrame, endStream, 1, nil)
				}()
				body, ended, resets := f.answer()
				if !ended || resets != 0 || !bytes.Contains(body, []byte(c.want)) {
					t.Errorf("the answer %q, its end %v, %d resets", body, ended, resets)
				}
				<-sent
			})
		}
	}
}
