package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
)

type leaseStatusFlags struct {
	leaseFlags
	desired bool
	within  time.Duration
}

func leaseStatusCommand(con *console.Console) *cobra.Command {
	f := &leaseStatusFlags{}
	command := &cobra.Command{
		Use:   "status --app NAME",
		Short: "Sum up a fleet: its backlog, when that is gone, and the workers that it needs",
		Long: `Sum up a fleet: its backlog, when that is gone, and the workers that it needs.

With --desired-workers it prints that number alone, for an autoscaler: by their measured rate, so
many workers keep up with the records that arrive and empty the backlog within --within, and no
fewer do. It is at least 1, and at most the number of shards. Without a measured rate it is the
present number.

Runnel's workers measure the load and write it into the rows; the command reads these alone. The
backlog is the time that a shard is behind, times the rate at which its records arrived. A worker's
rate is that of the workers that are behind; if none is, it is extrapolated from the share of the
time in which handlers ran. The command assumes that records go on to arrive as they did, that
workers are alike, and that a worker's rate does not depend on the number of its shards. See
docs/fleet.md.`,
		Example: `  runnel leases status --local --app printers
  runnel leases status --local --app printers --desired-workers --within 5m`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runLeaseStatus(c.Context(), con, f)
		},
	}
	f.addFlags(command)
	command.Flags().BoolVar(&f.desired, "desired-workers", false,
		"print the number of workers that the fleet should have, and nothing else")
	command.Flags().DurationVar(&f.within, "within", 10*time.Minute,
		"the time in which these workers should empty the backlog")
	return command
}

func runLeaseStatus(ctx context.Context, con *console.Console, f *leaseStatusFlags) error {
	if f.within <= 0 {
		return exit.Usage("--within is %s: want more than 0", f.within)
	}
	table, err := f.open(ctx)
	if err != nil {
		return err
	}
	leases, skipped, err := table.List(ctx)
	if err != nil {
		return exit.Outside(fmt.Errorf("list the leases: %w", err))
	}
	for _, s := range skipped {
		con.Say("a row that cannot be read: %s", s)
	}
	now := time.Now()
	o := outlookOf(leases, now, f.within)
	for _, id := range o.hot {
		con.Say("%s needs more than one worker's rate: split it", id)
	}
	if o.unknown > 0 {
		con.Say("%d shards have no measurement yet: they count as average ones", o.unknown)
	}
	if o.perWorker == 0 && o.shards > 0 {
		con.Say("no worker has a measured rate yet")
	}
	if f.desired && !con.JSON() {
		if _, err := fmt.Fprintln(con.Out, o.desired); err != nil {
			return exit.Outside(err)
		}
		return nil
	}
	out := rows.New(con.Out, con.JSON())
	if err := out.Report(newLeaseStatus(f.app, o, now, f.within)); err != nil {
		return err
	}
	return out.Flush()
}

// leaseStatus is an outlook as leases status prints it.
type leaseStatus struct {
	App            string   `json:"app"`
	Workers        int      `json:"workers"`
	Shards         int      `json:"shards"`
	Unclaimed      int      `json:"unclaimed"`
	Unmeasured     int      `json:"unmeasured"`
	Behind         float64  `json:"behindSeconds"`
	Ingest         int64    `json:"bytesArrivingPerSecond"`
	Rate           int64    `json:"bytesProcessedPerSecond"`
	PerWorker      int64    `json:"workerBytesPerSecond"`
	Backlog        int64    `json:"backlogBytes"`
	Desired        int      `json:"desiredWorkers"`
	Within         float64  `json:"withinSeconds"`
	Hot            []string `json:"hot,omitempty"`
	EmptyInSeconds *float64 `json:"emptyInSeconds"` // null: never, as it is now
	EmptyAt        string   `json:"emptyAt,omitempty"`

	of     *outlook // for the text
	within time.Duration
}

func newLeaseStatus(app string, o outlook, now time.Time, within time.Duration) leaseStatus {
	s := leaseStatus{
		App: app, Workers: o.workers, Shards: o.shards, Unclaimed: o.unclaimed,
		Unmeasured: o.unknown, Behind: o.behind.Seconds(), Ingest: int64(o.ingest),
		Rate: int64(o.rate), PerWorker: int64(o.perWorker), Backlog: int64(o.backlog),
		Desired: o.desired, Within: within.Seconds(), of: &o, within: within,
	}
	for _, id := range o.hot {
		s.Hot = append(s.Hot, string(id))
	}
	if o.gone >= 0 {
		in := o.gone.Round(time.Second).Seconds()
		s.EmptyInSeconds = &in
		s.EmptyAt = now.Add(o.gone).UTC().Format(time.RFC3339)
	}
	return s
}

// WriteText implements rows.Report.
func (s leaseStatus) WriteText(w io.Writer) error {
	out := rows.New(w, false)
	out.Align()
	behind := "at the tip"
	if s.of.behind > atTip {
		behind = seconds(s.of.behind.Seconds()) + " (" + string(s.of.furthest) + ")"
	}
	backlog := size(s.of.backlog)
	switch {
	case s.of.behind <= atTip:
		backlog = "none"
	case s.EmptyInSeconds == nil:
		backlog += ", which grows or stays as it is"
	default:
		backlog += ", gone in " + seconds(*s.EmptyInSeconds) + " (" + s.EmptyAt + ")"
	}
	perWorker := "not measured yet"
	if s.of.perWorker > 0 {
		perWorker = size(s.of.perWorker) + "/s"
	}
	for _, line := range []rows.Line{
		{"workers", strconv.Itoa(s.Workers)},
		{"shards", strconv.Itoa(s.Shards)},
		{"unclaimed", strconv.Itoa(s.Unclaimed)},
		{"behind", behind},
		{"arriving", size(s.of.ingest) + "/s"},
		{"processed", size(s.of.rate) + "/s"},
		{"a worker's rate", perWorker},
		{"backlog", backlog},
		{"desired workers", strconv.Itoa(s.Desired) + ", within " + s.within.String()},
	} {
		if err := out.Row(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// size is a number of bytes for people.
func size(bytes float64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if bytes < 1024 {
			return strconv.FormatFloat(bytes, 'f', 1, 64) + " " + unit
		}
		bytes /= 1024
	}
	return strconv.FormatFloat(bytes, 'f', 1, 64) + " GiB"
}
