package wire

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
)

// The query protocol (smithy.io, "AWS query protocol"): a form names the operation and the version,
// the answer is XML. The KPL calls CloudWatch and STS with it, as older SDKs do.
const (
	formType = "application/x-www-form-urlencoded"
	xmlType  = "text/xml"
)

// versions maps a form's API version to the service. Each service has one version.
var versions = map[string]string{"2010-08-01": CloudWatch, "2011-06-15": STS}

// namespaces are the XML namespaces of the services' answers: their models' xmlNamespace.
var namespaces = map[string]string{
	CloudWatch: "http://monitoring.amazonaws.com/doc/2010-08-01/",
	STS:        "https://sts.amazonaws.com/doc/2011-06-15/",
}

// queryCodes are the query protocol's names of the errors that any service may return, and their
// statuses: AWS, "Common errors" of CloudWatch's and of STS's API reference.
var queryCodes = map[string]struct {
	code   string
	status int
}{
	"MissingAuthenticationTokenException": {"MissingAuthenticationToken", http.StatusForbidden},
	"IncompleteSignatureException":        {"IncompleteSignature", http.StatusBadRequest},
	"InvalidSignatureException":           {"SignatureDoesNotMatch", http.StatusForbidden},
	"UnrecognizedClientException":         {"InvalidClientTokenId", http.StatusForbidden},
	"AccessDeniedException":               {"AccessDenied", http.StatusForbidden},
	"UnknownOperationException":           {"InvalidAction", http.StatusBadRequest},
	"SerializationException":              {"MalformedInput", http.StatusBadRequest},
	"ThrottlingException":                 {"Throttling", http.StatusBadRequest},
}

func isForm(r *http.Request) bool {
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(contentType), formType)
}

// checkForm reads the headers of a call in the query protocol. The body names the called service.
// Before the body is unpacked, the signature is checked for the service in its scope; the two must
// agree.
func (x *Exchange) checkForm(r *http.Request, auth *Credentials, empty bool) error {
	x.Call.Format, x.contentType = Query, xmlType
	x.Call.Service = CloudWatch
	if scopeNames(r, STS) {
		x.Call.Service = STS
	}
	if empty {
		return x.refuseXML(r, auth, http.StatusForbidden)
	}
	return nil
}

// readForm reads a call in the query protocol. If the body is no such call, readForm answers it.
func (x *Exchange) readForm(r *http.Request, auth *Credentials) error {
	form, err := ParseForm(x.Call.Body)
	if err != nil {
		return x.refuse(&Error{
			Code: "MalformedQueryString", Message: err.Error(),
		})
	}
	x.Call.Form = form
	x.Call.Operation = form.Get("Action").Value()
	if x.Call.Operation == "" {
		return x.refuseXML(r, auth, http.StatusForbidden)
	}
	version := form.Get("Version").Value()
	service, known := versions[version]
	if !known || auth != nil && service != x.Call.Service {
		if version == "" {
			version = "NO_VERSION_SPECIFIED"
		}
		return x.refuse(&Error{
			Code: "UnknownOperationException",
			Message: fmt.Sprintf("Could not find operation %s for version %s",
				x.Call.Operation, version),
		})
	}
	x.Call.Service = service
	return nil
}

// scopeNames reports whether the scope of the request's credential names the service.
func scopeNames(r *http.Request, service string) bool {
	scope := "/" + service + "/" + terminator
	if strings.Contains(r.Header.Get("Authorization"), scope) {
		return true
	}
	return strings.Contains(r.URL.RawQuery, "X-Amz-Credential=") &&
		strings.Contains(r.URL.Query().Get("X-Amz-Credential"), scope)
}

// query is the error's code and HTTP status in the query protocol.
func (e *Error) query() (code string, status int) {
	code = e.Code[strings.IndexByte(e.Code, '#')+1:]
	if e.Query != "" {
		return e.Query, e.status()
	}
	if named, ok := queryCodes[code]; ok {
		return named.code, named.status
	}
	return code, e.status()
}

// faultOf returns AWS's name for the party at fault.
func faultOf(status int) string {
	if status >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

// queryAnswer wraps a result.
func (x *Exchange) queryAnswer(result []byte) []byte {
	var b bytes.Buffer
	operation := x.Call.Operation // one that the service has
	fmt.Fprintf(&b, "<%sResponse xmlns=\"%s\">\n", operation, namespaces[x.Call.Service])
	if result != nil {
		fmt.Fprintf(&b, "  <%sResult>\n%s  </%[1]sResult>\n", operation, result)
	}
	fmt.Fprintf(&b, "  <ResponseMetadata>\n    <RequestId>%s</RequestId>\n"+
		"  </ResponseMetadata>\n</%sResponse>\n", x.Call.RequestID, operation)
	return b.Bytes()
}

// queryError is the body of an error.
func (x *Exchange) queryError(code, message string, status int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<ErrorResponse xmlns=\"%s\">\n  <Error>\n    <Type>%s</Type>\n    <Code>",
		namespaces[x.Call.Service], faultOf(status))
	escapeXML(&b, code)
	b.WriteString("</Code>\n    <Message>")
	escapeXML(&b, message)
	fmt.Fprintf(&b, "</Message>\n  </Error>\n  <RequestId>%s</RequestId>\n</ErrorResponse>\n",
		x.Call.RequestID)
	return b.Bytes()
}

// escapeXML writes escaped text. A bytes.Buffer returns no error.
func escapeXML(b *bytes.Buffer, text string) { _ = xml.EscapeText(b, []byte(text)) }
