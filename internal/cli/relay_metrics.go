package cli

import (
	"fmt"
	"iter"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/metricspage"
	"github.com/runnel-stream/runnel/outbox"
)

// relayMetrics are the metrics of a relay.
var relayMetrics = []metricspage.Metric[outbox.Stats]{
	relayGauge(metricspage.RelayLeading, "1 if this relay has the lease, 0 if it is a standby.",
		func(s outbox.Stats) float64 {
			if s.Leading {
				return 1
			}
			return 0
		}),
	relayCounter(metricspage.RelayRowsSent, "Rows that are in the stream and were deleted.",
		func(s outbox.Stats) int64 { return s.Sent }),
	relayCounter(metricspage.RelayRowsDead, "Rows that became dead letters.",
		func(s outbox.Stats) int64 { return s.Dead }),
	relayCounter(metricspage.RelayInversions, "Rows that were put behind a later row of their key.",
		func(s outbox.Stats) int64 { return s.Inversions }),
	relayGauge(metricspage.RelayRows, "Rows that were read and are not deleted.",
		func(s outbox.Stats) float64 { return float64(s.Rows) }),
	relayGauge(metricspage.RelayBytes, "Bytes of the rows that were read and are not deleted.",
		func(s outbox.Stats) float64 { return float64(s.Bytes) }),
	relayGauge(metricspage.RelayJournalUnits, "Units in the journal.",
		func(s outbox.Stats) float64 { return float64(s.Units) }),
	relayGauge(metricspage.RelayHeldKeys, "Keys that are held.",
		func(s outbox.Stats) float64 { return float64(s.Held) }),
	relayGauge(metricspage.RelayPassedKeys, "Keys without room, whose rows are read later.",
		func(s outbox.Stats) float64 { return float64(s.PassedBy) }),
	relayGauge(metricspage.RelayOldestRowSeconds, "Age of the oldest row, read every 10 s.",
		func(s outbox.Stats) float64 { return s.OldestRow.Seconds() }),
	relayGauge(metricspage.RelayOldestTransactionSeconds,
		"Age of the oldest open transaction that the role can see, read every 10 s.",
		func(s outbox.Stats) float64 { return s.OldestTransaction.Seconds() }),
}

func relayGauge(
	name, help string, value func(outbox.Stats) float64,
) metricspage.Metric[outbox.Stats] {
	return metricspage.Metric[outbox.Stats]{Name: name, Help: help, Gauge: true, Value: value}
}

func relayCounter(
	name, help string, value func(outbox.Stats) int64,
) metricspage.Metric[outbox.Stats] {
	return metricspage.Metric[outbox.Stats]{
		Name: name, Help: help, Value: func(s outbox.Stats) float64 { return float64(value(s)) },
	}
}

// relayPage returns the page of a relay's metrics.
func relayPage(r *outbox.Relay, stream string) *metricspage.Page {
	page := metricspage.New()
	metricspage.AddEach(page, metricspage.StreamLabel, relayMetrics,
		func() iter.Seq2[string, outbox.Stats] {
			return func(yield func(string, outbox.Stats) bool) { yield(stream, r.Stats()) }
		})
	return page
}

// relayLine is the progress of a relay.
func relayLine(table string, s outbox.Stats, start time.Time) string {
	if s.Owner != "" {
		return fmt.Sprintf("relay of %s: %s has the lease", table, s.Owner)
	}
	line := fmt.Sprintf("relay of %s: %s rows sent, %s/s, %s on their way, %s units in the "+
		"journal, %s held keys, %s inversions", table, console.Thousands(s.Sent),
		console.Thousands(console.Rate(s.Sent, time.Since(start))), console.Thousands(s.Rows),
		console.Thousands(s.Units), console.Thousands(s.Held), console.Thousands(s.Inversions))
	if s.Dead > 0 {
		line += fmt.Sprintf(", %s dead letters", console.Thousands(s.Dead))
	}
	if s.OldestRow > 0 {
		line += fmt.Sprintf(", the oldest row %s old", s.OldestRow.Round(100*time.Millisecond))
	}
	if s.OldestTransaction > 0 {
		line += fmt.Sprintf(", the oldest transaction %s old",
			s.OldestTransaction.Round(100*time.Millisecond))
	}
	return line
}
