package awscbor_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/runneltest"
)

// A server that does not understand CBOR, whatever it answers, loses no call, and is asked in JSON
// from then on.
func TestServersWithoutCBOR(t *testing.T) {
	page, inJSON := onePage(t)
	wrong := func(records any) answer {
		return answer{status: 200, kind: typeCBOR, body: encode(t, object{
			"MillisBehindLatest": 0, "NextShardIterator": "other", "Records": records,
		})}
	}
	for name, first := range map[string]answer{
		"unsupported type":     {status: 415},
		"serialization error":  {status: 400, kind: typeJSON, body: `{"__type":"SerializationException"}`},
		"the same, in CBOR":    {status: 400, kind: typeCBOR, body: encode(t, object{"__type": "SerializationException"})},
		"another namespace":    {status: 404, kind: typeCBOR, body: encode(t, object{"__type": "com.amazon.coral.service#UnknownOperationException"})},
		"validation error":     {status: 400, kind: typeJSON, body: `{"__type":"ValidationException"}`},
		"denied":               {status: 400, kind: typeJSON, body: `{"__type":"AccessDeniedException"}`},
		"unknown, in XML":      {status: 404, kind: "text/xml", body: "<UnknownOperationException/>"},
		"error page":           {status: 403, kind: "text/html", body: "<html>"},
		"page of a portal":     {status: 200, kind: "text/html", body: "<html>"},
		"no body":              {status: 200, kind: typeJSON},
		"no members":           {status: 200, kind: typeJSON, body: "{}"},
		"half a page, in JSON": {status: 200, kind: typeJSON, body: `{"ChildShards":[{"ShardId":"x"}],`},
		"crash":                {status: 500, kind: "text/html", body: "<html>UnicodeDecodeError"},
		"not implemented":      {status: 501},
		"crash, unreadable":    {status: 500, kind: typeCBOR, body: "\xff"},
		"no CBOR":              {status: 200, kind: typeCBOR, body: "\x1f\x8b\x08"},
		"JSON, called CBOR":    {status: 200, kind: typeCBOR, body: inJSON.body},
		"half a page":          {status: 200, kind: typeCBOR, body: page.body[:len(page.body)/2]},
		"data as text":         wrong([]any{object{"Data": "ZGF0YQ=="}}),
		"a number as text":     wrong([]any{object{"SequenceNumber": 7}}),
		"a text that is none":  wrong([]any{object{"PartitionKey": []byte("k")}}),
		"records as an object": wrong(object{}),
		"more than one item":   {status: 200, kind: typeCBOR, body: page.body + "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, inCBOR: always(first), inJSON: always(inJSON)}
			client := awscbor.New(f.client())
			for _, want := range []string{"cbor json", "json", "json"} {
				out, err := client.GetRecords(t.Context(), input())
				if err != nil || !isOnePage(out) {
					t.Fatalf("%+v, %v", out, err)
				}
				if got := f.took(); got != want {
					t.Errorf("the calls are %s, want %s", got, want)
				}
				if id, ok := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata); id != "id-1" || !ok {
					t.Errorf("the request is %q", id)
				}
			}
		})
	}
}

// Only a page proves that a server speaks JSON alone. After a refusal in both encodings the next
// call tries CBOR again.
func TestRefusedInBoth(t *testing.T) {
	page, _ := onePage(t)
	denied := answer{status: 400, kind: typeJSON, body: `{"__type":"AccessDeniedException","message":"no"}`}
	f := &fake{t: t, inCBOR: func(call int) answer {
		if call == 1 {
			return denied
		}
		return page
	}, inJSON: always(denied)}
	client := awscbor.New(f.client())
	_, err := client.GetRecords(t.Context(), input())
	var typed *types.AccessDeniedException
	if !errors.As(err, &typed) || *typed.Message != "no" || f.took() != "cbor json" {
		t.Errorf("%v", err)
	}
	f.calls = []string{"one"}
	if out, err := client.GetRecords(t.Context(), input()); err != nil || !isOnePage(out) ||
		f.took() != "one cbor" {
		t.Errorf("%v", err)
	}
}

