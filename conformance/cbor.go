package main

import (
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

var cborMode = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DefaultMapType: reflect.TypeFor[map[string]any]()}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}()

func decodeCBOR(data []byte) (object, error) {
	var o map[string]any
	if err := cborMode.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("%w: CBOR: %w", errAnswer, err)
	}
	return o, nil
}

// cborRequest returns the request of a call in CBOR. Blobs in it are []byte.
func cborRequest(op string, in object) request {
	body, err := cbor.Marshal(map[string]any(in))
	if err != nil {
		panic(err) // a mistake in the fact
	}
	return cborBody(op, body)
}

func cborBody(op string, body []byte) request {
	return request{headers: map[string]string{
		"Content-Type": typeCBOR, "X-Amz-Target": targetPrefix + op,
	}, body: body}
}

// callCBOR makes a call in CBOR and repeats it while it is throttled.
func (c *check) callCBOR(op string, in object) *answer {
	return c.must(c.patiently(c.ctx, cborRequest(op, in)))
}

// okCBOR makes a call in CBOR that must succeed.
func (c *check) okCBOR(op string, in object) (object, *answer) {
	a := c.callCBOR(op, in)
	c.want(a.status == 200, op+" in CBOR succeeds", a.String())
	return a.value, a
}
