package main

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// These XML bodies answer requests that name no known operation (kinesalite test/connection.js).
const undetermined = "<AccessDeniedException>\n  <Message>Unable to determine service/operation " +
	"name to be authorized</Message>\n</AccessDeniedException>\n"

const uuid = `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`

// fits checks an answer's status and whole body.
func (c *check) fits(a *answer, status int, body string) {
	c.want(a.status == status && strings.TrimSpace(string(a.body)) == strings.TrimSpace(body),
		show(status)+" "+body, a.String())
}

// isList checks that ListStreams was served.
func (c *check) isList(a *answer) {
	c.want(a.status == http.StatusOK && a.value.has("StreamNames"), "200 with StreamNames",
		a.String())
}

// isUndetermined checks the answer to a request that names no operation.
func (c *check) isUndetermined(a *answer) { c.fits(a, http.StatusForbidden, undetermined) }

func wireFacts() []fact {
	connection := kinesalite("connection")
	plain := below("wire/")
	ask := func() request { return jsonRequest(listStreams, object{}) }
	all := []fact{
		plain("get", "A GET is refused with 403 and an AccessDeniedException in XML.", connection,
			func(c *check) { c.isUndetermined(c.send(request{method: http.MethodGet})) }),
		plain("put", "A PUT is refused with 403 and an AccessDeniedException in XML.", connection,
			func(c *check) {
				c.isUndetermined(c.send(request{method: http.MethodPut}))
			}),
		plain("no-content-type", "A body without Content-Type and X-Amz-Target is refused "+
			"likewise.", connection,
			func(c *check) { c.isUndetermined(c.send(request{body: []byte("{}")})) }),
		plain("unknown-content-type",
			"A content type that is not Kinesis' with a target is 404 UnknownOperationException "+
				"in XML.",
			guess("kinesalite has it in its code, not in its tests"), func(c *check) {
				c.fits(c.send(ask().with("Content-Type", "application/x-amz-json-1.0")), 404,
					"<UnknownOperationException/>")
			}),
		plain("application-json", "A call with application/json is never served: 404, in an "+
			"envelope.",
			guess("kinesalite's tests saw 200 with this envelope in 2014, its code of 2020 has "+
				"404"),
			func(c *check) {
				c.fits(c.send(ask().with("Content-Type", "application/json")), 404,
					`{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},`+
						`"Version":"1.0"}`)
			}),
		plain("application-json-not-json", "A body that is no JSON object, with application/json, "+
			"is 400 SerializationException, in the same envelope.",
			guess("kinesalite's tests saw 200 with this envelope in 2014, its code of 2020 has "+
				"400"),
			func(c *check) {
				r := ask().with("Content-Type", "application/json")
				r.body = []byte("hello")
				c.fits(c.send(r), 400,
					`{"Output":{"__type":"com.amazon.coral.service#SerializationException"},`+
						`"Version":"1.0"}`)
			}),
		plain("no-target", "JSON without a target is 400 UnknownOperationException, with no text.",
			connection, func(c *check) {
				c.fits(c.send(ask().with("X-Amz-Target", "")), 400,
					`{"__type":"UnknownOperationException"}`)
			}),
		plain("unknown-operation", "A target that is no operation is 400 "+
			"UnknownOperationException, with no text.", connection,
			func(c *check) {
				c.fits(c.send(jsonRequest("ListStream", object{})), 400,
					`{"__type":"UnknownOperationException"}`)
			}),
		plain("no-body", "A call without a body is 400 SerializationException, with no text.",
			connection,
			func(c *check) {
				r := ask()
				r.body = nil
				c.fits(c.send(r), 400, `{"__type":"SerializationException"}`)
			}),
		plain("not-json", "A body that is no JSON is 400 SerializationException, with no text.",
			connection, func(c *check) {
				r := ask()
				r.body = []byte("hello")
				c.fits(c.send(r), 400, `{"__type":"SerializationException"}`)
			}),
		plain("charset", "A content type may have parameters.",
			guess("the Go and Java SDKs send none; kinesalite cuts them off"), func(c *check) {
				c.isList(c.send(ask().with("Content-Type", typeJSON+"; charset=utf-8")))
			}),
	}
	return append(all, slices.Concat(wireEmpty(), wireAnswers(), wireOrder())...)
}

