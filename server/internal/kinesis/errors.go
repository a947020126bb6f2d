package kinesis

import (
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// The codes of the API's errors that this package returns.
const (
	codeNotFound       = "ResourceNotFoundException"
	codeInUse          = "ResourceInUseException"
	codeInvalid        = "InvalidArgumentException"
	codeLimit          = "LimitExceededException"
	codeValidation     = "ValidationException"
	codeSerialization  = "SerializationException"
	codeExpired        = "ExpiredIteratorException"
	codeExpiredToken   = "ExpiredNextTokenException"
	codeUnknown        = "UnknownOperationException"
	codeThrottled      = "ProvisionedThroughputExceededException"
	codeKeyNotFound    = "KMSNotFoundException"
	codeRecordInternal = "InternalFailure"
)

func fail(code, format string, args ...any) *wire.Error {
	return &wire.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *wire.Error {
	return fail(codeInvalid, format, args...)
}

func streamNotFound(world wire.World, name string) error {
	return &missingStream{
		fail(codeNotFound, "Stream %s under account %s not found.", name, world.Account),
		catalogue.Key{World: world, Name: name},
	}
}

// shardMissing is the error of the operations on positions for a shard that is not there;
// couldNotFindShard is that of the operations on shards.
func shardMissing(world wire.World, stream, shard string) *wire.Error {
	return fail(codeNotFound, "Shard %s in stream %s under account %s does not exist",
		shard, stream, world.Account)
}

func couldNotFindShard(world wire.World, stream, shard string) *wire.Error {
	return fail(codeNotFound, "Could not find shard %s in stream %s under account %s.",
		shard, stream, world.Account)
}

func notActive(st *catalogue.Stream, status string) *wire.Error {
	return fail(codeInUse, "Stream %s under account %s not ACTIVE, instead in state %s",
		st.Name, st.World.Account, status)
}

func iteratorExpired(issued, now int64) *wire.Error {
	return fail(codeExpired, "Iterator expired. The iterator was created at time %s while right "+
		"now it is %s which is further in the future than the tolerated delay of %d milliseconds.",
		javaTime(issued), javaTime(now), iteratorLife)
}

// javaTime writes a time as AWS's messages do: "Thu Jan 22 01:22:02 UTC 2015".
func javaTime(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("Mon Jan 02 15:04:05 UTC 2006")
}
