package keys

import (
	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/chart"
	"github.com/runnel-stream/runnel/internal/measure"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// shownSkew is the result of `keys skew` in the form that is printed.
type shownSkew struct {
	flags   *skewFlags
	files   bool
	ids     map[keyspace.Range]runnel.ShardID // of a stream's shards; nil for those of new streams
	seen    *measure.Load
	reports []chart.Skew   // of the layouts
	alone   []load.HotName // each alone is above a shard's limit
}

// skewLine is a skew as it is printed. Loads are bytes or records.
type skewLine struct {
	Stream  string       `json:"stream,omitempty"`
	Unit    string       `json:"unit"`
	Total   float64      `json:"total"`
	Records uint64       `json:"records"`           // of Kinesis, or lines
	Bytes   uint64       `json:"bytes"`             // of these
	Seconds float64      `json:"seconds,omitempty"` // in which it arrives, if that is known
	Limit   float64      `json:"limit,omitempty"`   // of a shard in that time
	Layouts []skewLayout `json:"layouts"`
	Hot     []skewKey    `json:"hot"`

	shown   *shownSkew
	columns int // of the text
}

// skewLayout is the distribution of a load over the shards of a layout.
type skewLayout struct {
	Peak       float64     `json:"peak"`
	Mean       float64     `json:"mean"`
	PeakToMean float64     `json:"peakToMean"`
	Gini       float64     `json:"gini"`
	OverLimit  int         `json:"overLimit"` // shards
	Shards     []skewShard `json:"shards"`
}

type skewShard struct {
	ShardID string  `json:"shardId"`
	Load    float64 `json:"load"`
}

// skewKey is one of the heaviest keys; its true load is from AtLeast to AtMost.
type skewKey struct {
	Key     string  `json:"key"`
	HashKey string  `json:"hashKey"`
	ShardID string  `json:"shardId,omitempty"` // of one layout
	AtLeast float64 `json:"atLeast"`
	AtMost  float64 `json:"atMost"`
	Alone   bool    `json:"alone"` // above a shard's limit: no split will help
}

// take makes the reports of the observed load.
func (s *shownSkew) take(seen *measure.Load) {
	s.seen = seen
	limit := uint64(0)
	if seen.Took > 0 {
		limit = max(1, uint64(s.flags.Target*s.flags.Limit(seen.Took)))
	}
	for i, skew := range seen.Skews {
		top := s.flags.Top
		if i == 0 {
			top = measure.Counters
		}
		report := chart.Skew{Report: skew.Report(limit, top)}
		for at := range report.Shards {
			report.Names = append(report.Names, s.short(report, at))
		}
		s.reports = append(s.reports, report)
	}
	first := &s.reports[0]
	for _, hot := range first.Hot {
		if hot.Alone {
			s.alone = append(s.alone, hot)
		}
	}
	first.Hot = first.Hot[:min(s.flags.Top, len(first.Hot))]
	for len(first.Hot) > 0 && unsure(first.Hot[len(first.Hot)-1]) {
		first.Hot = first.Hot[:len(first.Hot)-1]
	}
}

// unsure reports whether most of a key's counted weight may belong to other keys.
func unsure(n load.HotName) bool { return n.Error > n.AtLeast() }

// id is the id of a shard.
func (s *shownSkew) id(report chart.Skew, shard int) string {
	if id, known := s.ids[report.Shards[shard].Range]; known {
		return string(id)
	}
	return shardid.Of(uint32(shard))
}

// short is the number in a shard's id.
func (s *shownSkew) short(report chart.Skew, shard int) string {
	return shardid.Short(s.id(report, shard))
}

// amount is a weight in bytes or records.
func (s *shownSkew) amount(weight uint64) float64 {
	if s.flags.By == "records" {
		return float64(weight) / measure.RecordWeight
	}
	return float64(weight)
}

// format formats a weight, as a rate if the time is known.
func (s *shownSkew) format(weight uint64) string {
	if s.seen.Took > 0 {
		return s.flags.PerSecond(weight, s.seen.Took)
	}
	return s.flags.Flags.Amount(float64(weight))
}

// scale returns the factor that converts a weight to the unit of a picture.
func (s *shownSkew) scale() (scale float64, unit string) {
	if scale = 1; s.seen.Took > 0 {
		scale = 1 / s.seconds()
	}
	switch peak := scale * float64(s.reports[0].Peak); {
	case s.flags.By == "records":
		scale, unit = scale/measure.RecordWeight, "records"
	case peak < 1<<10:
		unit = "B"
	case peak < 1<<20:
		scale, unit = scale/(1<<10), "KiB"
	default:
		scale, unit = scale/(1<<20), "MiB"
	}
	if s.seen.Took > 0 {
		unit += "/s"
	}
	return scale, unit
}

func (s *shownSkew) seconds() float64 { return s.seen.Took.Seconds() }

// line is the skew as it is printed.
func (s *shownSkew) line() skewLine {
	line := skewLine{
		shown:  s,
		Stream: streamref.Name(s.flags.stream), Unit: s.flags.By,
		Total:   s.amount(s.reports[0].Total),
		Records: s.seen.Records, Bytes: s.seen.Bytes,
		Seconds: s.seconds(), Limit: s.amount(s.reports[0].Limit), Hot: []skewKey{},
	}
	for _, r := range s.reports {
		layout := skewLayout{
			Peak: s.amount(r.Peak), Mean: s.amount(1) * r.Mean, PeakToMean: r.PeakToMean,
			Gini: r.Gini, OverLimit: r.Over,
		}
		for i, shard := range r.Shards {
			layout.Shards = append(layout.Shards,
				skewShard{ShardID: s.id(r, i), Load: s.amount(shard.Weight)})
		}
		line.Layouts = append(line.Layouts, layout)
	}
	for _, hot := range s.reports[0].Hot {
		key := skewKey{
			Key: hot.Name, HashKey: hot.Hash.String(), AtLeast: s.amount(hot.AtLeast()),
			AtMost: s.amount(hot.Weight), Alone: hot.Alone,
		}
		if len(s.reports) == 1 {
			key.ShardID = s.id(s.reports[0], hot.Shard)
		}
		line.Hot = append(line.Hot, key)
	}
	return line
}