// wireEmpty are about requests without a body: AWS answers in CBOR, unless the type is
// application/x-amz-json-1.1.
func wireEmpty() []fact {
	empty := func(id, says, contentType, target, code string) fact {
		return below("wire/no-body-")(id, says, kinesalite("connection"), func(c *check) {
			r := request{}.with("Content-Type", contentType).with("X-Amz-Target", target)
			a := c.send(r)
			want := typeCBOR
			if contentType == typeJSON {
				want = typeJSON
			}
			c.equal("Content-Type", a.header.Get("Content-Type"), want)
			c.isError(a, code, "")
			c.members(a.value, "__type")
		})
	}
	const unknown, unread = "UnknownOperationException", "SerializationException"
	return []fact{
		empty("nothing", "A POST of nothing is 400 UnknownOperationException in CBOR.",
			"", "", unknown),
		empty("json-1-0", "Without a body and a target, a type of DynamoDB gets CBOR.",
			"application/x-amz-json-1.0", "", unknown),
		empty("application-json", "Without a body and a target, application/json gets CBOR.",
			"application/json", "", unknown),
		empty("type", "Without a body and a target, an unknown type gets CBOR.",
			typeJSON+"asdf", "", unknown),
		empty("target", "Without a body and a type, an unknown target gets CBOR.",
			"", "Whatever.Whatever", unknown),
		empty("operation", "Without a body and a type, an unknown operation gets "+
			"UnknownOperationException in CBOR.", "", targetPrefix+"ListStream", unknown),
		empty("known", "Without a body and a type, a known operation gets "+
			"SerializationException in CBOR.", "", targetPrefix+listStreams, unread),
		empty("known-json", "Without a body, a known operation gets SerializationException in "+
			"CBOR, with application/json too.", "application/json", targetPrefix+listStreams,
			unread),
		empty("operation-json", "Without a body, an unknown operation gets "+
			"UnknownOperationException in the JSON that it asks for.", typeJSON,
			targetPrefix+"ListStream", unknown),
	}
}

// wireAnswers are about the headers of every answer.
func wireAnswers() []fact {
	plain := below("wire/")
	return []fact{
		plain("request-id", "Every answer has a UUID in x-amzn-RequestId, of failures too.",
			kinesalite("connection"), func(c *check) {
				for _, a := range []*answer{
					c.call(listStreams, object{}), c.call(describeStream,
						object{"StreamName": c.absent()}),
					c.send(request{method: http.MethodGet}),
				} {
					c.matches("x-amzn-RequestId", a.header.Get("X-Amzn-Requestid"), uuid)
				}
			}),
		plain("id-2", "Every answer has 72 to 80 bytes of base64 in x-amz-id-2.",
			kinesalite("connection"), func(c *check) {
				id := c.call(listStreams, object{}).header.Get("X-Amz-Id-2")
				data, err := base64.StdEncoding.DecodeString(id)
				c.want(err == nil && len(data) >= 72 && len(data) <= 80, "72 to 80 bytes", id)
			}),
		plain("content-type", "An answer in JSON is "+typeJSON+", an empty one too.",
			kinesalite("connection"), func(c *check) {
				c.equal("Content-Type", c.call(listStreams, object{}).header.Get("Content-Type"),
					typeJSON)
				c.equal("of an empty body", c.main().created.header.Get("Content-Type"), typeJSON)
			}),
		plain("content-length", "An answer has a Content-Length.", kinesalite("connection"),
			func(c *check) {
				a := c.call(listStreams, object{})
				c.equal("Content-Length", a.header.Get("Content-Length"), show(len(a.body)))
			}),
		plain("error-type", "An error is 400 with __type and message.", kinesalite("helpers"),
			func(c *check) {
				a := c.call(describeStream, object{"StreamName": c.absent()})
				c.isError(a, "ResourceNotFoundException", c.notFound(c.absent()))
				c.members(a.value, "__type", "message")
			}),
		plain("serialization-text", "The text of a SerializationException is in the "+
			"member Message, not message.",
			kinesalite("helpers"), func(c *check) {
				a := c.call(describeStream, object{"StreamName": 23})
				c.members(a.value, "__type", "Message")
			}),
	}
}

