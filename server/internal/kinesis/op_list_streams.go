package kinesis

import (
	"context"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type listStreamsInput struct {
	Limit                    *integer
	ExclusiveStartStreamName *string
	NextToken                *string
}

const defaultListStreams = 100

func (in *listStreamsInput) validate(v *violations) {
	if in.NextToken != nil && in.ExclusiveStartStreamName != nil {
		v.fail(invalid("NextToken and ExclusiveStartStreamName cannot be provided together."))
	}
}

type listStreamsOutput struct {
	StreamNames     []string
	HasMoreStreams  bool
	NextToken       *string `json:",omitempty"`
	StreamSummaries []streamListing
}

type streamListing struct {
	StreamName              string
	StreamARN               string
	StreamStatus            string
	StreamModeDetails       modeDescription
	StreamCreationTimestamp timestamp
}

// listStreams lists the world's streams by name.
func (s *Service) listStreams(
	ctx context.Context, world wire.World, in *listStreamsInput,
) (any, error) {
	streams, now, err := s.streams.viewAll(ctx, world)
	if err != nil {
		return nil, err
	}
	after, limit := "", defaultListStreams
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	if in.ExclusiveStartStreamName != nil {
		after = *in.ExclusiveStartStreamName
	}
	sealer := s.sealer.Load()
	if in.NextToken != nil {
		p, err := sealer.openPage(sealStreamsPage, world, *in.NextToken, now)
		if err != nil {
			return nil, err
		}
		after = p.After
	}
	streams = slices.DeleteFunc(streams,
		func(st *catalogue.Stream) bool { return st.Name <= after })
	out := listStreamsOutput{StreamNames: []string{}, StreamSummaries: []streamListing{}}
	if len(streams) > limit {
		streams = streams[:limit]
		out.HasMoreStreams = true
		last := page{Issued: now.Elapsed, After: streams[limit-1].Name}
		if out.NextToken, err = sealer.sealPage(sealStreamsPage, world, last); err != nil {
			return nil, err
		}
	}
	for _, st := range streams {
		out.StreamNames = append(out.StreamNames, st.Name)
		out.StreamSummaries = append(out.StreamSummaries, streamListing{
			StreamName:              st.Name,
			StreamARN:               st.ARN(),
			StreamStatus:            st.Status(now),
			StreamModeDetails:       modeDescription{st.Mode},
			StreamCreationTimestamp: timestamp(st.Created),
		})
	}
	return &out, nil
}

// viewAll is view for all streams of a world, by name.
func (s *streams) viewAll(
	ctx context.Context, world wire.World,
) (streams []*catalogue.Stream, now moment, err error) {
	var seen wal.LSN
	s.catalogue.Read(func() {
		now = s.clock.read()
		seen = s.catalogue.LSN()
		for st := range s.catalogue.All() {
			if st.World == world && !st.Gone(now) {
				streams = append(streams, st)
			}
		}
	})
	slices.SortFunc(streams, func(a, b *catalogue.Stream) int {
		return strings.Compare(a.Name, b.Name)
	})
	return streams, now, s.log.Wait(ctx, seen)
}
