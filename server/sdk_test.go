package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/server"
)

// TestSDKOverH2C: the largest PutRecords, many at a time over one connection with prior
// knowledge, as Java's and JavaScript's clients send them to an http:// endpoint.
func TestSDKOverH2C(t *testing.T) {
	v := serve(t, server.Config{
		Memory: true, MaxBodies: 40 << 20, // so that some of the calls have to wait
		Streams: []server.StreamSpec{{Name: "s", Shards: 1}},
	})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	c := client{Client: kinesis.New(v.Options(), func(o *kinesis.Options) {
		o.HTTPClient = &http.Client{Transport: transport}
	})}
	texts := make([]string, 10)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprint(i), 1000<<10)
	}
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			out, err := c.put(t.Context(), texts...)
			if err != nil || *out.FailedRecordCount != 0 {
				t.Errorf("%v, %v", out, err)
			}
		})
	}
	calls.Wait()
	iterator, err := c.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{
		StreamName: aws.String("s"), ShardId: aws.String("shardId-000000000000"),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for next := iterator.ShardIterator; read < 4*len(texts); {
		got, err := c.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: next})
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range got.Records {
			if len(record.Data) != 1000<<10 {
				t.Errorf("a record of %d bytes", len(record.Data))
			}
		}
		read += len(got.Records)
		next = got.NextShardIterator
	}
}
