// Package limit limits throughput and call rates. It holds the language of `runnel serve
// --limits` and runneltest, the table of AWS's limits, and the meters that count usage. It does
// not know streams or shards; server/internal/kinesis applies the limits to them.
//
// A specification is words between commas or white space:
//
//	off                         nothing is limited; the default
//	aws                         everything is limited as AWS limits it
//	NAME=VALUE                  this limit, for every stream
//	STREAM/NAME=VALUE           this limit, for one stream
//
// off or aws must come first; without either, only the named limits apply. VALUE is a whole
// number above 0 or off; a value in bytes may have the unit KiB, MiB or GiB. Some examples:
//
//	aws
//	aws,write-records=100
//	write-bytes=64KiB
//	aws,orders/write-bytes=64KiB,orders/read-calls=off
//
// docs/limits.md has the table of names.
package limit
