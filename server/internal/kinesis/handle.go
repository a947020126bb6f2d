package kinesis

import (
	"context"
	"reflect"

	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/wire"
)

// operation answers the calls of one operation.
type operation struct {
	input reflect.Type
	serve func(s *Service, ctx context.Context, call *wire.Call) (wire.Answer, error)
}

// handle builds an operation of three steps: decode the members, check their constraints, execute.
// A nil answer is an empty body, and one of wire.Events is an event stream.
func handle[In any, P input[In]](
	execute func(*Service, context.Context, wire.World, P) (any, error),
) operation {
	serve := func(
		s *Service, ctx context.Context, call *wire.Call,
	) (a wire.Answer, err error) {
		in, plan := P(new(In)), s.plans[call.Operation]
		done := wire.TakeTurn(len(call.Body))
		err = plan.decodeInput(call, in)
		done()
		if err != nil {
			return a, err
		}
		if err := plan.validate(in); err != nil {
			return a, err
		}
		if late, ok := any(in).(dated); ok {
			late.cameBy(&call.Origin)
		}
		note(call, in, nil)
		if answer, ok := any(in).(large); ok {
			answer.sendsBy(call.Sending)
		}
		undo, err := s.limits.call(call, in)
		if err != nil {
			return a, err
		}
		out, err := execute(s, ctx, call.World, in)
		note(call, in, out)
		if err != nil {
			undo()
			return a, err
		}
		var ok bool
		if a.Events, ok = out.(wire.Events); !ok {
			a.Body, err = encode(call, out)
		}
		return a, err
	}
	return operation{input: reflect.TypeFor[In](), serve: serve}
}

// large is an input of an operation whose answers may be large. It grows the memory for one before
// it makes one.
type large interface{ sendsBy(memory *budget.Share) }

// decodeInput reads a call's body.
func (p *plan) decodeInput(call *wire.Call, in any) error {
	var err *wire.Error
	if put, ok := in.(selfDecoded); ok {
		err = put.Decode(call.Format, call.Body)
	} else {
		err = p.decode(call.Format, call.Body, in)
	}
	if err != nil { // a nil *wire.Error is no nil error
		return err
	}
	return nil
}

// selfDecoded is an input with a decoder of its own: a put's, which is also the proxy's. It gives
// the same result as the plan's: see FuzzPutDecode.
type selfDecoded interface {
	Decode(format wire.Format, body []byte) *wire.Error
}

// validate returns an error that lists the broken constraints of an input, or the input's first
// error of another kind.
func (p *plan) validate(in interface{ validate(*violations) }) error {
	var v violations
	p.check(&v, in)
	if len(v.texts) == 0 {
		in.validate(&v)
	}
	return v.err()
}
