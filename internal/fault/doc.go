// Package fault injects faults by rules, for `runnel serve --chaos` and runneltest. It draws them
// from a seed, so that a run that found a fault in a client can be repeated.
//
// # The language
//
// A specification is a list of rules, separated by commas, semicolons or white space:
//
//	spec   = { rule }
//	rule   = "seed=" number
//	       | calls ":" fault [ "=" argument ] [ when ]
//	       | stream ":reshard=" DUR [ when ]
//	calls  = Operation | "*" | "kinesis.*" | "dynamodb.*"
//	stream = Name | "*"
//	when   = "@" n | "@" n "-" m | "@" n "+" | "%" percent
//
// An Operation is the API's name, in any case, of an operation that the server answers. Each rule
// counts the calls that it matches, from 1: "@3" is the third of them, "@3-5" the third to the
// fifth, "@3+" every one from the third on, "%2.5" each of them with a chance of 2.5 %; without a
// when it is every call. A chance depends on the seed (default 0), the rule's place in the list
// and the call's number. So the nth call of an operation meets the same faults in every run,
// independently of the other operations.
//
// The faults, in the order in which they apply to a call:
//
//	delay=DUR           the call waits that long before anything else happens
//	error-500           refused with the API's internal failure, not executed
//	error-503           refused as unavailable, not executed
//	throttle            refused with the API's throttling error, not executed
//	refuse=CODE         refused with the error CODE, not executed, as the caller's fault
//	lose-request        the connection is cut, the call is not executed
//	fail-record[=K]     PutRecords: record K fails with InternalFailure, the others are
//	                    stored; K counts from 1; without it, a record drawn from the seed;
//	                    K = a/b: each record with that chance
//	throttle-record[=K] the same with ProvisionedThroughputExceededException
//	expire-iterator     GetRecords: the iterator counts as expired
//	lose-answer         the call is executed, then the connection is cut without an answer
//	commit-late=DUR     the connection is cut at once, the call is executed DUR later
//	hang=DUR            as commit-late, but the connection stays open and silent until the
//	                    client gives up or the call has been executed
//	cut-stream[=DUR]    SubscribeToShard: the event stream breaks off DUR after it began;
//	                    without it, at a moment of its first 5 s drawn from the seed
//
// DUR is a Go duration such as 250ms or 2s, of at most 24 h. All rules that fire on a call apply.
// Delays add up. Of error-500, error-503, throttle, refuse and lose-request only the first in the
// specification applies, and it drops every fault below them in the list. Of lose-answer,
// commit-late and hang only the first applies, and likewise of two cut-streams.
//
// # Resharding
//
// A reshard rule applies to a stream of that name in every account and region, or to every
// stream, and not to calls. The stream has a turn after each DUR; when counts the turns. In a
// turn one shard is split, or two adjacent ones are merged: the seed draws the operation, the
// shards and the split point. The number of open shards stays between one and twice the number
// when the rule first met the stream (at least two). A turn works like SplitShard and
// MergeShards: the stream is UPDATING first, and its shards change at the end of that. If a turn
// finds the stream UPDATING or CREATING, it comes as soon as that is over. Streams in the
// ON_DEMAND mode skip their turns. The nth turn of a stream is the same in every run if no client
// reshards the stream.
//
// Examples:
//
//	PutRecords:lose-answer@3              the third PutRecords is stored but never acknowledged
//	seed=7 PutRecords:fail-record%10      in every tenth PutRecords or so one record fails
//	*:delay=20ms, dynamodb.*:throttle%5   slow, and a lease table at its limit
//	GetRecords:expire-iterator@10+        from the tenth call on no iterator is good
//	PutRecords:commit-late=3s@2-4         three batches arrive behind their own retries
//	SubscribeToShard:cut-stream=2s        no subscription lives longer than two seconds
//	seed=7 orders:reshard=5s@1-10         ten splits and merges, one every five seconds
package fault
