package wire

import (
	"net/http"
	"strings"
)

// rpcv2Cbor (smithy.io, "Smithy RPC v2 CBOR protocol"): the newest SDKs call CloudWatch with it.
// The header and the path name protocol, service and operation; documents are plain CBOR.
const (
	rpcHeader = "Smithy-Protocol"
	rpcCBOR   = "rpc-v2-cbor"
	plainCBOR = "application/cbor"

	// granite is CloudWatch's name in paths and in targets.
	granite = "GraniteServiceVersion20100801"
)

func isRPC(r *http.Request) bool { return r.Header.Get(rpcHeader) != "" }

// parseRPC reads a path as "/service/GraniteServiceVersion20100801/operation/PutMetricData". The
// endpoint's own path may come before it.
func parseRPC(path string) (service, operation string, ok bool) {
	parts := strings.Split(path, "/")
	if len(parts) < 5 {
		return "", "", false
	}
	parts = parts[len(parts)-4:]
	if parts[0] != "service" || parts[1] != granite || parts[2] != "operation" || parts[3] == "" {
		return "", "", false
	}
	return CloudWatch, parts[3], true
}

// checkRPC reads the headers of a call in rpcv2Cbor. If they are invalid, it answers the request.
// An empty body is an input without members.
func (x *Exchange) checkRPC(r *http.Request, empty bool) error {
	x.Call.Format, x.contentType = CBOR, plainCBOR
	var known bool
	x.Call.Service, x.Call.Operation, known = parseRPC(r.URL.Path)
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	contentType = strings.ToLower(strings.TrimSpace(contentType))
	switch protocol := r.Header.Get(rpcHeader); {
	case protocol != rpcCBOR, !known:
		return x.refuse(&Error{
			Code: "UnknownOperationException", Status: http.StatusNotFound,
			Message: "Only CloudWatch is called in " + rpcCBOR + " here, by the path /service/" +
				granite + "/operation/<operation>.",
		})
	case contentType != plainCBOR && !empty:
		return x.refuse(Serialization(x.Call.Service, "The body's type must be "+plainCBOR+"."))
	}
	return nil
}

// markRPC adds the headers of every answer of the protocol, and removes the type of an empty one.
func (x *Exchange) markRPC(header http.Header, body []byte) {
	header.Set(rpcHeader, rpcCBOR)
	if len(body) == 0 {
		header["Content-Type"] = nil // nothing is to be guessed
	}
}
