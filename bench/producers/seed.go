package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// The API's limits for a call (AWS, "PutRecords").
const (
	callRecords = 500
	callBytes   = 5 << 20
)

// seed is the published way to keep the order of a key. A call takes the first waiting record of
// each key, up to the oldest 500. The next call begins after the answer. Failed records stay.
type seed struct{ api *kinesis.Client }

func (s seed) put(
	ctx context.Context, stream string, events []event, most time.Duration,
) (result done, err error) {
	start := time.Now()
	// The events are in order, and linked by key, so that the first of each key is found at once.
	next := make([]int, len(events)) // the next event of the same key
	last := map[string]int{}
	var heads []int // the first event of each key, in order
	for i := range events {
		if before, ok := last[events[i].key]; ok {
			next[before] = i
		} else {
			heads = append(heads, i)
		}
		last[events[i].key] = i
	}
	for len(heads) > 0 && time.Since(start) < most {
		chosen := take(events, heads)
		failed, err := s.call(ctx, stream, events, chosen)
		if err != nil {
			return result, err
		}
		var again []int
		for i, at := range chosen {
			switch {
			case failed[i]:
				again = append(again, at)
			case next[at] > 0:
				again = append(again, next[at])
			}
			if !failed[i] {
				result.Records++
			}
		}
		heads = merge(again, heads[len(chosen):])
	}
	result.Seconds = time.Since(start).Seconds()
	return result, nil
}

// take returns the oldest heads that fit into one call.
func take(events []event, heads []int) []int {
	bytes := 0
	for n, at := range heads {
		bytes += len(events[at].key) + len(events[at].data)
		if n == callRecords || bytes > callBytes {
			return heads[:n]
		}
	}
	return heads
}

// merge merges two sorted lists.
func merge(again, rest []int) []int {
	all := append(again, rest...)
	slices.Sort(all)
	return all
}

// call puts the chosen events and returns those that failed.
func (s seed) call(
	ctx context.Context, stream string, events []event, chosen []int,
) ([]bool, error) {
	input := &kinesis.PutRecordsInput{StreamName: &stream}
	for _, at := range chosen {
		input.Records = append(input.Records, types.PutRecordsRequestEntry{
			PartitionKey: &events[at].key, Data: events[at].data,
		})
	}
	answer, err := s.api.PutRecords(ctx, input)
	if err != nil {
		return nil, err
	}
	if len(answer.Records) != len(chosen) {
		return nil, errors.New("the answer does not have one result for each record")
	}
	failed := make([]bool, len(chosen))
	for i := range answer.Records {
		failed[i] = answer.Records[i].ErrorCode != nil
	}
	return failed, nil
}
