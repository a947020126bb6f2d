package server

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// upgradeHead is the head of a request that asks for an upgrade, but for its end.
func upgradeHead(method, path, settings string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: x\r\n" +
		"Connection: keep-alive, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" +
		"HTTP2-Settings: " + settings + "\r\n"
}

const kinesisHeaders = "Content-Type: application/x-amz-json-1.1\r\n" +
	"X-Amz-Target: Kinesis_20131202."

const clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// setting is one setting of HTTP/2.
func setting(name uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, name), value)
}

const initialWindow = 4 // the setting's name

// frames reads HTTP/2 until a stream has ended, and returns what the stream brought, and how
// many settings were acknowledged.
func frames(t *testing.T, conn net.Conn, stream uint32) (head, body []byte, acks int) {
	t.Helper()
	for {
		kind, flags, on, payload := readFrame(t, conn)
		const goAway, reset = 7, 3
		switch {
		case kind == settingsFrame && flags == 1:
			acks++
		case kind == goAway, kind == reset:
			t.Fatalf("refused: frame %d of stream %d: %q", kind, on, payload)
		case on == stream && kind == headersFrame:
			head = append(head, payload...)
		case on == stream && kind == 0:
			body = append(body, payload...)
		}
		if on == stream && (kind == 0 || kind == headersFrame) && flags&1 != 0 {
			return head, body, acks
		}
	}
}

func readFrame(t *testing.T, conn net.Conn) (kind, flags byte, stream uint32, payload []byte) {
	t.Helper()
	head := make([]byte, frameHeadLength)
	if _, err := io.ReadFull(conn, head); err != nil {
		t.Fatal(err)
	}
	payload = make([]byte, binary.BigEndian.Uint32(head)>>8)
	if _, err := io.ReadFull(conn, payload); err != nil {
		t.Fatal(err)
	}
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload
}

const status200 = 0x88 // in HPACK's static table

func wantUpgraded(t *testing.T, conn net.Conn) {
	t.Helper()
	if got := readHead(t, conn); !strings.HasPrefix(got, "HTTP/1.1 101 ") ||
		!strings.Contains(got, "Upgrade: h2c\r\n") {
		t.Fatalf("%s", got)
	}
}

// TestUpgrade: the first request is answered on stream 1, whatever its method, and further ones
// follow.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "h2c")
	for _, c := range []struct {
		name, request, body string
	}{
		{"GET", upgradeHead("GET", "/health", "") + "\r\n", "ok\n"},
		{"HEAD", upgradeHead("HEAD", "/health", "") + "\r\n", ""},
		{"POST", upgradeHead("POST", "/", "") + kinesisHeaders + "Length\r\n" +
			"Content-Length: 60000\r\n\r\n" + strings.Repeat(" ", 60000), "60000"},
		{"early", upgradeHead("GET", "/health", "AAMAAABk") + "\r\n" + clientPreface +
			string(appendFrame(nil, settingsFrame, 0, 0, nil)), "ok\n"},
	} {
		conn := dial(t, s.address)
		send(t, conn, c.request)
		wantUpgraded(t, conn)
		if c.name != "early" { // which has sent it already
			send(t, conn, clientPreface)
			send(t, conn, string(appendFrame(nil, settingsFrame, 0, 0, setting(initialWindow, 9))))
		}
		head, body, acks := frames(t, conn, 1)
		if len(head) == 0 || head[0] != status200 || string(body) != c.body || acks != 1 {
			t.Errorf("%s: %x, %q, %d acknowledgements", c.name, head, body, acks)
		}
		block := []byte{0x82, indexedHTTPScheme, literalMethod + 2} // GET; ":path" by its name
		block = appendShort(block, "/health")
		block = appendShort(append(block, literalHeader), strings.ToLower(standIn))
		block = appendShort(block, "1") // means nothing any more
		send(t, conn, string(appendFrame(nil, headersFrame, endStreamAndHead, 3, block)))
		if head, body, _ := frames(t, conn, 3); head[0] != status200 || string(body) != "ok\n" {
			t.Errorf("%s: the second request: %x, %q", c.name, head, body)
		}
		conn.Close()
	}
}

// TestUpgradeSettings: those of the header hold, and those of the first frame prevail.
func TestUpgradeSettings(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "h2c")
	one := base64.RawURLEncoding.EncodeToString(
		append(setting(initialWindow, 2), setting(initialWindow, 1)...))
	for _, c := range []struct {
		frame []byte
		first string // the first DATA
	}{{nil, "o"}, {setting(initialWindow, 2), "ok"}, {setting(1, 100), "o"}} {
		conn := dial(t, s.address)
		send(t, conn, upgradeHead("GET", "/health", one)+"\r\n")
		wantUpgraded(t, conn)
		send(t, conn, clientPreface+string(appendFrame(nil, settingsFrame, 0, 0, c.frame)))
		for {
			kind, _, _, payload := readFrame(t, conn)
			if kind == 7 { // GOAWAY
				t.Fatalf("refused: %q", payload)
			}
			if kind != 0 {
				continue
			}
			if string(payload) != c.first {
				t.Errorf("the first data %q, want %q", payload, c.first)
			}
			break
		}
		conn.Close()
	}
}

