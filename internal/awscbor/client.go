// Package awscbor reads records from Kinesis in CBOR. The AWS SDK for Go asks in JSON, with data in
// base64; decoding that takes most of a reader's CPU time. Kinesis speaks CBOR too, as the SDKs for
// Java do by default.
//
// A Client changes nothing but the encoding of GetRecords: the call goes through the caller's own
// client of the SDK, with its retries, signatures, middleware and errors. It replaces the SDK's
// protocol for that call (kinesis.Options.Protocol), and adds a step below the retries. If the
// server does not understand CBOR, that step makes the same attempt again in JSON; see call.
//
// AWS_CBOR_DISABLE=true or CBOR_ENABLED=false in the environment, the settings of the SDKs for
// Java, turn CBOR off.
package awscbor

import (
	"context"
	"os"
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

// Client reads in CBOR by a client of the SDK. It remembers whether the server understands CBOR.
// An API of another kind, which ignores options, is called as it is.
type Client struct {
	api    API
	speaks atomic.Uint32 // a dialect
	option func(*kinesis.Options)
}

// dialect is a Client's knowledge of its server.
type dialect = uint32

const (
	untried  dialect = iota
	fluent           // the server has answered in CBOR
	jsonOnly         // it has answered in JSON where it did not in CBOR
)

// New makes a Client.
func New(api API) *Client {
	c := &Client{api: api}
	c.option = c.configure
	if disabled(os.Getenv) {
		c.speaks.Store(jsonOnly)
	}
	return c
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
	if c.speaks.Load() != jsonOnly {
		options = append(options[:len(options):len(options)], c.option)
	}
	return c.api.GetRecords(ctx, in, options...)
}

// API returns the client through which the calls go.
func (c *Client) API() API { return c.api }

// configure replaces the protocol of one call. A protocol other than the SDK's JSON stays.
func (c *Client) configure(o *kinesis.Options) {
	if o.Protocol == nil || o.Protocol.ID().Name != "awsJson1_1" {
		return
	}
	made := &call{ClientProtocol: o.Protocol, speaks: &c.speaks}
	o.Protocol = made
	o.APIOptions = append(o.APIOptions, made.attach)
}
