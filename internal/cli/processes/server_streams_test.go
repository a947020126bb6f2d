package processes_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// streamBook records, for each stream name, the answers to its creation and its deletion. Each name
// is used for one stream only.
type streamBook struct {
	mu   sync.Mutex
	made map[string]streamFacts
}

type streamFacts struct {
	shards           int32
	created, deleted belief
}

// belief is a client's knowledge about the effect of a request.
type belief int

const (
	isNot belief = iota
	mayBe        // under way, or without an answer
	is           // acknowledged
)

func newStreamBook() *streamBook { return &streamBook{made: map[string]streamFacts{}} }

func (b *streamBook) set(name string, facts streamFacts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made[name] = facts
}

func (b *streamBook) copy() map[string]streamFacts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.made)
}

func (b *streamBook) count(tally map[string]int) {
	for _, facts := range b.copy() {
		if facts.created == is {
			tally["streams created"]++
		}
		if facts.deleted == is {
			tally["streams deleted"]++
		}
	}
}

// believe returns the belief after a call.
func believe(o outcome) belief {
	return map[outcome]belief{done: is, unanswered: mayBe}[o]
}

// streamMaker creates streams and deletes them again.
func (r *serverRun) streamMaker() func() outcome {
	random := r.source("streams")
	serial := 0
	var alive []string
	return func() outcome {
		r.pause(time.Duration(20+random.IntN(100)) * time.Millisecond)
		if len(alive) > 4 || (len(alive) > 0 && random.IntN(2) == 0) {
			i := random.IntN(len(alive))
			o := r.deleteStream(alive[i])
			if o == done {
				alive = append(alive[:i], alive[i+1:]...)
			}
			return o
		}
		serial++
		name := fmt.Sprint("passing-", serial)
		facts := streamFacts{shards: int32(1 + random.IntN(3)), created: mayBe}
		r.streams.set(name, facts)
		o := r.call("create a stream", nil, func(ctx context.Context) error {
			_, err := r.kinesis.CreateStream(ctx, &kinesis.CreateStreamInput{
				StreamName: aws.String(name), ShardCount: aws.Int32(facts.shards),
			})
			return err
		})
		facts.created = believe(o)
		r.streams.set(name, facts)
		if o == done || o == unanswered {
			alive = append(alive, name)
		}
		return o
	}
}

// deleteStream returns done also for a missing stream, if an earlier call may have deleted it.
func (r *serverRun) deleteStream(name string) outcome {
	facts := r.streams.copy()[name]
	gone := facts.created != is || facts.deleted != isNot
	codes := []string{}
	if gone {
		codes = append(codes, "ResourceNotFoundException", "ResourceInUseException")
	}
	before := facts.deleted
	facts.deleted = mayBe
	r.streams.set(name, facts)
	o := r.call("delete "+name, codes, func(ctx context.Context) error {
		_, err := r.kinesis.DeleteStream(ctx, &kinesis.DeleteStreamInput{
			StreamName: aws.String(name),
		})
		return err
	})
	facts.deleted = max(before, believe(o))
	r.streams.set(name, facts)
	if gone && o == refused {
		return done
	}
	return o
}

// listStreams returns the streams' statuses.
func (r *serverRun) listStreams() map[string]string {
	statuses := map[string]string{}
	more := true
	for after := (*string)(nil); more; {
		r.ask("list the streams", func(ctx context.Context) error {
			got, err := r.kinesis.ListStreams(ctx, &kinesis.ListStreamsInput{
				ExclusiveStartStreamName: after, Limit: aws.Int32(3),
			})
			if err != nil {
				return err
			}
			for _, st := range got.StreamSummaries {
				statuses[*st.StreamName] = string(st.StreamStatus)
				after = st.StreamName
			}
			more = *got.HasMoreStreams
			return nil
		})
	}
	return statuses
}

// checkStreams compares the existing streams with the requests.
func (r *serverRun) checkStreams(over bool) {
	if status := r.consumerStatus(); status != types.ConsumerStatusActive {
		r.t.Errorf("the consumer is %s", status)
	}
	before := r.streams.copy()
	listed := r.listStreams()
	after := r.streams.copy()
	for name, facts := range before {
		status, there := listed[name]
		if facts.created == is && after[name].deleted == isNot && (!there || status == "DELETING") {
			r.t.Errorf("the stream %s was created; its status is %q", name, status)
		}
		if facts.deleted == is && there && (over || status != "DELETING") {
			r.t.Errorf("the stream %s was deleted; its status is %q", name, status)
		}
		if over && there {
			r.checkShardCount(name, facts.shards)
		}
	}
	for _, name := range checkedStreams {
		if listed[name] == "" {
			r.t.Errorf("the stream %s is not there", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		if after[name].created == isNot {
			r.t.Errorf("the stream %s is there, and its creation was refused", name)
		}
	}
}

func (r *serverRun) checkShardCount(name string, want int32) {
	r.ask("describe "+name, func(ctx context.Context) error {
		got, err := r.kinesis.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{
			StreamName: aws.String(name),
		})
		if err == nil && *got.StreamDescriptionSummary.OpenShardCount != want {
			r.t.Errorf("the stream %s has %d shards, want %d", name,
				*got.StreamDescriptionSummary.OpenShardCount, want)
		}
		return err
	})
}
