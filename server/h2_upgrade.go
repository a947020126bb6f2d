package server

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Connections go from HTTP/1.1 to HTTP/2 by the header Upgrade: h2c (RFC 7540, 3.2), which curl
// --http2 and Java's own HTTP client send. net/http knows only prior knowledge and ALPN. So the
// connection is hijacked, told "101 Switching Protocols", and goes through the door once more:
// for net/http it is a new one, of a client with prior knowledge, and so has all the limits of
// the others and their part in the shutdown.
//
// What is missing for that is the first request, which the client has sent in HTTP/1.1 and
// which is stream 1 now. upgradedConn puts the head of a stand-in between the client's first
// SETTINGS and whatever follows, and the handler takes the request itself in its place.

// maxUpgradeBody is the longest body of a request that may upgrade its connection, in bytes.
// It is in memory beside Config.MaxBodies until the request is served. A request with a longer
// one is answered over HTTP/1.1, as RFC 7540, 3.2, leaves a server free to.
const maxUpgradeBody = 64 << 10

// standIn is the header of a stand-in. From a client it means nothing, but on a connection that
// it has upgraded itself, and there at worst its own first request.
const standIn = "Runnel-Upgraded"

// withUpgrades upgrades the connections of requests that ask for it, and hands them to hand,
// and leaves everything else to next.
func withUpgrades(next http.Handler, hand func(net.Conn)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(upgradedKey{}).(*upgradedConn); ok {
			next.ServeHTTP(w, conn.original(r))
			return
		}
		settings, ok := upgradeSettings(r)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		if conn := upgrade(w, r, settings); conn != nil {
			hand(conn)
		}
	})
}

// upgradeSettings returns the client's HTTP/2 settings if the request asks for an upgrade and
// can have it.
func upgradeSettings(r *http.Request) (settings []byte, ok bool) {
	if len(r.Header["Upgrade"]) == 0 || r.TLS != nil || !r.ProtoAtLeast(1, 1) ||
		!hasToken(r.Header["Upgrade"], "h2c") || !hasToken(r.Header["Connection"], "upgrade") ||
		!hasToken(r.Header["Connection"], "http2-settings") ||
		len(r.Header["Http2-Settings"]) != 1 ||
		r.ContentLength < 0 || r.ContentLength > maxUpgradeBody {
		return nil, false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions:
	default:
		return nil, false // CONNECT is another thing in HTTP/2; the others nobody needs
	}
	text := strings.TrimRight(r.Header["Http2-Settings"][0], "=")
	settings, err := base64.RawURLEncoding.DecodeString(text)
	return settings, err == nil && len(settings)%settingLength == 0 &&
		len(settings) <= maxSettings*settingLength
}

