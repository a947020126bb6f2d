package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/chart"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/measure"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// planLine is a plan as it is printed. Its JSON is read by apply.
type planLine struct {
	Stream string     `json:"stream"`
	Plan   *plan.Plan `json:"plan"`
	Cost   planCost   `json:"cost"`
	Load   *planLoad  `json:"load,omitempty"` // none for a plan without load

	names    map[keyspace.Range]runnel.ShardID // of the shards before the plan
	columns  int                               // of the text
	duration time.Duration                     // predicted
}

// planCost is the predicted cost of a plan.
type planCost struct {
	Steps           int     `json:"steps"`
	Seconds         float64 `json:"seconds"` // predicted
	ShardsBefore    int     `json:"shardsBefore"`
	ShardsAfter     int     `json:"shardsAfter"`
	ShardHoursDaily int     `json:"shardHoursADay"` // after it
}

// planLoad is the load that a plan was made for.
type planLoad struct {
	Unit       string   `json:"unit"` // of the plan's loads: bytes, or records/1000
	Seconds    float64  `json:"seconds"`
	Target     uint64   `json:"target"` // of a shard, in the unit, over the time
	Records    uint64   `json:"records"`
	Bytes      uint64   `json:"bytes"`
	PeakToMean float64  `json:"peakToMean"`
	Gini       float64  `json:"gini"`
	Hot        []hotKey `json:"hot,omitempty"`

	report load.Report
	text   func(uint64) string // a load a second
}

// hotKey is one of the heaviest keys.
type hotKey struct {
	Key   string  `json:"key"`
	Shard string  `json:"shard"`
	Share float64 `json:"share"` // of the whole load, at least
	// Alone: the key by itself is above a shard's target; no split will help.
	Alone bool `json:"alone"`
}

// printPlan prints a plan, with its load if that is known.
func (of *shardsOf) printPlan(p planLine, shards []runnel.Shard) error {
	p.Stream = of.name()
	p.duration = p.Plan.Duration(of.each)
	p.Cost = planCost{
		Steps: len(p.Plan.Steps), Seconds: p.duration.Seconds(),
		ShardsBefore: len(p.Plan.Open), ShardsAfter: len(p.Plan.Final),
		ShardHoursDaily: 24 * len(p.Plan.Final),
	}
	p.names, p.columns = measure.ShardIDs(shards), of.con.Columns()
	return rows.Print(of.con.Out, of.con.JSON(), p)
}

// WriteText implements rows.Report.
func (p planLine) WriteText(w io.Writer) error {
	var text strings.Builder
	if p.Load != nil {
		p.Load.print(&text, p.columns)
	}
	fmt.Fprintf(&text, "plan for stream %s: %d steps, about %s; shard hours a day: %s, then %s\n",
		p.Stream, p.Cost.Steps, p.duration.Round(time.Second),
		console.Thousands(24*p.Cost.ShardsBefore), console.Thousands(24*p.Cost.ShardsAfter))
	for i, step := range p.Plan.Steps {
		fmt.Fprintf(&text, "%5d  %s\n", i+1, stepLine(step, p.names))
	}
	if p.Load != nil && len(p.Plan.Steps) > 0 {
		after := chart.Skew{Report: load.Report{Total: p.Load.report.Total}}
		for _, shard := range p.Plan.Final {
			after.Peak = max(after.Peak, shard.Load)
			after.Shards = append(after.Shards,
				load.Shard{Range: shard.Range, Weight: shard.Load})
		}
		text.WriteString("then, with the same load:\n")
		text.WriteString(after.Bars(p.columns, p.Load.text))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// newPlanLoad returns the load that a plan was made for, as it is printed.
func newPlanLoad(
	seen *measure.Load, f *planFlags, goal plan.Goal, shards []runnel.Shard,
) *planLoad {
	report := seen.Skews[0].Report(goal.Target, f.Top)
	l := &planLoad{
		Unit: "bytes", Seconds: seen.Took.Seconds(), Target: goal.Target, Records: seen.Records,
		Bytes: seen.Bytes, PeakToMean: report.PeakToMean, Gini: report.Gini, report: report,
		text: func(load uint64) string { return f.PerSecond(load, seen.Took) },
	}
	if f.By == "records" {
		l.Unit = "records/1000"
	}
	names := measure.ShardIDs(shards)
	for _, hot := range report.Hot {
		key := hotKey{Key: hot.Name, Alone: hot.Alone}
		key.Share = float64(hot.AtLeast()) / float64(max(1, report.Total))
		key.Shard = string(names[report.Shards[hot.Shard].Range])
		l.Hot = append(l.Hot, key)
	}
	return l
}

func (l *planLoad) print(text *strings.Builder, columns int) {
	fmt.Fprintf(text, "seen: %s records, %s in %s; a shard should have at most %s\n",
		console.Thousands(l.Records), console.MiB(int64(l.Bytes)),
		time.Duration(l.Seconds*float64(time.Second)).Round(time.Second/10), l.text(l.Target))
	text.WriteString(chart.Skew{Report: l.report}.Bars(columns, l.text))
	fmt.Fprintf(text, "peak to mean %.2f, Gini %.2f\n", l.PeakToMean, l.Gini)
	for _, hot := range l.Hot {
		note := ""
		if hot.Alone {
			note = "; it is above the target alone: no split will help, only more partition keys"
		}
		fmt.Fprintf(text, "hot: %q, %.1f%% of all, in %s%s\n",
			hot.Key, 100*hot.Share, hot.Shard, note)
	}
}

// stepLine describes a step, with the ids of the shards that exist already.
func stepLine(step plan.Step, names map[keyspace.Range]runnel.ShardID) string {
	text := step.String()
	for _, r := range step.From {
		if id, there := names[r]; there {
			text = strings.Replace(text, r.String(), string(id), 1)
		}
	}
	return text
}
