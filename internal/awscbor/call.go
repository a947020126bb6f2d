package awscbor

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/internal/awserr"
)

const contentType = "application/x-amz-cbor-1.1"

// call is the protocol of one call, and a step of the call's stack, below the retries and above the
// signature.
//
// Each attempt is sent in CBOR, unless the server is known to speak JSON alone. An answer in CBOR
// is decoded here, and one in JSON by the SDK's own protocol: a server may answer so. If an answer
// shows that the server did not understand CBOR, the step sends the attempt again in JSON, and the
// second answer counts. If that one is a success, the server is taken to speak JSON alone from then
// on. An attempt is sent again only if the first answer is none of these, which every server may
// send: an error in CBOR about the call, a throttle, an error about the iterator or the stream, a
// time-out, an overload.
//
// An answer may leave open whether the server understood CBOR: a page that cannot be read, or a
// crash before the server's first answer in CBOR. GetRecords is sent again. PutRecords may have
// stored its records, so the attempt fails, and the caller's next call goes in JSON.
type call struct {
	smithyhttp.ClientProtocol // the SDK's, for JSON
	server                    *server

	attached bool // the step is in the stack
	schema   *smithy.OperationSchema
	in       smithy.Serializable // nil if the request was made in JSON
	inCBOR   bool                // the current attempt
	misread  bool                // the server did not understand it
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

// SerializeRequest makes a request, in CBOR if the server may understand it.
func (c *call) SerializeRequest(
	ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable,
	req *smithyhttp.Request,
) error {
	if !c.attached || c.server.speaks.Load() >= doubted {
		return c.ClientProtocol.SerializeRequest(ctx, schema, in, req)
	}
	body, err := c.server.operation.encode(ctx, schema, in)
	if err != nil {
		return err
	}
	changed, err := req.SetStream(body)
	if err != nil {
		return err
	}
	*req = *changed
	req.Method = http.MethodPost
	if req.URL.Path == "" {
		req.URL.Path = "/"
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Amz-Target", schemas.Kinesis_20131202.Schema.ID().Name+"."+schema.ID().Name)
	c.schema, c.in = schema, in
	return nil
}

// attempt makes one attempt of the SDK's retries.
func (c *call) attempt(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
	if req, ok := in.Request.(*smithyhttp.Request); ok && c.in != nil {
		again := req.Clone() // the steps below change the request
		if c.server.speaks.Load() < doubted {
			c.inCBOR, c.misread = true, false
			out, metadata, err = next.HandleFinalize(ctx, in)
			c.inCBOR = false
			if !c.misread {
				return out, metadata, err
			}
		}
		err = c.ClientProtocol.SerializeRequest(ctx, c.schema, c.in, again)
		if err != nil {
			return out, metadata, err
		}
		in.Request = again
	}
	out, metadata, err = next.HandleFinalize(ctx, in)
	if err == nil {
		c.server.speaks.Store(jsonOnly)
	} else {
		c.server.speaks.CompareAndSwap(doubted, untried)
	}
	return out, metadata, err
}

// DeserializeResponse decodes an answer, and sets misread.
func (c *call) DeserializeResponse(
	ctx context.Context, schema *smithy.OperationSchema, types *smithy.TypeRegistry,
	resp *smithyhttp.Response, out smithy.Deserializable,
) error {
	if !c.inCBOR {
		return c.ClientProtocol.DeserializeResponse(ctx, schema, types, resp, out)
	}
	isCBOR := strings.Contains(strings.ToLower(resp.Header.Get("Content-Type")), "cbor")
	failed := resp.StatusCode < 200 || resp.StatusCode > 299
	switch {
	case isCBOR && !failed:
		return c.answer(schema, resp, out)
	case isCBOR:
		if err := toJSON(resp); err != nil {
			c.fault(resp.StatusCode)
			return &smithy.DeserializationError{Err: err}
		}
	}
	err := c.ClientProtocol.DeserializeResponse(ctx, schema, types, resp, out)
	switch {
	case failed && isCBOR:
		c.misread = awserr.Misread(err)
	case failed:
		c.refused(resp.StatusCode, err)
	case err != nil || c.server.operation.empty(out):
		c.server.operation.reset(out) // the next attempt fills it again
		c.open()
	}
	return err
}

// answer reads an answer in CBOR.
func (c *call) answer(
	schema *smithy.OperationSchema, resp *smithyhttp.Response, out smithy.Deserializable,
) error {
	body, err := readBody(resp)
	if err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	defer body.free()
	if err := c.server.operation.decode(*body, schema, out); err != nil {
		// A body that breaks off may come from the network, and says little about a server that
		// has sent others.
		if !errors.Is(err, io.ErrUnexpectedEOF) || c.server.speaks.Load() == untried {
			c.open()
		}
		return &smithy.DeserializationError{Err: err}
	}
	c.server.speaks.CompareAndSwap(untried, fluent)
	return nil
}

// open handles an answer that leaves open whether the server understood the call.
func (c *call) open() {
	if c.server.operation.repeats {
		c.misread = true
		return
	}
	c.server.speaks.CompareAndSwap(untried, doubted)
}

// fault handles an answer that is a fault of the server: a body in CBOR may be its cause until the
// server has shown that it reads them.
func (c *call) fault(status int) {
	if c.server.speaks.Load() == untried &&
		(status == http.StatusInternalServerError || status == http.StatusNotImplemented) {
		c.open()
	}
}

// refused handles an error that is not in CBOR. It may be due to the request's encoding.
func (c *call) refused(status int, err error) {
	switch {
	case status >= 500:
		c.fault(status)
		return
	case status < 400, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return
	}
	switch awserr.Kinesis.Of(err) {
	case awserr.Unknown, awserr.Caller, awserr.Record:
		c.misread = true
	}
}
