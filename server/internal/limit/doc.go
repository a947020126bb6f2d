// Package limit is the language of throughput and call-rate limits that `runnel serve
// --limits` and runneltest speak, the table of AWS's limits, and the meters that count against
// them. It does not know streams or shards; server/internal/kinesis does.
//
// A specification is words between commas or white space:
//
//	off                         nothing is limited; the default
//	aws                         everything is limited as AWS limits it
//	NAME=VALUE                  this limit, for every stream
//	STREAM/NAME=VALUE           this limit, for one stream
//
// off or aws stands first; without either, only what is named is limited. VALUE is a whole
// number above 0, for bytes also with KiB, MiB or GiB behind it, or off. Some examples:
//
//	aws
//	aws,write-records=100
//	write-bytes=64KiB
//	aws,orders/write-bytes=64KiB,orders/read-calls=off
//
// docs/limits.md has the table of names.
package limit
