package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

type describeSummaryInput struct{ target }

// streamSummary is the members that StreamDescriptionSummary and StreamDescription share.
type streamSummary struct {
	StreamName              string
	StreamARN               string
	StreamStatus            string
	StreamModeDetails       modeDescription
	RetentionPeriodHours    int64
	StreamCreationTimestamp timestamp
	EnhancedMonitoring      []monitoringDescription
	EncryptionType          string
	KeyID                   string `json:"KeyId,omitempty"`
}

type modeDescription struct{ StreamMode string }

type monitoringDescription struct{ ShardLevelMetrics []string }

func summarise(st *catalogue.Stream, now moment) streamSummary {
	return streamSummary{
		StreamName:              st.Name,
		StreamARN:               st.ARN(),
		StreamStatus:            st.Status(now),
		StreamModeDetails:       modeDescription{st.Mode},
		RetentionPeriodHours:    st.Retention,
		StreamCreationTimestamp: timestamp(st.Created),
		EnhancedMonitoring: []monitoringDescription{{
			ShardLevelMetrics: append([]string{}, st.Monitoring...),
		}},
		EncryptionType: st.EncryptionType(),
		KeyID:          st.KeyID,
	}
}

type describeStreamSummaryOutput struct {
	StreamDescriptionSummary struct {
		streamSummary
		OpenShardCount     int
		ConsumerCount      int
		WarmThroughput     *warmThroughput `json:",omitempty"`
		MaxRecordSizeInKiB int64
	}
}

func (s *Service) describeStreamSummary(
	ctx context.Context, world wire.World, in *describeSummaryInput,
) (any, error) {
	st, now, err := s.streams.viewTarget(ctx, world, &in.target)
	if err != nil {
		return nil, err
	}
	a, _, err := s.streams.viewAccount(ctx, world)
	if err != nil {
		return nil, err
	}
	var out describeStreamSummaryOutput
	summary := &out.StreamDescriptionSummary
	summary.streamSummary = summarise(st, now)
	summary.ConsumerCount = len(st.ConsumersAt(now))
	summary.WarmThroughput = warmThroughputOf(st, a, now)
	summary.MaxRecordSizeInKiB = st.MaxRecord
	for _, sh := range st.Listed(now) {
		if sh.IsOpen() {
			summary.OpenShardCount++
		}
	}
	return &out, nil
}
