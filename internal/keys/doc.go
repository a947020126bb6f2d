// Package keys is the commands runnel keys: hash keys of names, evenly spread keys, and the skew of
// keys over shards.
//
// hash, nth and allocate compute keys and store nothing. map, release and rebalance keep names and
// their keys, in a file for one process or in a DynamoDB table for many. skew measures how unevenly
// keys load shards. Flag is the flag --keys of put and proxy, which takes keys from that file or
// table.
package keys
