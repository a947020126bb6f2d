// Package awscbor reads and puts records of Kinesis in CBOR. The AWS SDK for Go calls in JSON, with
// data in base64; decoding that takes a third of a reader's CPU time, and encoding it a fifth of a
// producer's. Kinesis speaks CBOR too, as the SDKs for Java do by default.
//
// A Client and a Writer change nothing but the encoding of GetRecords and PutRecords: the call goes
// through the caller's own client of the SDK, with its retries, signatures, middleware and errors.
// They replace the SDK's protocol for that call (kinesis.Options.Protocol), and add a step below
// the retries. If the server does not understand CBOR, that step makes the same attempt again in
// JSON; see call.
//
// AWS_CBOR_DISABLE=true or CBOR_ENABLED=false in the environment, the settings of the SDKs for
// Java, turn CBOR off.
package awscbor

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// API is the part of the SDK's Kinesis client that reads a shard.
type API interface {
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput,
		...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error)
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (
		*kinesis.GetRecordsOutput, error)
}

// PutAPI is the part of the SDK's Kinesis client that puts records.
type PutAPI interface {
	PutRecords(context.Context, *kinesis.PutRecordsInput, ...func(*kinesis.Options)) (
		*kinesis.PutRecordsOutput, error)
}

// Client reads in CBOR by a client of the SDK. It remembers whether the server understands CBOR.
// An API of another kind, which ignores options, is called as it is.
type Client struct {
	api    API
	server *server
}

// Writer puts in CBOR by a client of the SDK, as Client reads.
type Writer struct {
	api    PutAPI
	server *server
}

// New makes a Client.
func New(api API) *Client { return &Client{api: api, server: newServer(reads)} }

// NewWriter makes a Writer.
func NewWriter(api PutAPI) *Writer { return &Writer{api: api, server: newServer(puts)} }

// GetShardIterator makes the call as the SDK does, in JSON.
func (c *Client) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput,
) (*kinesis.GetShardIteratorOutput, error) {
	return c.api.GetShardIterator(ctx, in)
}

// GetRecords makes the call in CBOR if the server understands it.
func (c *Client) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	return c.api.GetRecords(ctx, in, append(slices.Clip(options), c.server.option)...)
}

// API returns the client through which the calls go.
func (c *Client) API() API { return c.api }

// PutRecords makes the call in CBOR if the server understands it.
func (w *Writer) PutRecords(
	ctx context.Context, in *kinesis.PutRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.PutRecordsOutput, error) {
	return w.api.PutRecords(ctx, in, append(slices.Clip(options), w.server.option)...)
}

// server is the knowledge of the server for one operation, and the option of its calls.
type server struct {
	operation operation
	speaks    atomic.Uint32 // a dialect
	option    func(*kinesis.Options)
}

type dialect = uint32

const (
	untried  dialect = iota
	fluent           // the server has answered in CBOR
	doubted          // its answer to CBOR leaves the outcome open: JSON is tried next
	jsonOnly         // it has answered in JSON where it did not in CBOR
)

func newServer(of operation) *server {
	s := &server{operation: of}
	s.option = s.configure
	if disabled(os.Getenv) {
		s.speaks.Store(jsonOnly)
	}
	return s
}

// disabled reads the settings of the SDKs for Java: AWS_CBOR_DISABLE of version 1, and CBOR_ENABLED
// of version 2.
func disabled(env func(string) string) bool {
	switch strings.ToLower(env("AWS_CBOR_DISABLE")) {
	case "", "0", "false":
	default:
		return true
	}
	switch strings.ToLower(env("CBOR_ENABLED")) {
	case "0", "false":
		return true
	}
	return false
}

// configure replaces the protocol of one call. A protocol other than the SDK's JSON stays.
func (s *server) configure(o *kinesis.Options) {
	if s.speaks.Load() == jsonOnly || o.Protocol == nil || o.Protocol.ID().Name != "awsJson1_1" {
		return
	}
	made := &call{ClientProtocol: o.Protocol, server: s}
	o.Protocol = made
	o.APIOptions = append(o.APIOptions, made.attach)
}
