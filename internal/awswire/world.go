package awswire

import (
	"net/http"
	"strings"
)

// What a request is about that says nothing else.
const (
	DefaultAccount = "000000000000"
	DefaultRegion  = "us-east-1"
)

const maxRegion = 32 // characters; the longest of AWS has 16

// ParseWorld reads the account and the region out of an Authorization header: the account is
// the access key id if that is 12 digits, as kinesis-mock and LocalStack have it, else
// DefaultAccount; the region is the credential scope's. The signature is not looked at.
//
// No header, and one of another scheme than Signature V4, mean the defaults. A Signature V4
// header whose scope cannot be read is an *Error: a guess would show the caller an empty world.
func ParseWorld(authorization string) (World, error) {
	world := World{Account: DefaultAccount, Region: DefaultRegion}
	algorithm, parameters, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	if !strings.HasPrefix(algorithm, "AWS4-") {
		return world, nil
	}
	credential, ok := credentialOf(parameters)
	if !ok {
		return World{}, incompleteSignature("Authorization header requires 'Credential' parameter.")
	}
	scope := strings.Split(credential, "/")
	if len(scope) < 4 || scope[len(scope)-1] != "aws4_request" {
		return World{}, incompleteSignature("Credential must be of the form " +
			"<access key id>/<date>/<region>/<service>/aws4_request.")
	}
	if IsAccount(scope[0]) {
		world.Account = scope[0]
	}
	if algorithm == "AWS4-ECDSA-P256-SHA256" { // Signature V4a: its scope has no region
		return world, nil
	}
	if len(scope) != 5 || !IsRegion(scope[2]) {
		return World{}, incompleteSignature("Credential's scope names no region.")
	}
	world.Region = scope[2]
	return world, nil
}

func credentialOf(parameters string) (string, bool) {
	for parameters != "" {
		var parameter string
		parameter, parameters, _ = strings.Cut(parameters, ",")
		if credential, ok := strings.CutPrefix(strings.TrimSpace(parameter), "Credential="); ok {
			return credential, true
		}
	}
	return "", false
}

// IsAccount reports whether id is an AWS account number: 12 digits.
func IsAccount(id string) bool {
	if len(id) != 12 {
		return false
	}
	for i := range len(id) {
		if id[i] < '0' || id[i] > '9' {
			return false
		}
	}
	return true
}

// IsRegion reports whether name can be a region's: 1 to 32 lower-case letters, digits and
// hyphens. It need not be one that AWS has.
func IsRegion(name string) bool {
	if name == "" || len(name) > maxRegion {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func incompleteSignature(message string) *Error {
	return &Error{
		Code: "IncompleteSignatureException", Message: message, Status: http.StatusBadRequest,
	}
}