// TestNoUpgrade: what may not or need not be upgraded is answered over HTTP/1.1.
func TestNoUpgrade(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "h2c")
	long := fmt.Sprintf("Content-Length: %d\r\n\r\n", maxUpgradeBody+1)
	for name, request := range map[string]string{
		"bad settings":   upgradeHead("GET", "/health", "***") + "\r\n",
		"half a setting": upgradeHead("GET", "/health", "AAMAAA") + "\r\n",
		"settings twice": upgradeHead("GET", "/health", "AAMAAABk") +
			"HTTP2-Settings: AAMAAABk\r\n\r\n",
		"another protocol": strings.Replace(upgradeHead("GET", "/health", ""), "h2c", "websocket",
			1) + "\r\n",
		"not for this connection": strings.Replace(upgradeHead("GET", "/health", ""),
			", HTTP2-Settings", "", 1) + "\r\n",
		"a stand-in": "GET /health HTTP/1.1\r\nHost: x\r\n" + standIn + ": 1\r\n\r\n",
		"a long body": upgradeHead("POST", "/", "") + kinesisHeaders + "Length\r\n" + long +
			strings.Repeat(" ", maxUpgradeBody+1),
		"a body of any length": upgradeHead("POST", "/", "") + kinesisHeaders + "Length\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		conn := dial(t, s.address)
		send(t, conn, request)
		if got := readHead(t, conn); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
			t.Errorf("%s: %s", name, got)
		}
		conn.Close()
	}
}

// TestUpgradedConnectionsEnd: a call that was accepted is answered, and then the connection is
// closed; so are those that have not said anything since.
func TestUpgradedConnectionsEnd(t *testing.T) {
	t.Parallel()
	s := serveStreams(t, Config{}, "h2c")
	silent := dial(t, s.address)
	send(t, silent, upgradeHead("GET", "/health", "")+"\r\n")
	wantUpgraded(t, silent)
	conn := dial(t, s.address)
	send(t, conn, upgradeHead("POST", "/", "")+kinesisHeaders+"Hold\r\nContent-Length: 2\r\n\r\n{}")
	wantUpgraded(t, conn)
	send(t, conn, clientPreface+string(appendFrame(nil, settingsFrame, 0, 0, nil)))
	<-s.holds
	s.stop()
	for kind := byte(0); kind != 7; { // GOAWAY
		kind, _, _, _ = readFrame(t, conn)
	}
	close(s.let)
	if head, body, _ := frames(t, conn, 1); head[0] != status200 || string(body) != "{}" {
		t.Errorf("%x, %q", head, body)
	}
	began := time.Now()
	if err := s.served(); err != nil {
		t.Error(err)
	}
	if passed := time.Since(began); passed > 4*time.Second {
		t.Errorf("the end took %v", passed)
	}
	for _, conn := range []net.Conn{silent, conn} {
		if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Logf("the end: %v", err)
		}
	}
}

// FuzzUpgradedConn: HTTP/2 sees what the client sent, with the header's settings and the
// stand-in in their place, however the bytes come, and whatever they are.
func FuzzUpgradedConn(f *testing.F) {
	hello := clientPreface + string(appendFrame(nil, settingsFrame, 0, 0, setting(3, 100)))
	f.Add([]byte(hello+"rest"), []byte{}, uint8(0))
	f.Add([]byte(hello), setting(4, 1), uint8(1))
	f.Add([]byte(clientPreface), setting(4, 1), uint8(2))
	f.Add([]byte("GET / HTTP/1.1"), []byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, sent, settings []byte, how uint8) {
		var in io.Reader = bytes.NewReader(sent)
		switch how % 3 {
		case 1:
			in = iotest.OneByteReader(in)
		case 2:
			in = iotest.DataErrReader(in)
		}
		c := &upgradedConn{in: in, settings: settings}
		c.request.Store(&http.Request{Method: http.MethodPost})
		got, err := io.ReadAll(c)
		want, whole := upgradedBytes(sent, settings, c.standIn())
		if whole != (err == nil) || !bytes.HasPrefix(want, got) || (whole && !bytes.Equal(want, got)) {
			t.Errorf("%q and %q: %q, %v; want %q", sent, settings, got, err, want)
		}
	})
}

// upgradedBytes says the same without a state: what HTTP/2 is to see, and whether what was sent
// goes beyond the first frame.
func upgradedBytes(sent, settings, standIn []byte) (want []byte, whole bool) {
	const head = prefaceLength + frameHeadLength
	if len(sent) < head {
		return sent, len(sent) == 0 || len(sent) == prefaceLength
	}
	length := int(sent[prefaceLength])<<16 | int(sent[prefaceLength+1])<<8 |
		int(sent[prefaceLength+2])
	isSettings := bytes.Equal(sent[prefaceLength+3:head], []byte{4, 0, 0, 0, 0, 0})
	if !isSettings || length > maxFirstSettings {
		return sent, true
	}
	if len(sent) < head+length {
		return sent, false
	}
	frame := mergeSettings(settings, sent[head:head+length]) // TestUpgradeSettings has it
	all := len(frame)
	want = append(want, sent[:prefaceLength]...)
	want = append(want, byte(all>>16), byte(all>>8), byte(all), 4, 0, 0, 0, 0, 0)
	want = append(want, frame...)
	want = append(want, 0, 0, byte(len(standIn)), 1, 5, 0, 0, 0, 1)
	return append(append(want, standIn...), sent[head+length:]...), true
}
