package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/runnel-stream/runnel/internal/budget"
)

// MaxBody is the longest request body, in bytes: the 10 MiB of a PutRecords call in base64,
// with room for the JSON around it. A longer one is answered with 413.
const MaxBody = 15 << 20

// ErrAnswered is wrapped by Begin's error if the caller already has the answer.
var ErrAnswered = errors.New("request refused")

// Exchange is a call with its answer. It belongs to one goroutine.
type Exchange struct {
	Call Call

	w           http.ResponseWriter
	contentType string  // of the answer
	rpc, form   bool    // the protocol is rpcv2Cbor; a form of the query protocol
	body        *[]byte // to be returned to the pool
	memory      *budget.Share
	full        error                                // see Checks.Full
	headFirst   bool                                 // see Checks.HeadFirst
	status      int                                  // of the answer; 0: there is none
	sent        int                                  // bytes of the answer's body
	serves      func(service, operation string) bool // see Checks
}

// Checks configures Begin.
type Checks struct {
	// Keys check the requests' signatures. They need a clock: see Credentials.At. Default nil:
	// signatures are not checked.
	Keys *Credentials
	// Memory is for the bodies. Default nil: without a bound.
	Memory *budget.Share
	// Full, which wraps budget.ErrFull, refuses the call before its body is read. Default nil.
	Full error
	// HeadFirst makes the checks that need no body before a body of any length is read. Default
	// false: before one of more than budget.Free bytes gets memory.
	HeadFirst bool
	// Serves reports whether an operation exists. Begin asks it about requests without a body
	// alone; for others the service answers. Default nil: each operation exists.
	Serves func(service, operation string) bool
}

// Begin reads a call from the transport and checks it in AWS's order: size, method, empty body,
// content type, target, authorization, and last the content encoding. A body of more than
// budget.Free bytes gets memory only if the head passes the checks that need no body. Begin answers
// a request that fails a check at once, as it does a browser's preflight; the error, for the log,
// wraps ErrAnswered. Any other error means that the client broke off. The caller ends every
// exchange with Close.
//
// (AWS checks before the signature whether the document can be parsed and the operation exists.
// Here a caller without a key learns neither, but for a request without a body.)
func Begin(w http.ResponseWriter, r *http.Request, checks Checks) (*Exchange, error) {
	if r.ContentLength > MaxBody {
		return nil, tooLarge(w, r)
	}
	auth := checks.Keys
	x := &Exchange{
		w: w, memory: checks.Memory, full: checks.Full, serves: checks.Serves,
		headFirst: checks.HeadFirst && r.ContentLength != 0,
	}
	defer x.memory.Settle()
	target := r.Header.Get("X-Amz-Target")
	var known bool
	x.Call.Service, x.Call.Operation, known = ParseTarget(target)
	x.rpc, x.form = isRPC(r), target == "" && isForm(r)
	dynamo := strings.HasPrefix(target, "DynamoDB")
	x.Call.RequestID = requestID(dynamo)
	setIDs(w.Header(), x.Call.RequestID, !x.rpc && !x.form && !dynamo &&
		x.Call.Service != CloudWatch)
	if allowOrigin(w.Header(), r) {
		w.WriteHeader(http.StatusOK)
		return nil, fmt.Errorf("%w: it was a browser's preflight", ErrAnswered)
	}
	if r.Method != http.MethodPost {
		return nil, x.refuseXML(r, auth, http.StatusForbidden)
	}
	if err := x.begin(r, auth, known); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

func (x *Exchange) begin(r *http.Request, auth *Credentials, known bool) error {
	if err := x.take(r, auth, known); err != nil {
		return err
	}
	if err := x.check(r, auth, known, len(x.Call.Body) == 0); err != nil {
		return err
	}
	done := TakeTurn(len(x.Call.Body))
	err := x.authorize(r, auth)
	done()
	if err != nil {
		return err
	}
	if err := x.unpack(r); err != nil {
		return err
	}
	if err := x.checkLength(r, int64(len(x.Call.Body))); err != nil || !x.form {
		return err
	}
	return x.readForm(r, auth)
}

// maxMetrics is the longest body of a call of CloudWatch or STS, packed or not (AWS,
// "PutMetricData": 1 MB). Their documents become trees of many times their length.
const maxMetrics = 1 << 20

// checkLength refuses a body that is too long for its service.
func (x *Exchange) checkLength(r *http.Request, length int64) error {
	if service := x.Call.Service; length > maxMetrics && (service == CloudWatch || service == STS) {
		return tooLarge(x.w, r)
	}
	return nil
}

// check reads the headers. If they are not those of a call, it answers the request.
func (x *Exchange) check(r *http.Request, auth *Credentials, known, empty bool) error {
	switch {
	case x.rpc:
		return x.checkRPC(r, empty)
	case x.form:
		return x.checkForm(r, auth, empty)
	}
	service := x.Call.Service
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	contentType = strings.ToLower(strings.TrimSpace(contentType))
	ok := x.speak(contentType, empty)
	switch {
	case empty && known && (x.serves == nil || x.serves(service, x.Call.Operation)):
		return x.refuse(Serialization(service, ""))
	case empty:
		return x.refuse(UnknownOperation(service))
	case contentType == plainJSON && service != DynamoDB:
		return x.refusePlain()
	case !ok:
		return x.refuseXML(r, auth, http.StatusNotFound)
	case !known:
		if contentType == json10 {
			service = DynamoDB
		}
		return x.refuse(UnknownOperation(service))
	}
	return nil
}

// authorize checks the signature, unless there are no keys, and finds the caller's world.
func (x *Exchange) authorize(r *http.Request, auth *Credentials) error {
	var err error
	switch {
	case auth != nil:
		credential, expires, refused := auth.verify(r, x.Call.Service, x.Call.Body)
		if refused != nil {
			return x.refuseSigned(r, refused)
		}
		x.Call.Origin.Expires = expires
		x.Call.World, err = worldOf(credential, algorithmV4)
	case strings.Contains(r.URL.RawQuery, "X-Amz-Credential="):
		query := r.URL.Query()
		x.Call.World, err = worldOf(query.Get("X-Amz-Credential"), query.Get("X-Amz-Algorithm"))
	default:
		x.Call.World, err = ParseWorld(r.Header.Get("Authorization"))
	}
	var wire *Error
	if errors.As(err, &wire) {
		wire.Code = coral(x.Call.Service, wire.Code)
		return x.refuse(wire)
	}
	return err
}

// refuseSigned refuses a request for its signature.
func (x *Exchange) refuseSigned(r *http.Request, refused *Error) error {
	refused.Code = coral(x.Call.Service, refused.Code)
	err := x.refuse(refused)
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") {
		// Some refusals quote the header. A header of another scheme may hold a secret: send it to
		// its sender, but do not log it.
		err = fmt.Errorf("%w: %s", ErrAnswered, refused.Code)
	}
	return err
}

// Sent returns the status of the answer, and the bytes of its body; 0 if there is none. The events
// of an event stream do not count.
func (x *Exchange) Sent() (status, bytes int) { return x.status, x.sent }

// Close ends the exchange: Call.Body and the memory from Call.Room are no longer valid.
func (x *Exchange) Close() {
	if x.body != nil {
		giveBack(x.body)
		x.body, x.Call.Body = nil, nil
	}
	if x.Call.room != nil {
		giveBack(x.Call.room)
		x.Call.room = nil
	}
}
