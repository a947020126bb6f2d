package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	algorithmV4  = "AWS4-HMAC-SHA256"
	algorithmV4a = "AWS4-ECDSA-P256-SHA256"
	terminator   = "aws4_request"
	basicFormat  = "20060102T150405Z"
)

// verify checks a request's Signature V4 against its body as it was sent. It returns the credential
// of the signature, and the time at which the signature becomes too old. Its refusals, their order
// and their words are AWS' (authorization.go names the sources).
func (c *Credentials) verify(
	r *http.Request, service string, body []byte,
) (credential string, expires time.Time, refused *Error) {
	h, refused := c.readHead(r, service)
	if refused != nil {
		return "", h.expires, refused
	}
	sum := sha256.Sum256(body)
	bodyHash := hex.EncodeToString(sum[:])
	if claim := r.Header.Get("X-Amz-Content-Sha256"); claim != "" && claim != bodyHash {
		// S3's words; a guess for the others, which do not know UNSIGNED-PAYLOAD either.
		return "", h.expires, invalidSignature("The provided 'x-amz-content-sha256' header does " +
			"not match what was computed.")
	}
	canonical := canonicalRequest(r, &h.authorization, h.signed, bodyHash)
	return h.credential, h.expires, c.compare(&h.authorization, h.scope, h.at, canonical)
}

// signedHead is the part of a signature that needs no body.
type signedHead struct {
	authorization
	at, expires time.Time
	signed      []string // names of headers
	scope       []string // see parseScope
}

// readHead reads the signature of a request, in the order of AWS's refusals.
func (c *Credentials) readHead(r *http.Request, service string) (h signedHead, refused *Error) {
	if h.authorization, refused = authorizationOf(r, service); refused != nil {
		return h, refused
	}
	if h.at, refused = h.parseDate(); refused != nil {
		return h, refused
	}
	if h.expires, refused = h.checkAge(h.at, c.now().UTC(), service); refused != nil {
		return h, refused
	}
	if h.signed, refused = h.checkSigned(r); refused != nil {
		return h, refused
	}
	if h.algorithm != algorithmV4 {
		return h, incompleteSignature(fmt.Sprintf(
			"Unsupported AWS 'algorithm': '%s' (only %s for now). ", h.algorithm, algorithmV4))
	}
	h.scope, refused = h.parseScope(h.at, service)
	return h, refused
}

// checkHead refuses a request whose signature cannot be right, whatever its body is: the head is
// wrong, or the key is unknown.
func (c *Credentials) checkHead(r *http.Request, service string) *Error {
	h, refused := c.readHead(r, service)
	if refused != nil {
		return refused
	}
	if _, known := c.keys[h.scope[0]]; !known {
		return unknownKey()
	}
	return nil
}

// compare computes the signature and compares it, and the session token, in constant time. For an
// unknown access key it does the same work with no secret.
func (c *Credentials) compare(
	a *authorization, scope []string, date time.Time, canonical []byte,
) *Error {
	key, known := c.keys[scope[0]]
	sum := sha256.Sum256(canonical)
	text := algorithmV4 + "\n" + date.Format(basicFormat) + "\n" +
		strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(sum[:])
	secret := []byte("AWS4" + key.SecretAccessKey)
	for _, part := range scope[1:] {
		secret = sign(secret, part)
	}
	signature := hex.AppendEncode(nil, sign(secret, text))
	same := subtle.ConstantTimeCompare(signature, []byte(a.signature)) == 1
	switch {
	case !known:
		return unknownKey()
	case !same:
		return mismatch()
	case key.SessionToken != "" && a.token == "": // a temporary key as if it were not
		return unrecognizedClient("The security token included in the request is invalid.")
	case subtle.ConstantTimeCompare([]byte(key.SessionToken), []byte(a.token)) != 1:
		return unrecognizedClient("The security token included in the request is invalid")
	}
	return nil
}

func unknownKey() *Error {
	return unrecognizedClient("The security token included in the request is invalid.")
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// mismatch leaves the computed signature out, though AWS returned it for a time.
func mismatch() *Error {
	return invalidSignature("The request signature we calculated does not match the signature " +
		"you provided. Check your AWS Secret Access Key and signing method. Consult the " +
		"service documentation for details.")
}

// checkSigned returns the signed headers' names. The host and every x-amz-* header must be among
// them, or an intermediary could change the operation.
func (a *authorization) checkSigned(r *http.Request) ([]string, *Error) {
	signed := strings.Split(a.signedHeaders, ";")
	if !slices.Contains(signed, "host") && !slices.Contains(signed, ":authority") {
		return nil, invalidSignature(
			"'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
	}
	for i, name := range signed {
		if !isHeaderName(name) || i > 0 && signed[i-1] >= name {
			return nil, mismatch() // AWS sorts them itself, and signs another list
		}
	}
	for header, values := range r.Header {
		name := strings.ToLower(header)
		if !strings.HasPrefix(name, "x-amz-") {
			continue
		}
		// Repeated values are signed like one value with a comma, but only the first would be read.
		if _, found := slices.BinarySearch(signed, name); !found || len(values) > 1 {
			// S3's words; a guess for the others.
			return nil, invalidSignature("There were headers present in the request which " +
				"were not signed: " + name)
		}
	}
	return signed, nil
}

func isHeaderName(name string) bool {
	if name == ":authority" {
		return true
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return name != ""
}

// parseScope splits the credential into access key id, date, region, service and terminator.
// Any region is valid here: it names the caller's world. A service's name in a scope is its
// name in Call.
func (a *authorization) parseScope(date time.Time, service string) ([]string, *Error) {
	scope := strings.Split(strings.TrimRight(a.credential, "/"), "/")
	if len(scope) != 5 {
		return nil, incompleteSignature(fmt.Sprintf("Credential must have exactly 5 "+
			"slash-delimited elements, e.g. keyid/date/region/service/term, got '%s'",
			a.credential))
	}
	var faults []string
	if !IsRegion(scope[2]) {
		faults = append(faults, fmt.Sprintf(
			"Credential should be scoped to a valid region, not '%s'.", scope[2]))
	}
	if scope[3] != service {
		faults = append(faults, fmt.Sprintf(
			"Credential should be scoped to correct service: '%s'.", service))
	}
	if scope[4] != terminator {
		faults = append(faults, fmt.Sprintf("Credential should be scoped with a valid "+
			"terminator: '%s', not '%s'.", terminator, scope[4]))
	}
	if day := date.Format("20060102"); scope[1] != day {
		faults = append(faults, fmt.Sprintf("Date in Credential scope does not match YYYYMMDD "+
			"from ISO-8601 version of date from HTTP: '%s' != '%s', from '%s'.",
			scope[1], day, date.Format(basicFormat)))
	}
	if faults != nil {
		return nil, invalidSignature(strings.Join(faults, " "))
	}
	return scope, nil
}
