package aggregate

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the format's check sum, not a security measure
	"errors"
)

// The aggregated record of the Kinesis Producer Library (aggregation-format.md in
// awslabs/amazon-kinesis-producer): a magic number, a protobuf message, and the MD5 of the
// message.
//
//	message AggregatedRecord {
//	  repeated string partition_key_table     = 1;
//	  repeated string explicit_hash_key_table = 2;
//	  repeated Record records                 = 3;
//	}
//	message Record {
//	  required uint64 partition_key_index     = 1;  // from 0 on
//	  optional uint64 explicit_hash_key_index = 2;  // from 0 on
//	  required bytes  data                    = 3;
//	  repeated Tag    tags                    = 4;
//	}
//	message Tag {
//	  required string key   = 1;
//	  optional string value = 2;
//	}
const (
	magic      = "\xf3\x89\x9a\xc2"
	digestSize = md5.Size

	// Overhead is the size of the magic number and the MD5 around the message, in bytes.
	Overhead = len(magic) + digestSize
)

// OuterPartitionKey is the partition key of a Kinesis record that holds user records of several
// keys, as the KPL sets it. Such a record needs an ExplicitHashKey: the first user record's.
const OuterPartitionKey = "a"

// The fields' tags on the wire: number << 3 | wire type.
const (
	fieldPartitionKeys    = 1<<3 | wireBytes
	fieldExplicitHashKeys = 2<<3 | wireBytes
	fieldRecords          = 3<<3 | wireBytes

	fieldPartitionKeyIndex    = 1<<3 | wireVarint
	fieldExplicitHashKeyIndex = 2<<3 | wireVarint
	fieldData                 = 3<<3 | wireBytes
	fieldTags                 = 4<<3 | wireBytes

	fieldTagKey   = 1<<3 | wireBytes
	fieldTagValue = 2<<3 | wireBytes
)

// ErrNestedAggregate is returned for user data that is an aggregate: consumers open one level only.
var ErrNestedAggregate = errors.New(
	"the data is an aggregated record already, and they do not nest")

// IsAggregate reports whether data has the magic number, a message, and the message's MD5. A
// producer sends such a record unchanged. Only Decoder.Open checks the message itself.
func IsAggregate(data []byte) bool {
	_, ok := unwrap(data)
	return ok
}

// unwrap returns the message between the magic number and the MD5.
func unwrap(data []byte) ([]byte, bool) {
	if len(data) <= Overhead || string(data[:len(magic)]) != magic {
		return nil, false // the KCL asks for more than 16 bytes behind the magic number
	}
	message, digest := data[len(magic):len(data)-digestSize], data[len(data)-digestSize:]
	sum := md5.Sum(message) //nolint:gosec // see the import
	return message, bytes.Equal(sum[:], digest)
}
