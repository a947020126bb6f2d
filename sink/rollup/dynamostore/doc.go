// Package dynamostore keeps the rows of a rollup in a DynamoDB table.
//
// The hash key is "pk", the text of rollup.Definition.RowKey. An item has these attributes besides:
//
//   - one for each key and column of the definition: N for an Int, S for a Text. A Double is N, and
//     S with the same digits if DynamoDB's numbers do not reach it: they end at 1e126 and near
//     1e-130, and doubles at 1.8e308 and 5e-324;
//   - bucket (S): the bucket's beginning, as 2026-01-02T03:04:00Z; absent without a bucket;
//   - last_order (S): the rollup.Order of the last record;
//   - version (N) and entries (M of S): see rollup.StoredRow;
//   - expires (N): seconds since the Unix epoch; absent without a TTL. DynamoDB deletes such items
//     once the table's time to live is on for this attribute (UpdateTimeToLive), and `runnel serve`
//     deletes none.
//
// A write replaces the whole item. The item with the key "\table" has the table's setup. A second
// table, with "_bad" behind the name, has the bad records; see Store.KeepBad.
package dynamostore
