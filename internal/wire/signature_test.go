package wire

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"pgregory.net/rapid"
)

// vectorKey is the key of AWS' published test suite.
var vectorKey = Key{
	AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
}

var temporaryKey = Key{AccessKeyID: "111122223333", SecretAccessKey: "s3cr3t", SessionToken: "tok/en=="}

// keysAt are credentials with a fixed clock.
func keysAt(t interface{ Fatal(...any) }, now time.Time) *Credentials {
	c, err := NewCredentials(vectorKey, temporaryKey)
	if err != nil {
		t.Fatal(err)
	}
	c.now = func() time.Time { return now }
	return c
}

// TestPublishedVectors are requests and signatures of AWS' Signature V4 test suite.
func TestPublishedVectors(t *testing.T) {
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	for _, c := range []struct{ name, line, headers, body, signed, signature string }{
		{
			"get-vanilla", "GET /", "", "", "host;x-amz-date",
			"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		{
			"get-relative-relative", "GET /example1/example2/../..", "", "", "host;x-amz-date",
			"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		{
			"get-slashes", "GET //", "", "", "host;x-amz-date",
			"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		{
			"get-slash-dot-slash", "GET /./", "", "", "host;x-amz-date",
			"5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		},
		{
			"get-unreserved",
			"GET /-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
			"", "", "host;x-amz-date",
			"07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
		},
		{
			"get-vanilla-query-order-key-case", "GET /?Param2=value2&Param1=value1", "", "",
			"host;x-amz-date",
			"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
		},
		{
			"get-header-value-trim", "GET /", "My-Header1: value1\r\nMy-Header2: \"a   b   c\"\r\n", "",
			"host;my-header1;my-header2;x-amz-date",
			"acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
		},
		{
			"post-vanilla", "POST /", "", "", "host;x-amz-date",
			"5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
		},
		{
			"post-x-www-form-urlencoded", "POST /", form, "Param1=value1",
			"content-type;host;x-amz-date",
			"ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
		},
	} {
		text := c.line + " HTTP/1.1\r\nHost: example.amazonaws.com\r\n" + c.headers +
			"X-Amz-Date: 20150830T123600Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=" +
			"AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + c.signed +
			", Signature=" + c.signature + "\r\n\r\n"
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		keys := keysAt(t, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
		if _, _, refused := keys.verify(r, "service", []byte(c.body)); refused != nil {
			t.Errorf("%s: %v", c.name, refused)
		}
	}
}

// request is a signed request, with the signed parts.
type request struct {
	*http.Request
	body    []byte
	service string
}

func (r request) verify(keys *Credentials) *Error {
	_, _, refused := keys.verify(r.Request, r.service, r.body)
	return refused
}

var noon = time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)

// clientRequest is a request as an SDK makes it, before it is signed.
func clientRequest(service, path, query string, body []byte) request {
	r, err := http.NewRequest(http.MethodPost, "http://localhost:4567/", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.URL.Path, r.URL.RawQuery = path, query
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Kinesis_20131202.PutRecord")
	r.Header.Set("Amz-Sdk-Request", "attempt=1; max=3")
	return request{r, body, service}
}

// onTheWire is the request as a server reads it.
func (r request) onTheWire() request {
	var wire bytes.Buffer
	r.Body = io.NopCloser(bytes.NewReader(r.body))
	if err := r.Write(&wire); err != nil {
		panic(err)
	}
	read, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		panic(err)
	}
	return request{read, r.body, r.service}
}

func (r request) hash() string {
	sum := sha256.Sum256(r.body)
	return hex.EncodeToString(sum[:])
}

func (k Key) forSDK() aws.Credentials {
	return aws.Credentials{
		AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey,
		SessionToken: k.SessionToken,
	}
}

// signed has the SDK sign the request in its header, at noon.
func (r request) signed(t interface{ Fatal(...any) }, key Key) request {
	err := v4.NewSigner().SignHTTP(r.Context(), key.forSDK(), r.Request, r.hash(), r.service,
		"eu-west-1", noon)
	if err != nil {
		t.Fatal(err)
	}
	return r.onTheWire()
}

// presigned has the SDK sign the request in its query string, at noon.
func (r request) presigned(t interface{ Fatal(...any) }, key Key) request {
	uri, headers, err := v4.NewSigner().PresignHTTP(r.Context(), key.forSDK(), r.Request, r.hash(),
		r.service, "eu-west-1", noon)
	if err != nil {
		t.Fatal(err)
	}
	if r.URL, err = url.Parse(uri); err != nil {
		t.Fatal(err)
	}
	for name, values := range headers {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	// The signer moves these into the query string.
	r.Header.Del("X-Amz-Target")
	return r.onTheWire()
}

// tamper are changes on the way, each of which must be noticed.
var tamper = map[string]func(*request){
	"body": func(r *request) {
		r.body = append(slices.Clone(r.body), ' ')
	},
	"method": func(r *request) { r.Method = http.MethodPut },
	"host":   func(r *request) { r.Host = "localhost:4568" },
	"path":   func(r *request) { r.URL.Path += "x"; r.URL.RawPath = "" },
	"query":  func(r *request) { r.URL.RawQuery += "&a=b" },
	"type":   func(r *request) { r.Header.Set("Content-Type", "application/x-amz-cbor-1.1") },
	"another header": func(r *request) {
		r.Header.Set("X-Amz-Later", "1")
	},
	"a header": func(r *request) {
		r.Header["Amz-Sdk-Request"] = []string{"attempt=1; max=4"}
	},
	"a header twice": func(r *request) {
		r.Header["Amz-Sdk-Request"] = []string{"attempt=1; max=3", ""}
	},
	"operation": func(r *request) {
		if r.Header.Get("X-Amz-Target") == "" {
			r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "PutRecord", "DeleteStream", 1)
			return
		}
		r.Header.Set("X-Amz-Target", "Kinesis_20131202.DeleteStream")
	},
	"operation again": func(r *request) {
		r.Header["X-Amz-Target"] = append([]string{"Kinesis_20131202.DeleteStream"},
			r.Header["X-Amz-Target"]...)
	},
	"date": func(r *request) { r.replace("20260203T120000Z", "20260203T120001Z") },
	"region": func(r *request) {
		r.replace("/eu-west-1/", "/eu-west-2/")
		r.replace("%2Feu-west-1%2F", "%2Feu-west-2%2F")
	},
	"key": func(r *request) { r.replace(temporaryKey.AccessKeyID, vectorKey.AccessKeyID) },
	"signature": func(r *request) {
		authorization := r.Header.Get("Authorization") + r.URL.RawQuery
		_, signature, _ := strings.Cut(authorization, "Signature=")
		last := strings.Split(signature, "&")[0]
		flipped := []byte(last)
		flipped[17] ^= 1
		r.replace(last, string(flipped))
	},
	"the signed headers' order": func(r *request) {
		r.replace("content-type;host", "host;content-type")
		r.replace("content-type%3Bhost", "host%3Bcontent-type")
		r.replace("content-length;content-type", "content-type;content-length")
		r.replace("content-length%3Bcontent-type", "content-type%3Bcontent-length")
	},
	"token": func(r *request) { r.replace("tok", "tik") },
}

func (r *request) replace(was, is string) {
	for _, values := range r.Header {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], was, is)
		}
	}
	r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, was, is)
}

