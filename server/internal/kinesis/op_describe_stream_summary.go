package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
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

func summarise(st *stream, now int64) streamSummary {
	return streamSummary{
		StreamName:              st.Name,
		StreamARN:               st.arn(),
		StreamStatus:            st.status(now),
		StreamModeDetails:       modeDescription{st.Mode},
		RetentionPeriodHours:    st.Retention,
		StreamCreationTimestamp: timestamp(st.Created),
		EnhancedMonitoring: []monitoringDescription{{
			ShardLevelMetrics: append([]string{}, st.Monitoring...),
		}},
		EncryptionType: st.encryption(),
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
	st, now, err := s.viewTarget(ctx, world, &in.target)
	if err != nil {
		return nil, err
	}
	a, _, err := s.viewAccount(ctx, world)
	if err != nil {
		return nil, err
	}
	var out describeStreamSummaryOutput
	summary := &out.StreamDescriptionSummary
	summary.streamSummary = summarise(st, now)
	summary.ConsumerCount = len(st.consumers(now))
	summary.WarmThroughput = st.warmThroughput(a, now)
	summary.MaxRecordSizeInKiB = st.MaxRecord
	for _, sh := range st.listed(now) {
		if sh.open() {
			summary.OpenShardCount++
		}
	}
	return &out, nil
}
