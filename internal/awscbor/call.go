package awscbor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/rpcv2"

	"github.com/runnel-stream/runnel/internal/awserr"
)

const contentType = "application/x-amz-cbor-1.1"

// encoder encodes inputs in CBOR, for another protocol of AWS: only its body is used.
var encoder = rpcv2.NewCBOR(schemas.Kinesis_20131202)

// call is the protocol of one GetRecords call, and a step of the call's stack, below the retries
// and above the signature.
//
// Each attempt is sent in CBOR, unless the server is known to speak JSON alone. An answer in CBOR
// is decoded here, and one in JSON by the SDK's own protocol: a server may answer so. If an answer
// shows that the server did not understand CBOR, the step sends the attempt again in JSON, and the
// second answer counts. If that one has a page, the server is taken to speak JSON alone from then
// on. An attempt is sent again only if the first answer is none of these, which every server may
// send: a throttle, an error about the iterator or the stream, a time-out, an overload.
type call struct {
	smithyhttp.ClientProtocol // the SDK's, for JSON
	speaks                    *atomic.Uint32

	attached bool   // the step is in the stack
	json     []byte // the body in JSON, and its type
	jsonType string
	inCBOR   bool // the current attempt
	misread  bool // the server did not understand it
}

// attach adds the step. In a stack without the SDK's own steps the call stays in JSON.
func (c *call) attach(stack *middleware.Stack) error {
	const next = "ResolveAuthScheme" // the first step of an attempt that changes the request
	if _, ok := stack.Finalize.Get(next); !ok {
		return nil
	}
	c.attached = true
	return stack.Finalize.Insert(
		middleware.FinalizeMiddlewareFunc("runnelCBOR", c.attempt), next, middleware.Before)
}

// SerializeRequest sets a request's body in CBOR, and keeps the one in JSON.
func (c *call) SerializeRequest(
	ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable,
	req *smithyhttp.Request,
) error {
	err := c.ClientProtocol.SerializeRequest(ctx, schema, in, req)
	if err != nil || !c.attached || c.speaks.Load() == jsonOnly {
		return err
	}
	encoded := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if err := encoder.SerializeRequest(ctx, schema, in, encoded); err != nil {
		return err
	}
	if c.json, err = io.ReadAll(req.GetStream()); err != nil {
		return err
	}
	c.jsonType = req.Header.Get("Content-Type")
	return setBody(req, encoded.GetStream(), contentType)
}

func setBody(req *smithyhttp.Request, body io.Reader, contentType string) error {
	changed, err := req.SetStream(body)
	if err != nil {
		return err
	}
	*req = *changed
	req.Header.Set("Content-Type", contentType)
	return nil
}

// attempt makes one attempt of the SDK's retries.
func (c *call) attempt(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok || c.json == nil {
		return next.HandleFinalize(ctx, in)
	}
	again := req.Clone() // the steps below change the request
	if c.speaks.Load() != jsonOnly {
		c.inCBOR, c.misread = true, false
		out, metadata, err = next.HandleFinalize(ctx, in)
		c.inCBOR = false
		if !c.misread {
			return out, metadata, err
		}
	}
	if err := setBody(again, bytes.NewReader(c.json), c.jsonType); err != nil {
		return out, metadata, err
	}
	in.Request = again
	out, metadata, err = next.HandleFinalize(ctx, in)
	if err == nil {
		c.speaks.Store(jsonOnly)
	}
	return out, metadata, err
}

// DeserializeResponse decodes an answer, and sets misread.
func (c *call) DeserializeResponse(
	ctx context.Context, schema *smithy.OperationSchema, types *smithy.TypeRegistry,
	resp *smithyhttp.Response, out smithy.Deserializable,
) error {
	page, ok := out.(*kinesis.GetRecordsOutput)
	if !ok || !c.inCBOR {
		return c.ClientProtocol.DeserializeResponse(ctx, schema, types, resp, out)
	}
	isCBOR := strings.Contains(strings.ToLower(resp.Header.Get("Content-Type")), "cbor")
	failed := resp.StatusCode < 200 || resp.StatusCode > 299
	switch {
	case isCBOR && !failed:
		return c.page(resp, page)
	case isCBOR:
		if err := toJSON(resp); err != nil {
			c.misread = c.doubtful(resp.StatusCode)
			return &smithy.DeserializationError{Err: err}
		}
	}
	err := c.ClientProtocol.DeserializeResponse(ctx, schema, types, resp, out)
	switch {
	case !failed: // in JSON; an answer without a body is none
		c.misread = err != nil || page.NextShardIterator == nil && page.MillisBehindLatest == nil
		if c.misread {
			*page = kinesis.GetRecordsOutput{} // the next attempt fills it again
		}
	case isCBOR:
		c.misread = awserr.Misread(err)
	default:
		c.misread = c.refused(resp.StatusCode, err)
	}
	return err
}

// page reads an answer with records.
func (c *call) page(resp *smithyhttp.Response, page *kinesis.GetRecordsOutput) error {
	body, err := readBody(resp)
	if err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	defer body.free()
	got, err := readPage(*body)
	if err != nil {
		// A body that breaks off may come from the network, and says little about a server that
		// has sent others.
		c.misread = !errors.Is(err, io.ErrUnexpectedEOF) || c.speaks.Load() == untried
		return &smithy.DeserializationError{Err: err}
	}
	*page = got
	c.speaks.CompareAndSwap(untried, fluent)
	return nil
}

// doubtful reports whether a fault of a server may come from a body in CBOR: until the server has
// shown that it reads them.
func (c *call) doubtful(status int) bool {
	return c.speaks.Load() == untried &&
		(status == http.StatusInternalServerError || status == http.StatusNotImplemented)
}

// refused reports whether an error that is not in CBOR may be due to the request's encoding.
func (c *call) refused(status int, err error) bool {
	switch {
	case status >= 500:
		return c.doubtful(status)
	case status < 400, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return false
	}
	switch awserr.Kinesis.Of(err) {
	case awserr.Unknown, awserr.Caller, awserr.Record:
		return true
	default:
		return false
	}
}
