package outbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/outbox"
)

// Rows near the largest record of any stream are relayed, as many at a time as the bounds have room
// for.
func TestLargeRows(t *testing.T) {
	each(t, func(b *box) {
		stream, err := b.server.Kinesis().DescribeStreamSummary(t.Context(),
			&kinesis.DescribeStreamSummaryInput{StreamName: new("orders")})
		b.must(err)
		_, err = b.server.Kinesis().UpdateMaxRecordSize(t.Context(), &kinesis.UpdateMaxRecordSizeInput{
			StreamARN: stream.StreamDescriptionSummary.StreamARN, MaxRecordSizeInKiB: new(int32(10240)),
		})
		b.must(err)
		text := strings.Repeat("x", 10<<20-1000)
		for n := range 3 {
			for k := range 4 {
				b.insert(outbox.Row{Key: fmt.Sprint("key", k), Data: fmt.Appendf(nil, "%q",
					fmt.Sprint(n+1, text))})
			}
		}
		b.must(b.once())
		b.wantEmpty()
		got := b.records()
		for k := range 4 {
			rows := got[fmt.Sprint("key", k)]
			for n := range rows {
				if !strings.HasPrefix(rows[n], fmt.Sprintf("\"%d", n+1)) {
					t.Errorf("row %d of key %d begins with %.10s", n+1, k, rows[n])
				}
			}
			if len(rows) != 3 {
				t.Errorf("%d rows of key %d", len(rows), k)
			}
		}
	})
}
