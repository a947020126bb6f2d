package wire

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Answer sends the call's result: a document in the call's format, or nothing.
func (x *Exchange) Answer(body []byte) {
	if x.Call.Format == Query {
		body = x.queryAnswer(body)
	}
	x.send(http.StatusOK, body)
}

// Fail sends an error, in the call's format.
func (x *Exchange) Fail(e *Error) {
	if x.Call.Format == Query {
		code, status := e.query()
		x.send(status, x.queryError(code, e.Message, status))
		return
	}
	if e.Query != "" {
		x.w.Header().Set("X-Amzn-Query-Error", e.Query+";"+faultOf(e.status()))
	}
	body, err := e.envelope(x.Call.Format)
	if err != nil { // a further member that cannot be encoded
		e = InternalFailure(x.Call.Service)
		body, _ = e.envelope(x.Call.Format)
	}
	x.send(e.status(), body)
}

func (x *Exchange) refuse(e *Error) error {
	x.Fail(e)
	return fmt.Errorf("%w: %w", ErrAnswered, e)
}

// send writes an answer. A client that has gone is not an error here: the handler could report it
// nowhere, and the server sees the connection end.
func (x *Exchange) send(status int, body []byte) {
	header := x.w.Header()
	header.Set("Content-Type", x.contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if x.Call.Service == DynamoDB {
		setSum(header, body)
	}
	if x.rpc {
		x.markRPC(header, body)
	}
	x.status, x.sent = status, len(body)
	x.w.WriteHeader(status)
	if len(body) <= slowBytes && !x.Call.Sending.IsLarge() {
		_, _ = x.w.Write(body)
		return
	}
	if w, ok := x.w.(watchedWriter); ok {
		x.sendWatched(w, body)
		return
	}
	x.sendSlowly(body)
}

// watchedWriter is a ResponseWriter that reports the progress of a long write. It calls watch with
// the bytes that the client has taken, and the time for which it has waited; it ends the connection
// once watch returns false.
type watchedWriter interface {
	WriteWatched(body []byte, watch func(gone int, waited time.Duration) (goOn bool)) error
}

// shortTime is the time that a client has to read an answer of up to slowBytes. Over net/http the
// server's write deadline is as long.
const shortTime = time.Minute

// sendWatched is sendSlowly without the pieces. It judges a client by its first ten seconds, and
// every ten seconds by the last twenty: bytes come in bursts where the client's system keeps them
// for it. A short answer has shortTime.
func (x *Exchange) sendWatched(w watchedWriter, body []byte) {
	x.Call.Sending.Begin()
	type mark struct {
		gone int
		at   time.Duration
	}
	var before, latest mark
	_ = w.WriteWatched(body, func(gone int, waited time.Duration) bool {
		x.Call.Sending.Moved(gone)
		if len(body) <= slowBytes {
			return waited < shortTime && !x.Call.Sending.IsCut()
		}
		if waited-latest.at >= slowTime {
			least := int64(slowBytes) * int64(waited-before.at) / int64(slowTime)
			if int64(gone-before.gone) < least {
				return false
			}
			before, latest = latest, mark{gone, waited}
		}
		return !x.Call.Sending.IsCut()
	})
}

// sendSlowly sends an answer that holds memory of the budget, in pieces, so that the budget sees
// how fast they move. The client has slowTime for each slowBytes of it. An answer that is no longer
// than that keeps its deadline.
func (x *Exchange) sendSlowly(body []byte) {
	control := http.NewResponseController(x.w)
	x.Call.Sending.Begin()
	for sent, mark := 0, 0; sent < len(body); {
		if sent >= mark {
			if len(body) > slowBytes {
				_ = control.SetWriteDeadline(time.Now().Add(slowTime)) // a test's recorder has none
			}
			if x.Call.Sending.IsCut() {
				_ = control.SetWriteDeadline(time.Unix(1, 0)) // this one came after the cut's
			}
			mark = sent + slowBytes
		}
		n, err := x.w.Write(body[sent:min(sent+piece, mark, len(body))])
		if sent += n; err != nil {
			return
		}
		x.Call.Sending.Moved(sent)
	}
}

// setSum adds the body's checksum, which DynamoDB's clients check. Kinesis's answers have none.
func setSum(header http.Header, body []byte) {
	sum := crc32.ChecksumIEEE(body)
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(sum), 10))
}