// Answers that any server may give are the call's answer, and no reason to ask in JSON: neither
// before the first answer in CBOR nor after it.
func TestOrdinaryFailures(t *testing.T) {
	page, inJSON := onePage(t)
	error400 := func(code string) answer {
		return answer{status: 400, kind: typeJSON, body: `{"__type":"` + code + `"}`}
	}
	for name, c := range map[string]struct {
		failure answer
		later   bool // only if an answer in CBOR came before
	}{
		"throttle, in JSON":     {failure: error400("ProvisionedThroughputExceededException")},
		"throttle, by KMS":      {failure: error400("KMSThrottlingException")},
		"expired, in JSON":      {failure: error400("ExpiredIteratorException")},
		"missing, in JSON":      {failure: error400("ResourceNotFoundException")},
		"old token":             {failure: error400("ExpiredTokenException")},
		"throttle of a gateway": {failure: answer{status: 429, kind: "text/html", body: "<html>"}},
		"time-out":              {failure: answer{status: 408}},
		"redirect":              {failure: answer{status: 307}},
		"bad gateway":           {failure: answer{status: 502, kind: "text/html", body: "<html>"}},
		"overload":              {failure: answer{status: 503, kind: "text/html", body: "<html>"}},
		"connection lost":       {failure: answer{}},
		"body lost":             {failure: answer{status: 200, kind: typeCBOR, body: page.body[:9], length: 99}},
		"too large":             {failure: answer{status: 200, kind: typeCBOR, length: 64<<20 + 1}},
		"denied, in CBOR": {failure: answer{
			status: 400, kind: typeCBOR, body: encode(t, object{"__type": "AccessDeniedException"}),
		}},
		"error, in CBOR": {failure: answer{
			status: 400, kind: typeCBOR, body: encode(t, object{"__type": "InvalidArgumentException"}),
		}},
		"internal failure": {failure: answer{
			status: 500, kind: typeCBOR, body: encode(t, object{"__type": "InternalFailure"}),
		}},
		"crash":       {later: true, failure: answer{status: 500, kind: "text/html", body: "<html>"}},
		"half a page": {later: true, failure: answer{status: 200, kind: typeCBOR, body: page.body[:30], length: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{t: t, inCBOR: always(page), inJSON: always(inJSON)}
			client := awscbor.New(f.client())
			for _, known := range []bool{false, true} {
				if known {
					f.inCBOR = always(page)
					if _, err := client.GetRecords(t.Context(), input()); err != nil {
						t.Fatal(err)
					}
				} else if c.later {
					continue
				}
				f.calls, f.inCBOR = nil, always(c.failure)
				if _, err := client.GetRecords(t.Context(), input()); err == nil || f.took() != "cbor" {
					t.Errorf("known is %v: %v", known, err)
				}
			}
		})
	}
}

// A server may answer a call in CBOR with JSON. It is asked in CBOR again.
func TestAnswersInJSON(t *testing.T) {
	_, inJSON := onePage(t)
	f := &fake{t: t, inCBOR: always(inJSON)}
	client := awscbor.New(f.client())
	for range 2 {
		if out, err := client.GetRecords(t.Context(), input()); err != nil || !isOnePage(out) {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if got := f.took(); got != "cbor cbor" {
		t.Error(got)
	}
}

// A server that loses CBOR, as after a change of the endpoint, is asked in JSON.
func TestServerChanges(t *testing.T) {
	page, inJSON := onePage(t)
	f := &fake{t: t, inCBOR: always(page), inJSON: always(inJSON)}
	client := awscbor.New(f.client())
	for range 2 {
		if out, err := client.GetRecords(t.Context(), input()); err != nil || !isOnePage(out) {
			t.Fatalf("%+v, %v", out, err)
		}
		f.inCBOR = always(answer{status: 415})
	}
	if got := f.took(); got != "cbor cbor json" {
		t.Error(got)
	}
}

// summary is all that callers and the SDK see of an error.
func summary(err error) string {
	var api smithy.APIError
	var response *awshttp.ResponseError
	var operation *smithy.OperationError
	if !errors.As(err, &api) || !errors.As(err, &response) || !errors.As(err, &operation) {
		return err.Error()
	}
	retryable := retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err)
	throttle := retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err)
	return strings.Join([]string{
		reflect.TypeOf(api).String(), api.ErrorCode(), api.ErrorMessage(), api.ErrorFault().String(),
		operation.Operation(), response.ServiceRequestID(), http.StatusText(response.HTTPStatusCode()),
		retryable.String(), throttle.String(), err.Error(),
	}, "|")
}

