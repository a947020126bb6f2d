package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/dynamo"
	"github.com/runnel-stream/runnel/server/internal/kinesis"
)

// For any number of tables, the page has a bounded size.
func TestAPageShowsSoManyTables(t *testing.T) {
	const hidden = 7
	sent := make(chan prometheus.Metric, 3*maxShownTables)
	collectTables(sent, make([]dynamo.Use, maxShownTables+hidden))
	close(sent)
	series := 0
	for metric := range sent {
		var text dto.Metric
		if err := metric.Write(&text); err != nil {
			t.Fatal(err)
		}
		switch metric.Desc() {
		case unitsDesc:
			series++
		case hiddenTablesDesc:
			if got := text.GetGauge().GetValue(); got != hidden {
				t.Errorf("%v tables are not shown, want %d", got, hidden)
			}
		}
	}
	if series != 2*maxShownTables {
		t.Errorf("%d series, want %d", series, 2*maxShownTables)
	}
}

// For any number of streams, the page has a bounded size, and says how many it leaves out.
func TestAPageShowsSoManyStreams(t *testing.T) {
	for streams, want := range map[int]struct{ shown, hidden int }{
		0: {}, 1: {1, 0}, maxShownStreams: {maxShownStreams, 0},
		maxShownStreams + 7: {maxShownStreams, 7},
	} {
		all := make([]kinesis.Activity, streams)
		for i := range all {
			all[i].Listed = kinesis.Listed{
				World: wire.World{Account: "000000000000", Region: "us-east-1"},
				Name:  fmt.Sprintf("s-%05d", i),
			}
			all[i].RecordsIn = 1
		}
		sent := make(chan prometheus.Metric, 10*(streams+1))
		collectStreams(sent, all)
		close(sent)
		got := map[string]int{}
		for metric := range sent {
			var text dto.Metric
			if err := metric.Write(&text); err != nil {
				t.Fatal(err)
			}
			name := strings.Split(metric.Desc().String(), `"`)[1]
			if len(text.GetLabel()) == 0 {
				got[name] = int(text.GetGauge().GetValue())
			} else {
				got[name+" series"]++
			}
		}
		if got["runnel_streams"] != streams || got["runnel_streams_not_shown"] != want.hidden ||
			got["runnel_stream_records_in_total series"] != want.shown ||
			got["runnel_stream_subscriptions series"] != want.shown {
			t.Errorf("%d streams: %v", streams, got)
		}
	}
}
