package consumer_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/sink/archive"
)

// If the retention period is shortened while a reader is far behind, the stream removes unread
// records, and the reader's iterator stays good: that is a gap.
func TestGapOfAShorterRetention(t *testing.T) {
	onRetained(t, func(r *retained) {
		name := aws.String("orders")
		if _, err := r.server.Kinesis().IncreaseStreamRetentionPeriod(r.Context(),
			&kinesis.IncreaseStreamRetentionPeriodInput{
				StreamName: name, RetentionPeriodHours: aws.Int32(72),
			}); err != nil {
			r.Fatal(err)
		}
		for range 60 {
			r.put(1)
			<-time.After(time.Hour)
		}
		r.api = &hooked{KinesisAPI: r.api, op: "GetRecords", nth: 4, do: func() {
			if _, err := r.server.Kinesis().DecreaseStreamRetentionPeriod(r.Context(),
				&kinesis.DecreaseStreamRetentionPeriodInput{
					StreamName: name, RetentionPeriodHours: aws.Int32(24),
				}); err != nil {
				r.Error(err)
			}
		}}
		r.mustRun(0, r.archiving, func(c *consumer.Config) { c.MaxRecords = 2 })
		report, err := archive.Verify(r.Context(), r.dir, archive.VerifyOptions{})
		if err != nil {
			r.Fatal(err)
		}
		if report.Gaps.Count != 1 || report.Records > 32 {
			r.Errorf("%d records, gaps: %q", report.Records, report.Gaps.Examples)
		}
	})
}
