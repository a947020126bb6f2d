// Package awswire is what the AWS protocols have in common below the operations: awsJson
// calls and answers, error envelopes, and the world (account and region) that a request's
// signature names.
package awswire

import "context"

// World is an account in a region: what is created in one is not seen from another.
type World struct {
	Account string // 12 digits
	Region  string
}

// Call is one request, after the transport has been taken off.
type Call struct {
	Service   string // "kinesis", "dynamodb", …: the target's prefix decides
	Operation string // the part of X-Amz-Target after the dot, as "PutRecords"
	Body      []byte // the JSON document; valid until the handler returns
	World     World
	RequestID string
}

// Service answers the calls of one API. The answer is a JSON document (nil: an empty body).
// An error that is not an *Error is an internal failure: it is logged and answered with 500.
type Service interface {
	Serve(ctx context.Context, call *Call) ([]byte, error)
}

// Error is an answer that the API defines as an error.
type Error struct {
	Code    string // the __type, as "ResourceNotFoundException"
	Message string
	Status  int            // HTTP; 0 means 400
	Extra   map[string]any // further members of the body
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }
