package awscbor_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/runneltest"
)

// BenchmarkGetRecords decodes one answer again and again: of small records, and of large ones as
// aggregates are.
func BenchmarkGetRecords(b *testing.B) {
	for _, c := range []struct {
		name         string
		calls, count int
		size         int
	}{{"100 bytes", 10, 500, 100}, {"50 KB", 1, 40, 50_000}, {"no records", 0, 0, 0}} {
		server := runneltest.NewServer(b, runneltest.WithStream("s", 1))
		for range c.calls {
			in := &kinesis.PutRecordsInput{StreamName: aws.String("s")}
			for n := range c.count {
				in.Records = append(in.Records, types.PutRecordsRequestEntry{
					PartitionKey: aws.String("key-" + strconv.Itoa(n)), Data: make([]byte, c.size),
				})
			}
			if _, err := server.Kinesis().PutRecords(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		}
		api := &replay{client: server.Kinesis()}
		it, err := api.GetShardIterator(b.Context(), &kinesis.GetShardIteratorInput{
			StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"),
			ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
		})
		if err != nil {
			b.Fatal(err)
		}
		in := &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator}
		for _, format := range []string{"json", "cbor"} {
			b.Run(c.name+"/"+format, func(b *testing.B) {
				client := awscbor.New(api)
				b.SetBytes(int64(c.calls * c.count * c.size))
				b.ReportAllocs()
				for b.Loop() {
					var out *kinesis.GetRecordsOutput
					var err error
					if format == "cbor" {
						out, err = client.GetRecords(b.Context(), in)
					} else {
						out, err = api.GetRecords(b.Context(), in)
					}
					if err != nil || len(out.Records) != c.calls*c.count {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// replay makes each call once for a content type, and repeats its answer.
type replay struct {
	client  *kinesis.Client
	answers map[string]*http.Response
	bodies  map[string][]byte
}

func (r *replay) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput, options ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	return r.client.GetShardIterator(ctx, in, options...)
}

func (r *replay) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	return r.client.GetRecords(ctx, in, append(options, func(o *kinesis.Options) {
		o.HTTPClient = replayed{r, o.HTTPClient}
	})...)
}

type replayed struct {
	*replay
	client kinesis.HTTPClient
}

func (r replayed) Do(req *http.Request) (*http.Response, error) {
	kind := req.Header.Get("Content-Type")
	if r.answers[kind] == nil {
		resp, err := r.client.Do(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if r.replay.answers == nil {
			r.replay.answers, r.replay.bodies = map[string]*http.Response{}, map[string][]byte{}
		}
		r.replay.answers[kind], r.replay.bodies[kind] = resp, body
	}
	again := *r.answers[kind]
	again.Body = io.NopCloser(bytes.NewReader(r.bodies[kind]))
	return &again, nil
}
