package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/origin"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/dynamo"
	"github.com/runnel-stream/runnel/server/internal/kinesis"
	"github.com/runnel-stream/runnel/server/internal/transport"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// defaultWriteTimeout is the time that a client has to read an answer, or an event.
const defaultWriteTimeout = time.Minute

// serveHTTP serves a request, unless its connection dates from before a pause.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := transport.Begin(r, s.pauses)
	if err != nil {
		s.cfg.Logger.Debug("a connection is closed, unserved", "from", r.RemoteAddr, "error", err)
		panic(http.ErrAbortHandler)
	}
	defer request.End()
	c := &call{server: s, w: w, request: request}
	c.place, c.full = s.crowd.enter(r)
	defer c.place.leave()
	s.setDate(w)
	s.route(c, w, r)
	c.place.flush(w)
}

// route separates calls from the pages for monitoring.
func (s *Server) route(c *call, w http.ResponseWriter, r *http.Request) {
	if page := s.page(r); page != nil {
		if err := s.cfg.guard.CheckPage(r); err != nil {
			c.place.refuse()
			s.refusePage(w, r, err)
			return
		}
		origin.Share(w, r)
		page(w, r)
		return
	}
	// A page of any origin may call if it has to sign, since it needs a key, as at AWS.
	if s.keys.Load() == nil {
		if err := s.cfg.guard.CheckCall(r); err != nil {
			c.place.refuse()
			s.refusePage(w, r, err)
			return
		}
	}
	s.bodies.Open(&c.body, (*bodyCut)(c))
	s.answers.Open(&c.sending, (*answerCut)(c))
	begun := c.begin(w, r)
	c.request.BodyRead()
	if begun {
		c.serve(r.Context())
	}
}

// page returns the handler of a page for monitoring; nil for a call.
func (s *Server) page(r *http.Request) http.HandlerFunc {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	switch r.URL.Path {
	case "/health":
		return s.health
	case "/metrics":
		return s.metricsPage
	}
	return nil
}

// refusePage refuses the request of a web page that may not call.
func (s *Server) refusePage(w http.ResponseWriter, r *http.Request, err error) {
	s.meters.refused.Inc()
	s.cfg.Logger.Debug("request refused", "from", r.RemoteAddr, "error", err)
	s.allow(w)
	origin.Refuse(w, r, err)
	wire.TakeRest(w, r)
}

// allow gives the client its time to read the next answer. The deadline ends with the answer:
// net/http clears it.
func (s *Server) allow(w http.ResponseWriter) {
	s.setDate(w) // the call may have taken its time
	// A writer without deadlines, as a test's recorder, does not need them.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.writeTimeout))
}

// bodyCut cuts the reading of a call's body off.
type bodyCut call

func (c *bodyCut) Cut() {
	// A writer without deadlines, as a test's recorder, is not cut off.
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Unix(1, 0))
}

// answerCut cuts the writing of a call's answer off.
type answerCut call

func (c *answerCut) Cut() {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Unix(1, 0)) // see bodyCut
}

// call is one call in progress. It is counted in Server.mu.calls until end. Until release it holds
// memory of Config.MaxBodies and a body of a pool; until end, memory for its answer.
type call struct {
	server   *Server
	w        http.ResponseWriter
	engine   *engine
	exchange *wire.Exchange
	came     time.Time // the time at which the request had been read
	request  *transport.Request
	place    place        // among the calls over HTTP/2
	full     error        // not nil: the call is to be refused, since there are too many
	body     budget.Share // of Config.MaxBodies
	sending  budget.Share // of maxAnswers
	logged   *callLog     // nil: the call is not logged, or was
}

// begin reads the call. If it is not ok, the request has been answered or dropped already.
func (c *call) begin(w http.ResponseWriter, r *http.Request) (ok bool) {
	s := c.server
	exchange, err := wire.Begin(w, r, wire.Checks{
		Keys: s.keys.Load(), Memory: &c.body, Serves: serves, Full: c.full,
		HeadFirst: c.place.isMany,
	})
	if err != nil {
		c.letGo()
		s.meters.refused.Inc()
		s.cfg.Logger.Debug("request refused", "from", r.RemoteAddr, "error", err,
			"request", w.Header().Get("X-Amzn-Requestid"))
		if !errors.Is(err, wire.ErrAnswered) { // to return would answer 200
			panic(http.ErrAbortHandler)
		}
		c.place.refuse()
		wire.TakeRest(w, r)
		return false
	}
	c.came = time.Now()
	if s.logs(r.Context()) {
		c.logged = &callLog{received: len(exchange.Call.Body)}
		exchange.Call.Facts = &c.logged.Facts
	}
	exchange.Call.Sending = &c.sending
	exchange.Call.Origin.Began, exchange.Call.Origin.Pauses = c.request.Began, c.request.Pauses
	engine, now := s.enter()
	if now != ready {
		message := "runnel is starting: try again in a moment"
		if now == closed {
			message = "runnel is shutting down"
		}
		c.answer(exchange, nil, wire.Unavailable(message))
		c.log(exchange)
		exchange.Close()
		c.letGo()
		return false
	}
	c.engine, c.exchange = engine, exchange
	return true
}

// serves reports whether a service has an operation. Those of CloudWatch and STS are not asked for
// without a body.
func serves(service, operation string) bool {
	switch service {
	case wire.Kinesis:
		return kinesis.Serves(operation)
	case wire.DynamoDB:
		return dynamo.Serves(operation)
	}
	return true
}

