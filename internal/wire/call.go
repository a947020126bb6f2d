// Package wire is the common layer of the AWS protocols below the operations: awsJson calls and
// answers, the JSON and CBOR documents in them, error envelopes, and the world (account and region)
// that a request's signature names. It also has the inputs of PutRecord and PutRecords, which the
// server and the proxy decode alike.
package wire

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/budget"
)

// World is an account in a region. A resource made in one world is invisible in every other.
type World struct {
	Account string // 12 digits
	Region  string
}

// Call is one request, without its transport.
type Call struct {
	Service   string // "kinesis", "dynamodb", …: the target's prefix decides
	Operation string // the part of X-Amz-Target after the dot, as "PutRecords"
	Format    Format // of the body and of the answer
	Body      []byte // the document; valid until the handler returns
	Form      *Form  // the body, if Format is Query; stays valid
	World     World
	RequestID string
	Origin    Origin
	// Sending is the memory for the call's answer; nil: without a bound. An operation with large
	// answers grows it before it makes one.
	Sending *budget.Share
	// Facts are filled in by the service; nil: the call is not logged.
	Facts *Facts

	room *[]byte // of the pool, nil if Room was not called
}

// Facts are a call's fields in the log which the service knows.
type Facts struct {
	Stream string // the name of the call's stream; "": none
	Table  string // the same of its table
	// Counted means that the call puts or reads records. Records counts all of them, and Refused
	// the records of PutRecords with an error code.
	Counted          bool
	Records, Refused int
}

// Origin is the basis of a call's age. The transport sets Began and Pauses, and Begin sets Expires.
type Origin struct {
	// Began is the time at which the first byte of the request was read; zero: not known.
	Began bootclock.Instant
	// Expires is the time at which the call's signature is too old; zero: the signature was not
	// checked.
	Expires time.Time
	// Pauses is the number of pauses of the process up to the time at which it took the connection:
	// see server/internal/pause.
	Pauses uint64
}

// Room returns an empty buffer with room for n bytes, for the answer. Its memory is used again,
// since clearing 10 MiB for every GetRecords is expensive. The call owns it until the answer has
// been sent.
func (c *Call) Room(n int) []byte {
	if c.room != nil && cap(*c.room) < n {
		giveBack(c.room)
		c.room = nil
	}
	if c.room == nil {
		c.room = bufferFor(n)
	}
	return (*c.room)[:0]
}

// Format is the encoding of a call's documents.
type Format uint8

// The formats: awsJson1_0 and awsJson1_1; application/x-amz-cbor-1.1 and rpcv2Cbor; and the query
// protocol with XML answers, where a service returns the content of the <…Result> element, or nil
// for none.
const (
	JSON Format = iota
	CBOR
	Query
)

// Service answers the calls of one API. An error that is not an *Error is an internal failure:
// it is logged and answered with 500.
type Service interface {
	Serve(ctx context.Context, call *Call) (Answer, error)
}

// Answer is the answer to a call: a document in the call's format (nil: an empty body), or an event
// stream.
type Answer struct {
	Body   []byte
	Events Events // not nil: in the place of Body
}

// Events is an answer of several events. It belongs to one goroutine.
type Events interface {
	// Next blocks until there is an event. io.EOF is the stream's proper end; any other error
	// breaks the connection off.
	Next(ctx context.Context) (Event, error)
	// Close ends the stream. It is called once, whatever Next returned.
	Close()
}

// Event is one message of an event stream.
type Event struct {
	Type      string // of the event, as "SubscribeToShardEvent", or of the exception
	Exception bool   // the message is a modelled error, and the stream's last
	Payload   []byte // a JSON document; valid until the next call of Next
}

// Error is an answer that the API defines as an error.
type Error struct {
	Code    string // the __type, as "ResourceNotFoundException"
	Query   string // the code in the query protocol; "": that of queryCodes, or Code
	Message string
	Status  int            // HTTP; 0 means 400
	Extra   map[string]any // further members of the body
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }
