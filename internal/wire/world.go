package wire

import "strings"

// The world of a request that names none.
const (
	DefaultAccount = "000000000000"
	DefaultRegion  = "us-east-1"
)

const maxRegion = 32 // characters; the longest of AWS has 16

// ParseWorld reads the account and the region out of an Authorization header. The account is the
// access key id if that is 12 digits, as kinesis-mock and LocalStack have it, else DefaultAccount;
// the region is the credential scope's. The signature is not checked.
//
// No header, and one of another scheme than Signature V4, mean the defaults. A Signature V4 header
// with an unreadable scope is an *Error: a guess would show the caller an empty world.
func ParseWorld(authorization string) (World, error) {
	authorization = strings.TrimSpace(authorization)
	algorithm, _, _ := strings.Cut(authorization, " ")
	if !strings.HasPrefix(algorithm, "AWS4-") {
		return World{Account: DefaultAccount, Region: DefaultRegion}, nil
	}
	for parameter := range parametersOf(authorization) {
		if credential, ok := strings.CutPrefix(parameter, "Credential="); ok {
			return worldOf(credential, algorithm)
		}
	}
	return World{}, incompleteSignature("Authorization header requires 'Credential' parameter.")
}

// worldOf reads the account and the region out of a credential.
func worldOf(credential, algorithm string) (World, error) {
	world := World{Account: DefaultAccount, Region: DefaultRegion}
	scope := strings.Split(strings.TrimRight(credential, "/"), "/")
	if len(scope) < 4 || scope[len(scope)-1] != terminator {
		return World{}, incompleteSignature("Credential must be of the form " +
			"<access key id>/<date>/<region>/<service>/aws4_request.")
	}
	if IsAccount(scope[0]) {
		world.Account = scope[0]
	}
	if algorithm == algorithmV4a { // its scope has no region
		return world, nil
	}
	if len(scope) != 5 || !IsRegion(scope[2]) {
		return World{}, incompleteSignature("Credential's scope names no region.")
	}
	world.Region = scope[2]
	return world, nil
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

// IsRegion reports whether name has the form of a region: 1 to 32 lower-case letters, digits and
// hyphens. It need not be one of AWS's.
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