// Every error in CBOR is the error that the SDK makes of the same one in JSON: of the same type,
// with its message, request and status, and retried alike.
func TestErrors(t *testing.T) {
	codes := []string{
		"ThrottlingException", "SerializationException", "InternalFailure", "ServiceUnavailable",
		"com.amazonaws.kinesis#ExpiredIteratorException", "Unheard", "",
	}
	for name := range kinesis.TypeRegistry.Entries {
		_, code, _ := strings.Cut(name, "#")
		codes = append(codes, code)
	}
	if len(codes) < 20 {
		t.Errorf("only %d codes", len(codes))
	}
	page, _ := onePage(t)
	for _, code := range codes {
		for _, body := range []object{
			{"__type": code, "message": "so"}, {"__type": code}, {"__type": code, "Message": "so", "other": []int{1}}, {},
		} {
			inJSON, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			status := 400
			if code == "InternalFailure" {
				status = 500
			}
			f := &fake{t: t, inCBOR: always(page), inJSON: always(answer{status: status, kind: typeJSON, body: string(inJSON)})}
			sdk := f.client()
			_, want := sdk.GetRecords(t.Context(), input())
			client := awscbor.New(sdk)
			if _, err := client.GetRecords(t.Context(), input()); err != nil {
				t.Fatal(err)
			}
			f.inCBOR = always(answer{status: status, kind: typeCBOR, body: encode(t, body)})
			_, got := client.GetRecords(t.Context(), input())
			if summary(got) != summary(want) {
				t.Errorf("%v:\n%s\n%s", body, summary(got), summary(want))
			}
		}
	}
	header := http.Header{"X-Amzn-Errortype": []string{"ExpiredIteratorException:http://internal/"}}
	f := &fake{t: t, inCBOR: always(answer{status: 400, kind: typeCBOR, body: "\xa0", header: header})}
	_, err := awscbor.New(f.client()).GetRecords(t.Context(), input())
	var expired *types.ExpiredIteratorException
	if !errors.As(err, &expired) {
		t.Errorf("the header's code is lost: %v", err)
	}
}

// The SDK retries throttles and faults as before, and counts them in the metadata. A change to JSON
// is no attempt of its own.
func TestRetries(t *testing.T) {
	page, inJSON := onePage(t)
	throttled := answer{status: 400, kind: typeCBOR, body: encode(t, object{
		"__type": "ProvisionedThroughputExceededException",
	})}
	retries := func(o *kinesis.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = 4
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	}
	for name, c := range map[string]struct {
		inCBOR, inJSON []answer
		calls          string
		attempts       int
	}{
		"throttles": {[]answer{throttled, throttled, page}, nil, "cbor cbor cbor", 3},
		"overload":  {[]answer{{status: 503}, page}, nil, "cbor cbor", 2},
		"lost":      {[]answer{{}, page}, nil, "cbor cbor", 2},
		"change":    {[]answer{{status: 415}}, []answer{inJSON}, "cbor json", 1},
		"throttle after the change": {
			[]answer{{status: 415}, {status: 415}}, []answer{{status: 503}, inJSON}, "cbor json cbor json", 2,
		},
		"throttle before the change": {
			[]answer{throttled, {status: 415}}, []answer{inJSON}, "cbor cbor json", 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := func(answers []answer) func(int) answer {
				return func(int) answer {
					first := answers[0]
					answers = answers[1:]
					return first
				}
			}
			f := &fake{t: t, inCBOR: next(c.inCBOR), inJSON: next(c.inJSON)}
			out, err := awscbor.New(f.client(retries)).GetRecords(t.Context(), input())
			if err != nil || !isOnePage(out) || f.took() != c.calls {
				t.Fatalf("%v", err)
			}
			attempts, ok := retry.GetAttemptResults(out.ResultMetadata)
			if !ok || len(attempts.Results) != c.attempts {
				t.Errorf("%d attempts, want %d", len(attempts.Results), c.attempts)
			}
		})
	}
	f := &fake{t: t, inCBOR: always(throttled)}
	_, err := awscbor.New(f.client(retries)).GetRecords(t.Context(), input())
	var over *retry.MaxAttemptsError
	if !errors.As(err, &over) || f.took() != "cbor cbor cbor cbor" {
		t.Errorf("%v", err)
	}
}