func (r *request) text() string {
	return fmt.Sprintf("%s %s %s %v %q", r.Method, r.URL, r.Host, r.Header, r.body)
}

// TestSignedBySDK signs random requests with AWS' SDK, in the header and in the query string,
// and then changes one thing.
func TestSignedBySDK(t *testing.T) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range tamper {
			if !yield(name) {
				return
			}
		}
	})
	keys := keysAt(t, noon)
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.StringMatching(`[a-zA-Z0-9 _~+%é@:,;=&-]{1,6}`)
		path := "/" + strings.Join(rapid.SliceOfN(segment, 0, 3).Draw(t, "path"), "/")
		query := url.Values{}
		for range rapid.IntRange(0, 3).Draw(t, "parameters") {
			query.Add(segment.Draw(t, "name"), segment.Draw(t, "value"))
		}
		body := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "body")
		service := rapid.SampledFrom([]string{Kinesis, DynamoDB}).Draw(t, "service")
		unsigned := func() request {
			r := clientRequest(service, path, query.Encode(), body)
			for _, value := range rapid.SliceOfN(rapid.StringMatching(`[!-~]+( +[!-~]+){0,3}`),
				0, 3).Draw(t, "header") {
				r.Header.Add("Custom", value)
			}
			return r
		}
		key := rapid.SampledFrom([]Key{vectorKey, temporaryKey}).Draw(t, "key")
		sign := request.signed
		if rapid.Bool().Draw(t, "presigned") {
			sign = request.presigned
		}
		r := sign(unsigned(), t, key)
		if refused := r.verify(keys); refused != nil {
			t.Fatalf("%s: %v", r.text(), refused)
		}
		before := r.text()
		what := rapid.SampledFrom(names).Draw(t, "tamper")
		tamper[what](&r)
		if before == r.text() {
			t.Skip("nothing to change")
		}
		if refused := r.verify(keys); refused == nil {
			t.Fatalf("%s was changed from\n%s to\n%s", what, before, r.text())
		}
	})
}

