package wire

import (
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
)

// authorization holds the parts of a request's signature, from its Authorization header or, in
// presigned URLs, from its query string.
type authorization struct {
	algorithm     string
	credential    string // <access key id>/<date>/<region>/<service>/aws4_request
	signedHeaders string // names, divided by semicolons
	signature     string
	date          string // as it was sent
	token         string
	lifetime      string     // X-Amz-Expires, in seconds; only in query strings
	query         url.Values // nil: it came in the header
}

// The refusals here and in signature.go, their order and their texts come from kinesalite's and
// dynalite's test/connection.js, which were run against AWS, and from the list of AWS' further
// checks in dynalite's index.js. Refusals that are in neither are marked as guesses.

// authorizationOf finds the signature of a request.
func authorizationOf(r *http.Request, service string) (authorization, *Error) {
	headers := r.Header.Values("Authorization")
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // a guess: an unreadable value cannot match the signed one
		return authorization{}, incompleteSignature("The query string cannot be read.")
	}
	header := strings.Join(headers, ",")
	switch inQuery := query.Has("X-Amz-Algorithm"); {
	case header != "" && inQuery:
		return authorization{}, invalidSignature("Found both 'X-Amz-Algorithm' as a " +
			"query-string param and 'Authorization' as HTTP header.")
	case inQuery:
		return queryAuthorization(query)
	case header == "":
		return authorization{}, missingToken(service)
	case service == DynamoDB && !strings.HasPrefix(header, "AWS4-"):
		return authorization{}, missingToken(service)
	}
	return headerAuthorization(header, r.Header)
}

func headerAuthorization(header string, headers http.Header) (authorization, *Error) {
	a := authorization{
		date:  headers.Get("X-Amz-Date"),
		token: headers.Get("X-Amz-Security-Token"),
	}
	if a.date == "" {
		a.date = headers.Get("Date")
	}
	if err := a.parse(header); err != nil {
		return authorization{}, err
	}
	missing := ""
	for _, parameter := range [...]struct{ name, value string }{
		{"Credential", a.credential},
		{"Signature", a.signature},
		{"SignedHeaders", a.signedHeaders},
	} {
		if parameter.value == "" {
			missing += "Authorization header requires '" + parameter.name + "' parameter. "
		}
	}
	if a.date == "" {
		missing += "Authorization header requires existence of either a 'X-Amz-Date' or a " +
			"'Date' header. "
	}
	if missing != "" {
		return authorization{}, incompleteSignature(missing + "Authorization=" + header)
	}
	return a, nil
}

// parse reads "AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…". Spaces and commas are
// both separators.
func (a *authorization) parse(header string) *Error {
	a.algorithm, _, _ = strings.Cut(header, " ")
	for parameter := range parametersOf(header) {
		name, value, ok := strings.Cut(parameter, "=")
		if !ok {
			return incompleteSignature(fmt.Sprintf("'%s' not a valid key=value pair (missing "+
				"equal-sign) in Authorization header: '%s'.", parameter, header))
		}
		var field *string
		switch name {
		case "Credential":
			field = &a.credential
		case "SignedHeaders":
			field = &a.signedHeaders
		case "Signature":
			field = &a.signature
		default:
			continue
		}
		if *field != "" { // a guess; two of them, and which one counts?
			return incompleteSignature("Authorization header has more than one '" + name +
				"' parameter. Authorization=" + header)
		}
		*field = value
	}
	return nil
}

// parametersOf yields the text after the algorithm, piece by piece.
func parametersOf(header string) iter.Seq[string] {
	_, parameters, _ := strings.Cut(header, " ")
	return strings.FieldsFuncSeq(parameters, func(r rune) bool { return r == ' ' || r == ',' })
}

func queryAuthorization(query url.Values) (authorization, *Error) {
	a := authorization{
		algorithm:     query.Get("X-Amz-Algorithm"),
		credential:    query.Get("X-Amz-Credential"),
		signature:     query.Get("X-Amz-Signature"),
		signedHeaders: query.Get("X-Amz-SignedHeaders"),
		date:          query.Get("X-Amz-Date"),
		token:         query.Get("X-Amz-Security-Token"),
		lifetime:      query.Get("X-Amz-Expires"),
		query:         query,
	}
	missing := ""
	for _, parameter := range [...]struct{ name, value string }{
		{"X-Amz-Algorithm", a.algorithm},
		{"X-Amz-Credential", a.credential},
		{"X-Amz-Signature", a.signature},
		{"X-Amz-SignedHeaders", a.signedHeaders},
		{"X-Amz-Date", a.date},
	} {
		if parameter.value == "" {
			missing += "AWS query-string parameters must include '" + parameter.name + "'. "
		}
	}
	if missing != "" {
		return authorization{}, incompleteSignature(missing +
			"Re-examine the query-string parameters.")
	}
	return a, nil
}

func missingToken(service string) *Error {
	message := "Missing Authentication Token"
	if service == DynamoDB {
		message = "Request is missing Authentication Token"
	}
	return &Error{Code: "MissingAuthenticationTokenException", Message: message}
}

func incompleteSignature(message string) *Error {
	return &Error{Code: "IncompleteSignatureException", Message: message}
}

func invalidSignature(message string) *Error {
	return &Error{Code: "InvalidSignatureException", Message: message}
}

// unrecognizedClient is the error for an unknown access key or session token.
func unrecognizedClient(message string) *Error {
	return &Error{Code: "UnrecognizedClientException", Message: message}
}
