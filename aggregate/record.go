package aggregate

import "github.com/runnel-stream/runnel/keyspace"

// Record is one user record of an aggregate.
type Record struct {
	// PartitionKey is the record's own key: UTF-8.
	PartitionKey string
	// ExplicitHashKey is the record's own hash key in decimal; empty if it has none.
	ExplicitHashKey string
	// Data is the event's bytes. A Decoder's records view its input.
	Data []byte
	// Tags are the record's labels; usually none. A Decoder's records view its input.
	Tags Tags
}

// Hash returns the hash key that decides the record's shard: its explicit hash key, or else the
// MD5 of its partition key. An ExplicitHashKey that Decoder and Encoder refuse counts as none.
func (r Record) Hash() keyspace.Key {
	if key, ok := parseExplicit(r.ExplicitHashKey); ok {
		return key
	}
	return keyspace.Of(r.PartitionKey)
}

// parseExplicit reads a hash key as the KCL does, with Java's BigInteger: a plus sign and
// leading zeros are allowed.
func parseExplicit(decimal string) (keyspace.Key, bool) {
	if len(decimal) > 1 && decimal[0] == '+' {
		decimal = decimal[1:]
	}
	for len(decimal) > 1 && decimal[0] == '0' {
		decimal = decimal[1:]
	}
	if decimal == "" {
		return keyspace.Key{}, false // Parse's error would be allocated
	}
	key, err := keyspace.Parse(decimal)
	return key, err == nil
}