func TestRefusedSignatures(t *testing.T) {
	const (
		invalidToken = "The security token included in the request is invalid"
		noMatch      = "The request signature we calculated does not match the signature you provided"
	)
	wrong := Key{AccessKeyID: vectorKey.AccessKeyID, SecretAccessKey: "wrong"}
	unknown := Key{AccessKeyID: "nobody", SecretAccessKey: vectorKey.SecretAccessKey}
	without := temporaryKey
	without.SessionToken = ""
	with := vectorKey
	with.SessionToken = "token"
	other := temporaryKey
	other.SessionToken = "other"
	set := func(name, value string) func(*request) {
		return func(r *request) { r.Header.Set(name, value) }
	}
	replace := func(was, is string) func(*request) {
		return func(r *request) { r.replace(was, is) }
	}
	later := func(d time.Duration) func(*request) {
		return func(r *request) { r.Pattern = d.String() } // the clock's offset, see below
	}
	const incomplete, invalid = "IncompleteSignatureException", "InvalidSignatureException"
	for _, c := range []struct {
		name      string
		key       Key
		service   string
		change    func(*request)
		code, has string
	}{
		{"nothing wrong", vectorKey, Kinesis, nil, "", ""},
		{"nothing wrong, with a token", temporaryKey, Kinesis, nil, "", ""},
		{"wrong secret", wrong, Kinesis, nil, invalid, noMatch},
		{"unknown key", unknown, Kinesis, nil, "UnrecognizedClientException", invalidToken + "."},
		{"no token", without, Kinesis, nil, "UnrecognizedClientException", invalidToken + "."},
		{"a token too many", with, Kinesis, nil, "UnrecognizedClientException", invalidToken},
		{"another token", other, Kinesis, nil, "UnrecognizedClientException", invalidToken},
		{
			"none", vectorKey, Kinesis, func(r *request) { r.Header.Del("Authorization") },
			"MissingAuthenticationTokenException", "Missing Authentication Token",
		},
		{
			"none at DynamoDB", vectorKey, DynamoDB, func(r *request) { r.Header.Del("Authorization") },
			"MissingAuthenticationTokenException", "Request is missing Authentication Token",
		},
		{
			"another scheme at DynamoDB", vectorKey, DynamoDB, set("Authorization", "Bearer x"),
			"MissingAuthenticationTokenException", "Request is missing Authentication Token",
		},
		{
			"another scheme", vectorKey, Kinesis, set("Authorization", "X"), incomplete,
			"Authorization header requires 'Credential' parameter. Authorization header requires " +
				"'Signature' parameter. Authorization header requires 'SignedHeaders' parameter. " +
				"Authorization=X",
		},
		{
			"spaces for commas", vectorKey, Kinesis,
			set("Authorization", "AWS4- Signature=b Credential=a"), incomplete,
			"Authorization header requires 'SignedHeaders' parameter. Authorization=AWS4- " +
				"Signature=b Credential=a",
		},
		{
			"no date", vectorKey, Kinesis, func(r *request) { r.Header.Del("X-Amz-Date") }, incomplete,
			"requires existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4",
		},
		{
			"no equal-sign", vectorKey, Kinesis, set("Authorization", "AWS4-HMAC-SHA256 Credential"),
			incomplete, "'Credential' not a valid key=value pair (missing equal-sign) in " +
				"Authorization header: 'AWS4-HMAC-SHA256 Credential'.",
		},
		{
			"two credentials", vectorKey, Kinesis, replace("Credential=", "Credential=a,Credential="),
			incomplete, "more than one 'Credential'",
		},
		{
			"two headers", vectorKey, Kinesis, func(r *request) {
				r.Header.Add("Authorization", r.Header.Get("Authorization"))
			},
			incomplete, "'AWS4-HMAC-SHA256' not a valid key=value pair",
		},
		{
			"header and query", vectorKey, Kinesis, func(r *request) { r.URL.RawQuery = "X-Amz-Algorithm" },
			invalid, "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
		},
		{
			"another algorithm", vectorKey, Kinesis, replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
			incomplete, "Unsupported AWS 'algorithm': 'AWS4-ECDSA-P256-SHA256' (only AWS4-HMAC-SHA256 for now). ",
		},
		{
			"no date at all", vectorKey, Kinesis, set("X-Amz-Date", "201"), incomplete,
			"Date must be in ISO-8601 'basic format'. Got '201'. See http://en.wikipedia.org/wiki/ISO_8601",
		},
		{
			"expired", vectorKey, Kinesis, later(5*time.Minute + time.Second), invalid,
			"Signature expired: 20260203T120000Z is now earlier than 20260203T120001Z " +
				"(20260203T120501Z - 5 min.)",
		},
		{
			"too early", vectorKey, Kinesis, later(-5*time.Minute - time.Second), invalid,
			"Signature not yet current: 20260203T120000Z is still later than 20260203T115959Z " +
				"(20260203T115459Z + 5 min.)",
		},
		{"almost expired", vectorKey, Kinesis, later(5 * time.Minute), "", ""},
		{"almost too early", vectorKey, Kinesis, later(-5 * time.Minute), "", ""},
		{"DynamoDB waits longer", vectorKey, DynamoDB, later(15 * time.Minute), "", ""},
		{
			"but not for ever", vectorKey, DynamoDB, later(15*time.Minute + time.Second), invalid,
			"(20260203T121501Z - 15 min.)",
		},
		{
			"host not signed", vectorKey, Kinesis, replace(";host;", ";"), invalid,
			"'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.",
		},
		{
			"operation not signed", vectorKey, Kinesis, replace(";x-amz-target", ""), invalid,
			"There were headers present in the request which were not signed: x-amz-target",
		},
		{
			"short credential", vectorKey, Kinesis, replace("/kinesis/", "/"), incomplete,
			"Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, " +
				"got 'AKIDEXAMPLE/20260203/eu-west-1/aws4_request'",
		},
		{
			"everything else", vectorKey, Kinesis, replace("20260203/eu-west-1/kinesis/aws4_request", "b/C/d/e"),
			invalid, "Credential should be scoped to a valid region, not 'C'. " +
				"Credential should be scoped to correct service: 'kinesis'. " +
				"Credential should be scoped with a valid terminator: 'aws4_request', not 'e'. " +
				"Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: " +
				"'b' != '20260203', from '20260203T120000Z'.",
		},
		{
			"another service", vectorKey, DynamoDB, func(r *request) { r.service = Kinesis }, invalid,
			"Credential should be scoped to correct service: 'kinesis'.",
		},
		{
			"another hash", vectorKey, Kinesis, set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"), invalid,
			"There were headers present in the request which were not signed: x-amz-content-sha256",
		},
		{"an empty signature", vectorKey, Kinesis, replace("Signature=", "Signature=0"), invalid, noMatch},
	} {
		r := clientRequest(c.service, "/", "", []byte("{}")).signed(t, c.key)
		if c.change != nil {
			c.change(&r)
		}
		offset, _ := time.ParseDuration(r.Pattern)
		refused := r.verify(keysAt(t, noon.Add(offset)))
		switch {
		case c.code == "" && refused != nil:
			t.Errorf("%s: %v", c.name, refused)
		case c.code != "" && (refused == nil || refused.Code != c.code ||
			!strings.Contains(refused.Message, c.has)):
			t.Errorf("%s: %v\nwant %s: %s", c.name, refused, c.code, c.has)
		case refused != nil && refused.status() != http.StatusBadRequest:
			t.Errorf("%s: status %d", c.name, refused.status())
		}
	}
}

