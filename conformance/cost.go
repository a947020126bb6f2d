package main

import "fmt"

// cost describes a run against AWS: its streams, its duration and the units that AWS bills. It has
// no prices, since they change and differ between regions.
func cost(region string) string {
	return fmt.Sprintf(`A run makes these streams in %s, up to four at a time, and deletes
them at the end, also after an interrupt:

  stream       shards  purpose
  main              3  puts, lists, constraints
  reading           1  iterators and reads
  split         1 to 5  splits
  merge         3 to 4  a merge
  count         2 to 6  UpdateShardCount
  settings          1  tags, policy, encryption, retention, monitoring, record size
  fanout            1  enhanced fan-out, with up to 20 consumers
  fansplit, latest, enforced   1 to 3 each, with one consumer
  borders, inverted   3 and 2  refused splits and merges
  deleted, unborn   1, then 4  deletion
  demand            4  on-demand

A run takes about half an hour, and ten minutes more with --slow. AWS bills whole hours of shards.
The run uses at most 35 shard-hours, 30 consumer-shard-hours of enhanced fan-out, 2 hours of
on-demand streams, 2,000 PUT payload units of 25 KB, 100 MB of data in and 50 MB out of fan-out,
one hour of one enhanced shard-level metric, and some requests to KMS for the key
alias/aws/kinesis. It needs the permission kinesis:* on streams with names that begin with
"conformance-"; the list operations need it on all streams. It touches no other streams and does
not change the account (UpdateAccountSettings).
Prices: https://aws.amazon.com/kinesis/data-streams/pricing/
`, region)
}
