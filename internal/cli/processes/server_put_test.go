package processes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

const (
	bulkPrefix = "bulk-"
	// bulkRecords is the highest number of large records of a seed: about 150 MB. The log's files
	// have 64 MiB, so the log is checkpointed.
	bulkRecords = 640
	bulkBatch   = 16
)

// writer puts records, one or some at a time. Of those that had no answer it sends every other
// one again.
func (r *serverRun) writer(name string, n int) func() outcome {
	random := r.source(name)
	serial := 0
	var again []string
	next := func() string {
		if len(again) > 0 && random.IntN(2) == 0 {
			id := again[0]
			again = again[1:]
			return id
		}
		serial++
		return fmt.Sprintf("%s-%d", name, serial)
	}
	return func() outcome {
		ids := make([]string, 1)
		if n%2 == 0 {
			ids = make([]string, 1+random.IntN(20))
		}
		for i := range ids {
			ids[i] = next()
		}
		o := r.put("events", ids)
		if o == unanswered {
			for _, id := range ids {
				if random.IntN(2) == 0 {
					again = append(again, id)
				}
			}
		}
		return o
	}
}

// bulkWriter puts large records until there was a checkpoint.
func (r *serverRun) bulkWriter() func() outcome {
	serial := 0
	return func() outcome {
		if serial >= bulkRecords || r.checkpointed.Load() {
			r.pause(20 * time.Millisecond)
			return done
		}
		ids := make([]string, bulkBatch)
		for i := range ids {
			serial++
			ids[i] = fmt.Sprint(bulkPrefix, serial)
		}
		return r.put("bulk", ids)
	}
}

// put stores records: one with PutRecord, several with PutRecords.
func (r *serverRun) put(stream string, ids []string) outcome {
	in := &kinesis.PutRecordsInput{StreamName: aws.String(stream)}
	for _, id := range ids {
		key, data := content(id)
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(key), Data: data,
		})
	}
	before := r.records.begin(ids)
	var results []types.PutRecordsResultEntry
	o := r.call("put to "+stream, nil, func(ctx context.Context) error {
		if len(ids) == 1 {
			got, err := r.kinesis.PutRecord(ctx, &kinesis.PutRecordInput{
				StreamName: in.StreamName, PartitionKey: in.Records[0].PartitionKey,
				Data: in.Records[0].Data,
			})
			if err == nil {
				results = []types.PutRecordsResultEntry{{
					ShardId: got.ShardId, SequenceNumber: got.SequenceNumber,
				}}
			}
			return err
		}
		got, err := r.kinesis.PutRecords(ctx, in)
		if err == nil {
			results = got.Records
		}
		return err
	})
	if o != done {
		r.records.end(ids, o)
		return o
	}
	if len(results) != len(ids) {
		r.t.Errorf("%d results of %d records", len(results), len(ids))
		return o
	}
	for i, result := range results {
		if result.ErrorCode != nil { // there is no limit that could refuse it
			r.t.Errorf("put %s: %s, %s", ids[i], *result.ErrorCode, *result.ErrorMessage)
			continue
		}
		at := place{stream + "/" + *result.ShardId, *result.SequenceNumber}
		r.records.acknowledge(ids[i], at, before)
	}
	return o
}