func TestRefusedPresignatures(t *testing.T) {
	const must = "AWS query-string parameters must include '"
	for _, c := range []struct{ name, query, code, has string }{
		{
			"only the algorithm's name", "X-Amz-Algorithm", "IncompleteSignatureException", must +
				"X-Amz-Algorithm'. " + must + "X-Amz-Credential'. " + must + "X-Amz-Signature'. " + must +
				"X-Amz-SignedHeaders'. " + must + "X-Amz-Date'. Re-examine the query-string parameters.",
		},
		{
			"no signed headers", "X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Signature=c&X-Amz-Date=d",
			"IncompleteSignatureException", must + "X-Amz-SignedHeaders'. Re-examine the " +
				"query-string parameters.",
		},
		{
			"no algorithm", "X-Amz-Credential=a&X-Amz-Signature=b&X-Amz-SignedHeaders=c&X-Amz-Date=d",
			"MissingAuthenticationTokenException", "Missing Authentication Token",
		},
		{"not a query", "X-Amz-Algorithm=%zz", "IncompleteSignatureException", "cannot be read"},
	} {
		r := clientRequest(Kinesis, "/", c.query, []byte("{}")).onTheWire()
		refused := r.verify(keysAt(t, noon))
		if refused == nil || refused.Code != c.code || !strings.Contains(refused.Message, c.has) {
			t.Errorf("%s: %v\nwant %s: %s", c.name, refused, c.code, c.has)
		}
	}
}