// tooLarge answers as AWS does: without a body and a request id.
func tooLarge(w http.ResponseWriter, r *http.Request) error {
	date := w.Header()["Date"] // the server's time, if that is not the system's
	clear(w.Header())
	if date != nil {
		w.Header()["Date"] = date
	}
	if r.ProtoMajor < 2 { // the rest of the body stays unread; over HTTP/2 the server drops it
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(http.StatusRequestEntityTooLarge)
	return fmt.Errorf("%w: %w", ErrAnswered, errTooLarge)
}

// refuseXML refuses a request that is no call at all. If it names no operation, the answer says so,
// or, if signatures are wanted, that the signature is missing (kinesalite, test/connection.js).
func (x *Exchange) refuseXML(r *http.Request, auth *Credentials, status int) error {
	code, message := "UnknownOperationException", ""
	prefix, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if r.Method != http.MethodPost || prefix == "" || operation == "" {
		status = http.StatusForbidden
		code = "AccessDeniedException"
		message = "Unable to determine service/operation name to be authorized"
		if auth != nil && r.Header.Get("Authorization") == "" &&
			!strings.Contains(r.URL.RawQuery, "X-Amz-Algorithm") {
			code, message = "MissingAuthenticationTokenException", "Missing Authentication Token"
		}
	}
	document := "<" + code + "/>\n"
	if message != "" {
		document = "<" + code + ">\n  <Message>" + message + "</Message>\n</" + code + ">\n"
	}
	x.w.Header()["Content-Type"] = nil // AWS sends none, and none is to be guessed
	if x.Call.Service == DynamoDB {
		setSum(x.w.Header(), []byte(document))
	}
	x.w.WriteHeader(status)
	_, _ = io.WriteString(x.w, document)
	return fmt.Errorf("%w: %s", ErrAnswered, code)
}

// refusePlain refuses a request in application/json, which leads to no operation of Kinesis: the
// body must be a JSON object or array, and then the operation is unknown (kinesalite, index.js).
// The error is in the envelope of an older protocol. A body that was not read counts as JSON.
func (x *Exchange) refusePlain() error {
	e := UnknownOperation(DynamoDB) // the older protocol has its spelling: coral.service#…
	e.Status = http.StatusNotFound
	if body := bytes.TrimSpace(x.Call.Body); len(x.Call.Body) > 0 &&
		(!json.Valid(body) || body[0] != '{' && body[0] != '[') {
		e = Serialization(DynamoDB, "")
	}
	x.Call.Format, x.contentType = JSON, plainJSON
	output, err := e.envelope(JSON)
	if err != nil {
		return err
	}
	x.send(e.status(), fmt.Appendf(nil, `{"Output":%s,"Version":"1.0"}`, output))
	return fmt.Errorf("%w: %w", ErrAnswered, e)
}

// setIDs adds AWS's identifiers of an answer: the request's id, and at Kinesis 72 random bytes in
// base64 (kinesalite, test/connection.js). They protect nothing.
func setIDs(header http.Header, requestID string, kinesis bool) {
	header.Set("X-Amzn-Requestid", requestID)
	if !kinesis {
		return
	}
	var random [72]byte
	for i := 0; i < len(random); i += 8 {
		binary.LittleEndian.PutUint64(random[i:], rand.Uint64())
	}
	header.Set("X-Amz-Id-2", base64.StdEncoding.EncodeToString(random[:]))
}

// requestID returns a random UUID, or, for DynamoDB, 52 characters of 0-9 and A-V (dynalite,
// test/connection.js).
func requestID(dynamo bool) string {
	if dynamo {
		var id [32]byte
		for i := 0; i < len(id); i += 8 {
			binary.LittleEndian.PutUint64(id[i:], rand.Uint64())
		}
		return base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(id[:])
	}
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	text := make([]byte, 0, 36)
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			text = append(text, '-')
		}
		start := [...]int{0, 4, 6, 8, 10}[i]
		text = hex.AppendEncode(text, id[start:end])
	}
	return string(text)
}