// wireTolerance are about variations of a request: the accepted and the refused ones.
func wireTolerance() []fact {
	plain := below("wire/")
	return []fact{
		plain("unknown-member", "A member that the operation does not have is ignored.",
			reliedOnBy("newer SDKs, which send members of newer models"), func(c *check) {
				c.isList(c.call(listStreams, object{"NoSuchMember": object{"a": 1}}))
			}),
		plain("null-member", "A member that is null counts as absent.",
			guess("the message is: Value null at … must not be null"), func(c *check) {
				c.ok(describeStream, map[string]any{"StreamName": c.main().name, "Limit": nil})
			}),
		plain("path", "The path makes no difference.",
			guess("kinesalite's comment says so of AWS"), func(c *check) {
				r := jsonRequest(listStreams, object{})
				r.path = "/some/where"
				c.isList(c.send(r))
			}),
		plain("too-large", "A body above the service's limit is refused with 413.",
			seenBy("kinesalite test/connection.js, where the test is skipped for its size"),
			func(c *check) {
				r := jsonRequest(listStreams, object{})
				r.body = []byte(`{"x":"` + strings.Repeat("x", 24<<20) + `"}`)
				a := c.send(r)
				c.equal("status", a.status, 413)
			}),
		plain("http2", "HTTP/2 is spoken: by prior knowledge on a plain port, by ALPN on TLS.",
			reliedOnBy("JavaScript SDK v3: NodeHttp2Handler is its default for Kinesis"),
			func(c *check) {
				r := jsonRequest(listStreams, object{})
				r.client = http2Client(c.endpoint.Scheme)
				defer r.client.CloseIdleConnections()
				a, err := c.kit.send(c.ctx, r)
				c.want(err == nil, "HTTP/2", err)
				c.equal("protocol", a.proto, "HTTP/2.0")
				c.equal("status", a.status, 200)
			}),
	}
}

// http2Client uses HTTP/2 only.
func http2Client(scheme string) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Protocols = new(http.Protocols)
	if scheme == "http" {
		transport.Protocols.SetUnencryptedHTTP2(true)
	} else {
		transport.Protocols.SetHTTP2(true)
	}
	return &http.Client{Transport: transport}
}

// wireOrder are about the order of checks: which of several faults the error reports.
func wireOrder() []fact {
	plain := below("wire/order-")
	return []fact{
		plain("target-first", "An unknown target is reported before a missing signature.",
			kinesalite("connection"), func(c *check) {
				r := jsonRequest(listStreams, object{}).with("X-Amz-Target", "")
				r.signer = unsigned
				c.fits(c.send(r), 400, `{"__type":"UnknownOperationException"}`)
			}),
		plain("body-before-signature",
			"A body that is no JSON is reported before a missing signature.",
			kinesalite("connection"), func(c *check) {
				r := jsonRequest(listStreams, object{})
				r.body, r.signer = []byte("hello"), unsigned
				c.fits(c.send(r), 400, `{"__type":"SerializationException"}`)
			}),
		plain("types-before-constraints", "A wrong type is reported before a broken constraint.",
			guess("kinesalite does it in this order"), func(c *check) {
				c.refused(listStreams, object{"Limit": "x", "ExclusiveStartStreamName": ""},
					"SerializationException", "")
			}),
		plain("constraints-before-stream",
			"A broken constraint is reported before an absent stream.",
			guess("kinesalite does it in this order"), func(c *check) {
				c.refused(describeStream, object{"StreamName": c.absent(), "Limit": 0},
					"ValidationException", "")
			}),
		plain("all-constraints", "One error lists all broken constraints.",
			kinesalite("describeStream"), func(c *check) {
				c.refused(describeStream, object{
					"StreamName": "", "Limit": 0, "ExclusiveStartShardId": "",
				}, "ValidationException", "5 validation errors detected: Value '0' at 'limit' "+
					"failed to "+
					"satisfy constraint: Member must have value greater than or equal to 1; "+
					"Value '' at "+
					"'exclusiveStartShardId' failed to satisfy constraint: Member must satisfy "+
					"regular "+
					"expression pattern: [a-zA-Z0-9_.-]+; Value '' at 'exclusiveStartShardId' "+
					"failed to "+
					"satisfy constraint: Member must have length greater than or equal to 1; "+
					"Value '' at "+
					"'streamName' failed to satisfy constraint: Member must satisfy regular "+
					"expression "+
					"pattern: [a-zA-Z0-9_.-]+; Value '' at 'streamName' failed to satisfy "+
					"constraint: "+
					"Member must have length greater than or equal to 1")
			}),
	}
}