// TestPresignedLifetime: X-Amz-Expires may be longer, or shorter, than the clocks' difference.
func TestPresignedLifetime(t *testing.T) {
	for _, c := range []struct {
		expires string
		after   time.Duration
		has     string // of the refusal
	}{
		{"", 5 * time.Minute, ""},
		{"", 5*time.Minute + time.Second, "(20260203T120501Z - 5 min.)"},
		{"3600", time.Hour, ""},
		{"3600", time.Hour + time.Second, "(20260203T130001Z - 60 min.)"},
		{"90", 91 * time.Second, "(20260203T120131Z - 90 sec.)"},
		{"3600", -6 * time.Minute, "not yet current"},
		{"0", 0, "X-Amz-Expires must be"},
		{"604801", 0, "X-Amz-Expires must be"},
		{"x", 0, "X-Amz-Expires must be"},
	} {
		query := ""
		if c.expires != "" {
			query = "X-Amz-Expires=" + c.expires
		}
		r := clientRequest(Kinesis, "/", query, []byte("{}")).presigned(t, vectorKey)
		refused := r.verify(keysAt(t, noon.Add(c.after)))
		if c.has == "" && refused != nil ||
			c.has != "" && (refused == nil || !strings.Contains(refused.Message, c.has)) {
			t.Errorf("%q after %v: %v, want %q", c.expires, c.after, refused, c.has)
		}
	}
}

// resigned signs the request again, at noon, over headers of the test's choice.
func (r request) resigned(t *testing.T, signedHeaders string) request {
	a := authorization{signedHeaders: signedHeaders}
	canonical := canonicalRequest(r.Request, &a, strings.Split(signedHeaders, ";"), r.hash())
	sum := sha256.Sum256(canonical)
	secret := []byte("AWS4" + vectorKey.SecretAccessKey)
	for _, part := range []string{"20260203", "eu-west-1", "kinesis", "aws4_request"} {
		secret = sign(secret, part)
	}
	const scope = "20260203/eu-west-1/kinesis/aws4_request"
	signature := hex.EncodeToString(sign(secret, "AWS4-HMAC-SHA256\n20260203T120000Z\n"+scope+"\n"+
		hex.EncodeToString(sum[:])))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+vectorKey.AccessKeyID+"/"+scope+
		", SignedHeaders="+signedHeaders+", Signature="+signature)
	return r
}

// TestDateHeader: a client without X-Amz-Date signs the Date header's time.
func TestDateHeader(t *testing.T) {
	for _, date := range []string{"Tue, 03 Feb 2026 12:00:00 GMT", "20260203T120000Z"} {
		r := clientRequest(Kinesis, "/", "", []byte("{}")).onTheWire()
		r.Header.Set("Date", date)
		r = r.resigned(t, "content-type;date;host;x-amz-target")
		if refused := r.verify(keysAt(t, noon)); refused != nil {
			t.Errorf("%s: %v", date, refused)
		}
		r.Header.Set("Date", "Tue, 03 Feb 2026 12:00:01 GMT")
		if refused := r.verify(keysAt(t, noon)); refused == nil {
			t.Errorf("%s can be changed", date)
		}
	}
}