// hasToken reports whether a header's comma-separated values hold the token, in any case.
func hasToken(values []string, token string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// upgrade takes the connection over. nil means that the client has gone.
func upgrade(w http.ResponseWriter, r *http.Request, settings []byte) net.Conn {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	hijacked, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	waiting := hijacked.(*earlyConn) // from the door
	_ = waiting.SetWriteDeadline(time.Now().Add(headerTimeout))
	if _, err := io.WriteString(waiting, "HTTP/1.1 101 Switching Protocols\r\n"+
		"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"); err != nil {
		_ = waiting.Close()
		return nil
	}
	_ = waiting.SetWriteDeadline(time.Time{})
	for _, header := range []string{"Upgrade", "Connection", "Http2-Settings"} {
		r.Header.Del(header) // of the connection, not of the request
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	conn := &upgradedConn{
		earlyConn: waiting, settings: settings,
		in: io.MultiReader(bytes.NewReader(bytes.Clone(early)), waiting),
	}
	conn.request.Store(r)
	return conn
}

// upgradedKey is the context key of a connection's *upgradedConn.
type upgradedKey struct{}

// upgradedConn is a connection as HTTP/2 sees it after its upgrade.
type upgradedConn struct {
	*earlyConn
	in       io.Reader // what the client has sent since its first request
	settings []byte    // of its header HTTP2-Settings
	stage    upgradeStage
	next     []byte // to be read before in

	request atomic.Pointer[http.Request] // the first; nil once served
}

type upgradeStage uint8

const (
	atPreface upgradeStage = iota
	atSettings
	atFrames
)

// The parts of HTTP/2 that are needed here: RFC 7540, 3.5, 4.1, 6.2 and 6.5.
const (
	prefaceLength     = 24
	frameHeadLength   = 9
	settingLength     = 6  // a 16-bit name, a 32-bit value
	maxSettings       = 20 // of the header; RFC 7540 knows 6
	headersFrame      = 1
	settingsFrame     = 4
	endStreamAndHead  = 0x1 | 0x4
	maxFirstSettings  = 16 << 10 // bytes; the longest frame before anything is agreed
	firstStream       = 1
	indexedHTTPScheme = 0x86 // HPACK's static table: ":scheme: http"
	indexedRootPath   = 0x84 // ":path: /"
	literalMethod     = 0x02 // ":method", with the value that follows, not to be remembered
	literalHeader     = 0x00 // a name and a value that follow, not to be remembered
)

func (c *upgradedConn) Read(p []byte) (int, error) {
	for len(c.next) == 0 {
		if c.stage == atFrames {
			return c.in.Read(p)
		}
		if err := c.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.next)
	c.next = c.next[n:]
	return n, nil
}

// advance reads the preface, and then the client's first SETTINGS. What is not as it must be is
// passed on as it is, and refused by net/http.
func (c *upgradedConn) advance() error {
	if c.stage == atPreface {
		preface := make([]byte, prefaceLength)
		n, err := io.ReadFull(c.in, preface)
		c.stage, c.next = atSettings, preface[:n]
		return err
	}
	head := make([]byte, frameHeadLength, frameHeadLength+maxFirstSettings)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return err
	}
	c.stage, c.next = atFrames, head
	length := int(binary.BigEndian.Uint32(head) >> 8)
	stream := binary.BigEndian.Uint32(head[5:])
	if head[3] != settingsFrame || head[4] != 0 || stream != 0 || length > maxFirstSettings {
		return nil
	}
	payload := head[frameHeadLength : frameHeadLength+length]
	if _, err := io.ReadFull(c.in, payload); err != nil {
		if errors.Is(err, io.EOF) { // between the head and the payload
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	// One frame, since only the client's own is acknowledged (RFC 7540, 3.2.1).
	c.next = appendFrame(nil, settingsFrame, 0, 0, mergeSettings(c.settings, payload))
	c.next = appendFrame(c.next, headersFrame, endStreamAndHead, firstStream, c.standIn())
	return nil
}

// mergeSettings returns the payload of a SETTINGS frame with what came earlier, in the header,
// and in the frame. No setting may be there twice, and later ones prevail.
func mergeSettings(earlier, frame []byte) []byte {
	merged := make([]byte, 0, len(earlier)+len(frame))
	for len(earlier) >= settingLength {
		setting := earlier[:settingLength]
		earlier = earlier[settingLength:]
		if !hasSetting(earlier, setting[:2]) && !hasSetting(frame, setting[:2]) {
			merged = append(merged, setting...)
		}
	}
	return append(merged, frame...)
}

func hasSetting(settings, name []byte) bool {
	for ; len(settings) >= settingLength; settings = settings[settingLength:] {
		if bytes.HasPrefix(settings, name) {
			return true
		}
	}
	return false
}

// standIn is the head of the stand-in, in HPACK. Of the request itself it needs the method: an
// answer to HEAD has no body.
func (c *upgradedConn) standIn() []byte {
	block := []byte{indexedHTTPScheme, indexedRootPath, literalMethod}
	block = appendShort(block, c.request.Load().Method)
	block = appendShort(append(block, literalHeader), strings.ToLower(standIn))
	return appendShort(block, "1")
}

// appendShort appends a string of less than 127 bytes in HPACK.
func appendShort(block []byte, text string) []byte {
	return append(append(block, byte(len(text))), text...)
}

func appendFrame(dst []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	dst = append(dst, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)))
	dst = binary.BigEndian.AppendUint32(append(dst, kind, flags), stream)
	return append(dst, payload...)
}

// original returns the connection's first request in the place of its stand-in, and any other
// as it is.
func (c *upgradedConn) original(r *http.Request) *http.Request {
	if r.Header.Get(standIn) == "" {
		return r
	}
	first := c.request.Swap(nil)
	if first == nil {
		return r
	}
	first = first.WithContext(r.Context())
	first.Proto, first.ProtoMajor, first.ProtoMinor = r.Proto, r.ProtoMajor, r.ProtoMinor
	return first
}
