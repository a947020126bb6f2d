package awserr

// Service is a service's own codes, beside those that all of AWS have.
type Service map[string]Class

// The codes that other packages send. All others occur in this package alone.
const (
	CodeArgument         = "InvalidArgumentException"
	CodeValidation       = "ValidationException"
	CodeThroughput       = "ProvisionedThroughputExceededException"
	CodeLimit            = "LimitExceededException"
	CodeInUse            = "ResourceInUseException"
	CodeUnknownOperation = "UnknownOperationException"
	CodeInternal         = "InternalFailure"
	CodeUnavailable      = "ServiceUnavailable"
	CodeNoSuchBucket     = "NoSuchBucket"
	CodeNoSuchKey        = "NoSuchKey"
	CodeWrongRegion      = "AuthorizationHeaderMalformed"
)

const (
	codeInvalidSignature = "InvalidSignatureException"
	codeUnknownClient    = "UnrecognizedClientException"
	codeSerialization    = "SerializationException"
	// codeConditionFailed is a reason for the end of a transaction: an item failed its condition.
	codeConditionFailed = "ConditionalCheckFailed"
)

// Kinesis has the codes of Kinesis Data Streams (its API reference, "Errors" of each operation).
var Kinesis = Service{
	CodeThroughput:              Throttled,
	CodeLimit:                   Throttled,
	"KMSThrottlingException":    Throttled,
	CodeInUse:                   Passing,
	CodeArgument:                Record,
	"KMSAccessDeniedException":  Caller,
	"KMSDisabledException":      Caller,
	"KMSInvalidStateException":  Caller,
	"KMSNotFoundException":      Caller,
	"KMSOptInRequired":          Caller,
	"ResourceNotFoundException": Missing,
	"ExpiredIteratorException":  Gone,
	"ExpiredNextTokenException": Gone,
}

// DynamoDB has the codes of DynamoDB ("Error handling with DynamoDB"), and those of a transaction's
// items ("TransactWriteItems").
var DynamoDB = Service{
	CodeThroughput:                             Throttled,
	CodeLimit:                                  Throttled,
	"ThrottlingError":                          Throttled, // of a transaction's item
	"ProvisionedThroughputExceeded":            Throttled, // of a transaction's item
	"TransactionConflict":                      Passing,   // of a transaction's item
	"TransactionConflictException":             Passing,
	"TransactionInProgressException":           Passing,
	CodeInUse:                                  Passing,
	"ItemCollectionSizeLimitExceededException": Record,
	"ConditionalCheckFailedException":          Record,
	codeConditionFailed:                        Record, // of a transaction's item
	"ResourceNotFoundException":                Missing,
}

// S3 has the codes of Amazon S3 ("Error responses", "List of error codes").
var S3 = Service{
	"ConditionalRequestConflict": Passing,
	"OperationAborted":           Passing,
	"RequestTimeout":             Passing,
	"IncompleteBody":             Passing, // the body broke off, or arrived changed
	"BadDigest":                  Passing,
	"XAmzContentSHA256Mismatch":  Passing,
	"BadRequest":                 Passing, // versitygw's, for a body that broke off
	"NotImplemented":             Caller,
	"PreconditionFailed":         Record,
	"InvalidAccessKeyId":         Caller,
	"AllAccessDisabled":          Caller,
	"AccountProblem":             Caller,
	CodeNoSuchBucket:             Missing,
	CodeNoSuchKey:                Missing,
}

// common has the codes of all services ("Common Error Types", and the SDKs' own lists of codes that
// they send again).
var common = Service{
	"ThrottlingException": Throttled, "Throttling": Throttled, "ThrottledException": Throttled,
	"RequestThrottled": Throttled, "RequestThrottledException": Throttled,
	"RequestLimitExceeded": Throttled, "TooManyRequestsException": Throttled, "SlowDown": Throttled,
	"BandwidthLimitExceeded": Throttled,

	"RequestExpired": Passing, "RequestTimeTooSkewed": Passing, "RequestInTheFuture": Passing,

	"ExpiredTokenException": Expired, "ExpiredToken": Expired,

	"AccessDeniedException": Caller, "AccessDenied": Caller, "NotAuthorized": Caller,
	codeUnknownClient: Caller, "InvalidClientTokenId": Caller,
	codeInvalidSignature: Caller, "SignatureDoesNotMatch": Caller,
	"IncompleteSignature": Caller, "IncompleteSignatureException": Caller,
	"MissingAuthenticationToken": Caller, "MissingAuthenticationTokenException": Caller,
	"OptInRequired": Caller, CodeUnknownOperation: Caller,
	"DryRunOperationException": Caller,

	CodeValidation: Record, "ValidationError": Record, codeSerialization: Record,
	"MalformedHttpRequestException": Record, "RequestEntityTooLargeException": Record,
}