// TestSignedHeaders: only lists as the SDKs write them, since AWS sorts them itself.
func TestSignedHeaders(t *testing.T) {
	for list, ok := range map[string]bool{
		"host;x-amz-date;x-amz-target":                             true,
		"content-length;content-type;host;x-amz-date;x-amz-target": true,
		"absent;host;x-amz-date;x-amz-target":                      true,
		":authority;x-amz-date;x-amz-target":                       true,
		"host;x-amz-target;x-amz-date":                             false,
		"host;host;x-amz-date;x-amz-target":                        false,
		"Host;host;x-amz-date;x-amz-target":                        false,
		";host;x-amz-date;x-amz-target":                            false,
		"host;x-amz-date":                                          false,
		"content-type;x-amz-date;x-amz-target":                     false,
	} {
		r := clientRequest(Kinesis, "/", "", []byte("{}")).onTheWire()
		r.Header.Set("X-Amz-Date", "20260203T120000Z")
		if refused := r.resigned(t, list).verify(keysAt(t, noon)); (refused == nil) != ok {
			t.Errorf("%s: %v", list, refused)
		}
	}
}

// TestOneOperation: two targets are signed like one with a comma, but which would be called?
func TestOneOperation(t *testing.T) {
	r := clientRequest(Kinesis, "/", "", []byte("{}")).onTheWire()
	r.Header.Set("X-Amz-Date", "20260203T120000Z")
	r.Header["X-Amz-Target"] = []string{"Kinesis_20131202.ListStreams", "x"}
	if refused := r.resigned(t, "host;x-amz-date;x-amz-target").verify(keysAt(t, noon)); refused == nil {
		t.Error("two are taken")
	}
}

// TestContentHash: the body must match the request's hash of it, signed or not.
func TestContentHash(t *testing.T) {
	for _, c := range []struct {
		claim string
		ok    bool
	}{
		{clientRequest(Kinesis, "/", "", []byte("{}")).hash(), true},
		{clientRequest(Kinesis, "/", "", nil).hash(), false},
		{"UNSIGNED-PAYLOAD", false},
	} {
		r := clientRequest(Kinesis, "/", "", []byte("{}")).onTheWire()
		r.Header.Set("X-Amz-Date", "20260203T120000Z")
		r.Header.Set("X-Amz-Content-Sha256", c.claim)
		refused := r.resigned(t, "host;x-amz-content-sha256;x-amz-date;x-amz-target").verify(keysAt(t, noon))
		if (refused == nil) != c.ok {
			t.Errorf("%s: %v", c.claim, refused)
		}
	}
}

// FuzzAuthorization: whatever a request says of its signature, it is refused without panic,
// with an error that can be sent.
func FuzzAuthorization(f *testing.F) {
	r := clientRequest(Kinesis, "/", "", []byte("{}")).signed(f, vectorKey)
	f.Add(r.Header.Get("Authorization"), "", "/", "20260203T120000Z", "")
	r = clientRequest(Kinesis, "/", "", []byte("{}")).presigned(f, vectorKey)
	f.Add("", r.URL.RawQuery, "//a/../b", "", "00")
	keys := keysAt(f, noon)
	f.Fuzz(func(t *testing.T, authorization, query, path, date, hash string) {
		r := &http.Request{
			Method: http.MethodPost, Host: "h", URL: &url.URL{Path: path, RawQuery: query},
			Header: http.Header{
				"Authorization": {authorization}, "X-Amz-Date": {date}, "Date": {date},
				"X-Amz-Content-Sha256": {hash}, "X-Amz-Target": {"Kinesis_20131202.Op"},
			},
		}
		if authorization == "" {
			r.Header.Del("Authorization")
		}
		credential, _, refused := keys.verify(r, Kinesis, []byte("another body"))
		if refused == nil {
			t.Fatalf("it is taken, as %s", credential)
		}
		if _, err := refused.envelope(JSON); err != nil || refused.Code == "" {
			t.Fatal(err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	r := clientRequest(Kinesis, "/", "", []byte("{}")).signed(b, vectorKey)
	keys := keysAt(b, noon)
	b.ReportAllocs()
	for b.Loop() {
		if refused := r.verify(keys); refused != nil {
			b.Fatal(refused)
		}
	}
}
