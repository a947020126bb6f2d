package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"

	"github.com/runnel-stream/runnel/internal/budget"
)

// The content type of the event stream, and of its frames' payload. The payload is JSON for
// requests in any format: no SDK reads CBOR frames (Java's says so where it falls back to JSON).
const (
	eventStreamType  = "application/vnd.amazon.eventstream"
	eventPayloadType = "application/json"
)

// MaxFrame is the longest message that the SDKs' decoders accept, in bytes (Go's MaxMsgLen). An
// event's payload must leave some 200 bytes of it for the headers and checksums.
const MaxFrame = 16 << 20

// initialResponse is the first message of every event stream: the call's output without its stream,
// which for SubscribeToShard is empty.
var initialResponse = Event{Type: "initial-response", Payload: []byte("{}")}

const (
	preludeLength = 12 // of the message, of its headers, checksum of both
	sumLength     = 4
)

// AppendFrame appends the event as a message of application/vnd.amazon.eventstream:
//
//	4 bytes   length of the whole message
//	4 bytes   length of the headers
//	4 bytes   CRC-32 of these 8
//	headers   each: length of the name (1 byte), name, 7 (string), length (2 bytes), value
//	payload
//	4 bytes   CRC-32 of everything before
//
// Numbers are big-endian. The headers are :message-type ("event" or "exception"), :event-type
// or :exception-type, and :content-type, as AWS sends them.
func AppendFrame(dst []byte, e Event) []byte {
	start := len(dst)
	dst = append(appendFrameHead(dst, e), e.Payload...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}

// appendFrameHead appends the part of the frame before the payload.
func appendFrameHead(dst []byte, e Event) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, preludeLength)...)
	message, kind := "event", ":event-type"
	if e.Exception {
		message, kind = "exception", ":exception-type"
	}
	dst = appendFrameHeader(dst, ":message-type", message)
	dst = appendFrameHeader(dst, kind, e.Type)
	dst = appendFrameHeader(dst, ":content-type", eventPayloadType)
	head := dst[start:]
	binary.BigEndian.PutUint32(head, uint32(len(head)+len(e.Payload)+sumLength))
	binary.BigEndian.PutUint32(head[4:], uint32(len(head)-preludeLength))
	binary.BigEndian.PutUint32(head[8:], crc32.ChecksumIEEE(head[:8]))
	return dst
}

func appendFrameHeader(dst []byte, name, value string) []byte {
	const stringValue = 7
	dst = append(append(dst, byte(len(name))), name...)
	dst = binary.BigEndian.AppendUint16(append(dst, stringValue), uint16(len(value)))
	return append(dst, value...)
}

// Frames is a running event stream as an answer. It belongs to one goroutine.
type Frames struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sending *budget.Share
	head    []byte // of the last message, to be used again
}

// Stream answers the call with an event stream: status 200, the headers and the initial-response
// message, which are sent at once. It may be called after Close, so that a stream holds no memory
// of its request. Neither Answer nor Fail may follow. An error means that the client has gone, or
// read nothing for as long as the connection's write deadline allows.
//
// The stream's proper end is the handler's return; to break it off, the handler panics with
// http.ErrAbortHandler.
func (x *Exchange) Stream() (*Frames, error) {
	x.w.Header().Set("Content-Type", eventStreamType)
	x.status = http.StatusOK
	x.w.WriteHeader(x.status)
	frames := &Frames{
		w: x.w, control: http.NewResponseController(x.w), sending: x.Call.Sending,
	}
	return frames, frames.Write(initialResponse)
}

// Write sends an event, and returns when it is with the connection. The payload is not copied
// on the way, so that many streams hold no buffers of megabytes; it may be used again after.
// After an error the stream is useless.
func (f *Frames) Write(e Event) error {
	f.head = appendFrameHead(f.head[:0], e)
	sum := crc32.Update(crc32.ChecksumIEEE(f.head), crc32.IEEETable, e.Payload)
	if _, err := f.w.Write(f.head); err != nil {
		return fmt.Errorf("send the event %s: %w", e.Type, err)
	}
	if err := f.payload(e.Payload); err != nil {
		return fmt.Errorf("send the event %s: %w", e.Type, err)
	}
	f.head = binary.BigEndian.AppendUint32(f.head[:0], sum)
	if _, err := f.w.Write(f.head); err != nil {
		return fmt.Errorf("send the event %s: %w", e.Type, err)
	}
	if err := f.control.Flush(); err != nil {
		return fmt.Errorf("send the event %s: %w", e.Type, err)
	}
	return nil
}

// payload sends a payload in pieces, so that the budget sees how fast they move.
func (f *Frames) payload(p []byte) error {
	f.sending.Begin()
	for sent := 0; sent < len(p); {
		if f.sending.IsCut() {
			return budget.ErrCut
		}
		n, err := f.w.Write(p[sent:min(sent+piece, len(p))])
		if sent += n; err != nil {
			return err
		}
		f.sending.Moved(sent)
	}
	return nil
}