// A user's middleware sees the call, and a server that checks signatures accepts it in both
// encodings.
func TestMiddlewareAndSignatures(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithStream("s", 1), runneltest.WithCredentials("key", "secret"))
	for _, refuses := range []bool{false, true} {
		gate := &gate{refuses: refuses}
		seen := 0
		sdk := kinesis.NewFromConfig(server.AWSConfig(), func(o *kinesis.Options) {
			gate.HTTPClient = o.HTTPClient
			o.HTTPClient = gate
			o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
				return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("user", func(
					ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
				) (middleware.FinalizeOutput, middleware.Metadata, error) {
					seen++
					return next.HandleFinalize(ctx, in)
				}), middleware.Before)
			})
		})
		client := awscbor.New(sdk)
		in := begin(t, client)
		if _, err := client.GetRecords(t.Context(), in); err != nil {
			t.Error(err)
		}
		if want := map[bool]string{false: typeCBOR, true: typeCBOR + " " + typeJSON}[refuses]; strings.Join(gate.types, " ") != want || seen != 2 {
			t.Errorf("the types are %v; the middleware saw %d calls", gate.types, seen)
		}
	}
}

// begin makes an iterator.
func begin(t testing.TB, api *awscbor.Client) *kinesis.GetRecordsInput {
	t.Helper()
	out, err := api.GetShardIterator(context.Background(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &kinesis.GetRecordsInput{ShardIterator: out.ShardIterator}
}

// gate refuses CBOR, and notes the types of GetRecords calls.
type gate struct {
	kinesis.HTTPClient
	refuses bool
	types   []string
}

// Do implements kinesis.HTTPClient.
func (g *gate) Do(r *http.Request) (*http.Response, error) {
	kind := r.Header.Get("Content-Type")
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetRecords") {
		g.types = append(g.types, kind)
	}
	if g.refuses && kind == typeCBOR {
		return &http.Response{StatusCode: http.StatusUnsupportedMediaType, Body: http.NoBody, Request: r}, nil
	}
	return g.HTTPClient.Do(r)
}

// The settings of the SDKs for Java turn CBOR off.
func TestDisabled(t *testing.T) {
	page, inJSON := onePage(t)
	for _, c := range []struct{ name, value, calls string }{
		{"AWS_CBOR_DISABLE", "true", "json"},
		{"AWS_CBOR_DISABLE", "1", "json"},
		{"AWS_CBOR_DISABLE", "TRUE", "json"},
		{"AWS_CBOR_DISABLE", "false", "cbor"},
		{"AWS_CBOR_DISABLE", "0", "cbor"},
		{"AWS_CBOR_DISABLE", "", "cbor"},
		{"CBOR_ENABLED", "false", "json"},
		{"CBOR_ENABLED", "False", "json"},
		{"CBOR_ENABLED", "0", "json"},
		{"CBOR_ENABLED", "true", "cbor"},
		{"CBOR_ENABLED", "", "cbor"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			f := &fake{t: t, inCBOR: always(page), inJSON: always(inJSON)}
			_, err := awscbor.New(f.client()).GetRecords(t.Context(), input())
			if got := f.took(); err != nil || got != c.calls {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// A client with another protocol, or without the SDK's steps, works as it is.
func TestOtherStacks(t *testing.T) {
	page, inJSON := onePage(t)
	for name, option := range map[string]func(*kinesis.Options){
		"protocol": func(o *kinesis.Options) { o.Protocol = other{o.Protocol} },
		"steps": func(o *kinesis.Options) {
			o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
				step, ok := stack.Finalize.Get("ResolveAuthScheme")
				if !ok {
					t.Error("the SDK's step has another name")
				}
				_, err := stack.Finalize.Swap("ResolveAuthScheme", middleware.FinalizeMiddlewareFunc("mine", step.HandleFinalize))
				return err
			})
		},
	} {
		f := &fake{t: t, inCBOR: always(page), inJSON: always(inJSON)}
		out, err := awscbor.New(f.client(option)).GetRecords(t.Context(), input())
		if err != nil || !isOnePage(out) || f.took() != "json" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// other is a protocol with another name.
type other struct{ smithyhttp.ClientProtocol }

// ID implements smithyhttp.ClientProtocol.
func (other) ID() smithy.ShapeID { return smithy.ShapeID{Namespace: "aws.protocols", Name: "other"} }