// end gives back the call's resources; none of them may be used after.
func (c *call) end() {
	c.log(c.exchange)
	c.release()
	c.letGo()
	c.server.leave()
}

// letGo gives back the memory of the body and the answer.
func (c *call) letGo() {
	c.body.Release()
	c.sending.Release()
	if c.body.IsLarge() || c.sending.IsLarge() || c.place.isMany {
		c.server.relief.ended()
	}
}

// release gives back the request's body, which must not be used after. It may be called again.
func (c *call) release() {
	c.exchange.Close()
	c.body.Release()
}

// serve decides on faults for the call, executes it and answers.
func (c *call) serve(ctx context.Context) {
	x := c.exchange
	decision := c.server.cfg.Server.Faults.Draw(x.Call.Service, x.Call.Operation)
	if decision.CommitLate > 0 && decision.Refuse == fault.None {
		c.commitLate(ctx, decision) // which ends the call
	}
	defer c.end()
	if !c.delay(ctx, decision.Delay) {
		panic(http.ErrAbortHandler) // the client has gone; see errGone
	}
	if decision.Refuse == fault.LoseRequest {
		panic(http.ErrAbortHandler)
	}
	if refused := refusal(&x.Call, decision); refused != nil {
		c.server.meters.countFault(&x.Call, refused)
		c.answer(x, nil, refused)
		return
	}
	if decision.LoseAnswer { // even if the client has given up meanwhile
		c.executeUnheard(context.WithoutCancel(ctx), decision)
		panic(http.ErrAbortHandler)
	}
	answer, failure := c.execute(ctx, decision)
	switch {
	case failure == errGone:
		panic(http.ErrAbortHandler)
	case answer.Events != nil:
		c.stream(ctx, answer.Events, decision.CutStream)
	default:
		c.answer(x, answer.Body, failure)
	}
}

// executeUnheard executes the call without answering it.
func (c *call) executeUnheard(ctx context.Context, decision fault.Decision) {
	answer, _ := c.execute(ctx, decision)
	if answer.Events != nil {
		answer.Events.Close()
	}
}

func (c *call) answer(x *wire.Exchange, body []byte, failure *wire.Error) {
	c.server.allow(c.w)
	if failure == nil && !c.sending.Claim(len(body)) {
		if reads(x.Call.Operation) {
			failure = throttling(&x.Call,
				"slow readers of other answers hold all the memory for answers")
		} else {
			c.sending.Take(len(body))
		}
	}
	if failure != nil {
		c.logged.failed(failure)
		x.Fail(failure)
		return
	}
	c.server.meters.of(&x.Call).answered.Add(float64(len(body)))
	x.Answer(body)
}

// reads reports whether an operation changes nothing, so that its answer may be refused afterwards.
// To refuse the answer to a change would say that nothing was changed, and SDKs would make it
// again. Changes that return long items have waited for the memory of their answers.
func reads(operation string) bool {
	for _, verb := range []string{"Get", "List", "Describe", "Query", "Scan"} {
		if strings.HasPrefix(operation, verb) {
			return true
		}
	}
	return false
}

// errGone is the result of a call whose client has gone. It gets no answer: a client that has
// closed its half of the connection alone would take another one for the outcome.
var errGone = &wire.Error{Code: "ClientGone"}

// execute runs the call. It separates the caller's failures from the server's own, which are logged
// here and kept out of the answer.
func (c *call) execute(
	ctx context.Context, decision fault.Decision,
) (answer wire.Answer, failure *wire.Error) {
	in := &c.exchange.Call
	defer func() {
		took := time.Since(c.came)
		c.server.meters.count(in, failure, took)
		c.logged.executed(took, failure)
	}()
	defer func() {
		if thrown := recover(); thrown != nil {
			c.server.cfg.Logger.Error("a call failed", "call", in.Service+"."+in.Operation,
				"request", in.RequestID, "panic", thrown, "stack", string(debug.Stack()))
			answer, failure = wire.Answer{}, wire.InternalFailure(in.Service)
		}
	}()
	if len(decision.Records) > 0 || decision.ExpireIterator {
		ctx = fault.WithDecision(ctx, decision)
	}
	answer, err := c.engine.services[in.Service].Serve(ctx, in)
	if err == nil {
		return answer, nil
	}
	if errors.As(err, &failure) {
		if failure.Status >= http.StatusInternalServerError {
			c.report(ctx, err)
		}
		return wire.Answer{}, failure
	}
	if kinesis.NotStored(err) {
		return wire.Answer{}, throttling(in, err.Error())
	}
	c.report(ctx, err)
	if ctx.Err() != nil {
		return wire.Answer{}, errGone
	}
	return wire.Answer{}, wire.InternalFailure(in.Service)
}

// report logs an internal failure. It skips a client's disconnection, and logs a poisoned log only
// once, since every call fails from then on.
func (c *call) report(ctx context.Context, err error) {
	log, in := c.server.cfg.Logger, &c.exchange.Call
	text := fmt.Sprintf("%s.%s failed", in.Service, in.Operation)
	var poisoned *wal.PoisonedError
	switch {
	case ctx.Err() != nil:
		log.Debug(text, "request", in.RequestID, "error", err)
	case errors.As(err, &poisoned):
		c.server.poisonOnce.Do(func() {
			log.Error(text+", and so will every write from now on", "error", err)
		})
	default:
		log.Error(text, "request", in.RequestID, "error", err)
	}
}
