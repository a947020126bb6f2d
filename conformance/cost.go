package main

import "fmt"

// cost says what a run against AWS makes, for how long, and in which units AWS counts it. There
// are no prices here: they change, and differ between regions.
func cost(region string) string {
	return fmt.Sprintf(`A run makes these streams in %s, one after the other or some at a time, and
deletes them at the end, also after an interrupt:

  stream       shards  what for
  main              3  puts, lists, constraints
  reading           1  iterators and reads
  split         1 to 5  splits
  merge         3 to 4  a merge
  count         2 to 6  UpdateShardCount
  settings          1  tags, policy, encryption, retention, monitoring, record size
  fanout            1  enhanced fan-out, with up to 20 consumers
  fansplit, latest, enforced   1 to 3 each, with one consumer
  borders, inverted   3 and 2  what splits and merges refuse
  deleted, unborn   1, then 4  deletion
  demand            4  on-demand

How long: about half an hour in all, with --slow ten minutes more; AWS counts whole hours of
shards. At most: 35 shard-hours, 30 consumer-shard-hours of enhanced fan-out, 2 hours of
on-demand streams, 2,000 PUT payload units of 25 KB, 100 MB of data in and 50 MB out of fan-out,
one hour of one enhanced shard-level metric, and some requests to KMS for the key
alias/aws/kinesis. It needs the permission kinesis:* on streams whose names begin with
"conformance-", and for the lists on all; it touches no others. What changes the account itself
(UpdateAccountSettings) is not asked. Prices: https://aws.amazon.com/kinesis/data-streams/pricing/
`, region)
}
