package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/measure"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
)

// autoscalePrinter prints the events of autoscale. It is used by one goroutine.
type autoscalePrinter struct {
	con    *console.Console
	stream string
	yes    bool
	names  map[keyspace.Range]runnel.ShardID // of the last sample
	amid   bool                              // of the steps of a change
	err    error                             // of the output
}

// autoscaleLine is an event as it is printed.
type autoscaleLine struct {
	Time   time.Time `json:"time"`
	Event  string    `json:"event"`
	Stream string    `json:"stream"`
	// The fields of a decision.
	Action  string         `json:"action,omitempty"`
	Shards  int            `json:"shards,omitempty"` // open ones; of applied, after it
	Seen    *autoscaleSeen `json:"seen,omitempty"`
	Reasons []string       `json:"reasons,omitempty"`
	Plan    *plan.Plan     `json:"plan,omitempty"`
	Step    string         `json:"step,omitempty"`
	State   string         `json:"state,omitempty"`
	Number  int            `json:"number,omitempty"`
	Of      int            `json:"of,omitempty"`
	Error   string         `json:"error,omitempty"`

	event reshard.Event
	names map[keyspace.Range]runnel.ShardID // of the shards before the plan
	yes   bool                              // the plan is applied
}

// autoscaleSeen is the observed load of a window.
type autoscaleSeen struct {
	Seconds float64 `json:"seconds"`
	Records uint64  `json:"records"` // Kinesis records
	Bytes   uint64  `json:"bytes"`   // of their data and partition keys
	Refused uint64  `json:"refused"` // attempts, from --throttles
	Peak    float64 `json:"peak"`    // of the most loaded shard, as a fraction of its limit
}

func (p *autoscalePrinter) print(e reshard.Event) {
	if e.Kind == reshard.EventDecided {
		p.names = measure.ShardIDs(e.Sample.Shards)
	}
	p.amid = e.Kind == reshard.EventStepped && !(e.State == reshard.StepDone && e.Number == e.Of)
	if p.err != nil {
		return
	}
	switch {
	case p.con.JSON():
	case e.Kind == reshard.EventStepped:
		p.con.Say("%d of %d %s: %s", e.Number, e.Of, e.State, stepLine(e.Step, p.names))
		return
	case e.Kind == reshard.EventFailed:
		p.con.Say("%s  %v; going on", clock(e.At), e.Err)
		return
	}
	p.err = rows.Print(p.con.Out, p.con.JSON(), p.line(e))
}

// WriteText implements rows.Report, for decisions and for plans that were applied. The text of the
// other events is progress, on standard error.
func (l autoscaleLine) WriteText(w io.Writer) error {
	var err error
	switch l.event.Kind {
	case reshard.EventDecided:
		_, err = io.WriteString(w, l.decided())
	case reshard.EventApplied:
		_, err = fmt.Fprintf(w, "%s  done: %s now\n", clock(l.event.At), openShards(l.Shards))
	}
	return err
}

// decided returns a decision as lines.
func (l autoscaleLine) decided() string {
	e := l.event
	var text strings.Builder
	seconds := e.Observed.Took.Seconds()
	fmt.Fprintf(&text, "%s  %s: %s, %s/s, %s records/s", clock(e.At), e.Decision.Action,
		openShards(len(e.Decision.Plan.Open)), binaryRate(float64(e.Observed.Bytes)/seconds),
		console.Thousands(int64(float64(e.Observed.Records)/seconds+0.5)))
	if n := e.Sample.Throttled.Refused; n > 0 {
		fmt.Fprintf(&text, ", %s attempts refused", console.Thousands(n))
	}
	if percent := measure.GuessedPercent(e.Observed); percent >= 1 {
		fmt.Fprintf(&text, ", %.0f%% of it with explicit hash keys, at guessed places", percent)
	}
	text.WriteByte('\n')
	for _, reason := range e.Decision.Reasons {
		fmt.Fprintf(&text, "            %s\n", reason)
	}
	if l.yes {
		return text.String()
	}
	for _, step := range e.Decision.Plan.Steps {
		fmt.Fprintf(&text, "          would %s\n", stepLine(step, l.names))
	}
	return text.String()
}

func (p *autoscalePrinter) line(e reshard.Event) autoscaleLine {
	line := autoscaleLine{
		Time: e.At.UTC(), Event: string(e.Kind), Stream: p.stream,
		event: e, names: p.names, yes: p.yes,
	}
	switch e.Kind {
	case reshard.EventDecided:
		line.Action, line.Reasons = string(e.Decision.Action), e.Decision.Reasons
		line.Shards = len(e.Decision.Plan.Open)
		line.Seen = &autoscaleSeen{
			Seconds: e.Observed.Took.Seconds(), Records: e.Observed.Records,
			Bytes: e.Observed.Bytes, Refused: e.Sample.Throttled.Refused, Peak: e.Decision.Peak,
		}
		if e.Decision.Action != reshard.ActionHold {
			line.Plan = &e.Decision.Plan
		}
	case reshard.EventStepped:
		line.Step, line.State = stepLine(e.Step, p.names), string(e.State)
		line.Number, line.Of = e.Number, e.Of
	case reshard.EventApplied:
		line.Shards = len(e.Decision.Plan.Final)
	case reshard.EventFailed:
		line.Error = e.Err.Error()
	}
	return line
}

func clock(at time.Time) string { return at.Local().Format(time.TimeOnly) }

func openShards(n int) string {
	if n == 1 {
		return "1 open shard"
	}
	return console.Thousands(n) + " open shards"
}

// binaryRate formats bytes, in the unit that suits a shard.
func binaryRate(bytes float64) string {
	if bytes < 100<<10 {
		return fmt.Sprintf("%.1f KiB", bytes/(1<<10))
	}
	return fmt.Sprintf("%.2f MiB", bytes/(1<<20))
}
