package awswire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
)

// MaxBody is the longest request body, in bytes: the 10 MiB of a PutRecords call in base64,
// with room for the JSON around it. A longer one is answered with 413.
const MaxBody = 15 << 20

// ErrAnswered is wrapped by Begin's error where the caller has been told already.
var ErrAnswered = errors.New("request refused")

// Exchange is a call and the way to answer it. It belongs to one goroutine.
type Exchange struct {
	Call Call

	w           http.ResponseWriter
	contentType string
	body        *[]byte // to be returned to the pool
}

// Begin takes a call off the transport, in the order in which AWS checks: size, method, body,
// content type, target, signature scope. A request that fails a check is answered at once,
// and the error, for the log, wraps ErrAnswered; any other error means that the client broke
// off. The caller ends every exchange with Close.
func Begin(w http.ResponseWriter, r *http.Request) (*Exchange, error) {
	if r.ContentLength > MaxBody {
		return nil, tooLarge(w)
	}
	x := &Exchange{w: w}
	x.Call.RequestID = requestID()
	w.Header().Set("X-Amzn-Requestid", x.Call.RequestID)
	if r.Method != http.MethodPost {
		return nil, answerXML(w, http.StatusForbidden, "AccessDeniedException",
			"Unable to determine service/operation name to be authorized")
	}
	if err := x.read(w, r); err != nil {
		x.Close()
		return nil, err
	}
	if err := x.check(r); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

func (x *Exchange) read(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(r.Body, r.ContentLength)
	if errors.Is(err, errTooLarge) {
		return tooLarge(w)
	}
	if err != nil {
		return fmt.Errorf("read the request's body: %w", err)
	}
	x.body, x.Call.Body = body, *body
	return nil
}

// check reads the headers. It answers the request if they are not those of a call.
func (x *Exchange) check(r *http.Request) error {
	x.contentType, _, _ = strings.Cut(r.Header.Get("Content-Type"), ";")
	x.contentType = strings.ToLower(strings.TrimSpace(x.contentType))
	service, operation, known := ParseTarget(r.Header.Get("X-Amz-Target"))
	x.Call.Service, x.Call.Operation = service, operation
	switch x.contentType {
	case "application/x-amz-json-1.0", "application/x-amz-json-1.1":
	case "application/json": // DynamoDB takes it, Kinesis knows no operation under it
		if service != DynamoDB {
			return x.refuse(&Error{
				Code:   "com.amazon.coral.service#UnknownOperationException",
				Status: http.StatusNotFound,
			})
		}
	case "application/x-amz-cbor-1.0", "application/x-amz-cbor-1.1":
		x.contentType = "application/x-amz-json-1.1"
		return x.refuse(Serialization(service, "CBOR is not supported by this version of "+
			"runnel: switch it off in the client (Java: AWS_CBOR_ENABLED=false in the "+
			"environment, or -Daws.cborEnabled=false)"))
	default:
		return answerXML(x.w, http.StatusNotFound, "UnknownOperationException", "")
	}
	switch encoding := r.Header.Get("Content-Encoding"); {
	case !known:
		return x.refuse(UnknownOperation(service))
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return x.refuse(Serialization(service, "Content-Encoding "+strconv.Quote(encoding)+
			" is not supported by this version of runnel: send the body as it is"))
	case len(x.Call.Body) == 0:
		return x.refuse(Serialization(service, ""))
	}
	var err error
	if x.Call.World, err = ParseWorld(r.Header.Get("Authorization")); err != nil {
		var wire *Error
		if errors.As(err, &wire) {
			wire.Code = coral(service, wire.Code)
			return x.refuse(wire)
		}
		return err
	}
	return nil
}

// Answer sends the call's result: a JSON document, or nothing.
func (x *Exchange) Answer(body []byte) { x.send(http.StatusOK, body) }

// Fail sends an error.
func (x *Exchange) Fail(e *Error) {
	body, err := e.envelope()
	if err != nil { // a further member that is not JSON
		e = InternalFailure(x.Call.Service)
		body, _ = e.envelope()
	}
	x.send(e.status(), body)
}

func (x *Exchange) refuse(e *Error) error {
	x.Fail(e)
	return fmt.Errorf("%w: %w", ErrAnswered, e)
}

// send writes an answer. A client that has gone is not an error here: the handler cannot tell
// anybody, and the server sees the connection end.
func (x *Exchange) send(status int, body []byte) {
	header := x.w.Header()
	header.Set("Content-Type", x.contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if x.Call.Service == DynamoDB { // its clients check it; Kinesis has none
		sum := crc32.ChecksumIEEE(body)
		header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(sum), 10))
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body)
}

// Close ends the exchange: Call.Body is no longer valid.
func (x *Exchange) Close() {
	if x.body != nil {
		bodies.Put(x.body)
		x.body, x.Call.Body = nil, nil
	}
}

// tooLarge answers as AWS does: with nothing, not even a request id.
func tooLarge(w http.ResponseWriter) error {
	w.Header().Del("X-Amzn-Requestid")
	w.Header().Set("Connection", "close") // the rest of the body is not read
	w.WriteHeader(http.StatusRequestEntityTooLarge)
	return fmt.Errorf("%w: %w", ErrAnswered, errTooLarge)
}

func answerXML(w http.ResponseWriter, status int, code, message string) error {
	document := "<" + code + "/>\n"
	if message != "" {
		document = "<" + code + ">\n  <Message>" + message + "</Message>\n</" + code + ">\n"
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, document)
	return fmt.Errorf("%w: %s", ErrAnswered, code)
}

// requestID returns a random UUID. It identifies and protects nothing.
func requestID() string {
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
