package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/lease"
)

func listLeasesCommand(con *console.Console) *cobra.Command {
	f := &leaseFlags{}
	command := &cobra.Command{
		Use:   "list --app NAME",
		Short: "List the leases: owners, positions, and how far behind they are",
		Long: `List the leases: their owners, positions, and how far behind the owners are.

BEHIND and RATE are as the owner measured them at its last write, AGE ago by its clock and this
one's. They are known of runnel's workers alone. PAUSED shards wait for runnel leases resume. The
stream is not read.`,
		Example: "  runnel leases list --local --app printers",
		Args:    usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runListLeases(c.Context(), con, f)
		},
	}
	f.addFlags(command)
	return command
}

func runListLeases(ctx context.Context, con *console.Console, f *leaseFlags) error {
	table, err := f.open(ctx)
	if err != nil {
		return err
	}
	leases, skipped, err := table.List(ctx)
	if err != nil {
		return exit.Outside(fmt.Errorf("list the leases: %w", err))
	}
	out := rows.New(con.Out, con.JSON())
	out.Align()
	if !con.JSON() {
		header := rows.Line{
			"SHARD", "OWNER", "LANGUAGE", "POSITION", "BEHIND", "RATE", "AGE", "PAUSED",
		}
		if err := out.Row(header); err != nil {
			return err
		}
	}
	now := time.Now()
	for _, l := range leases {
		if err := out.Row(newLeaseRow(l, now)); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, s := range skipped {
		con.Say("a row that cannot be read: %s", s)
	}
	return nil
}

// leaseRow is a lease as leases list prints it.
type leaseRow struct {
	Shard    string `json:"shardId"`
	Owner    string `json:"owner,omitempty"`
	Language string `json:"language,omitempty"`
	Position string `json:"position"`
	Children int    `json:"children,omitempty"`
	Paused   bool   `json:"paused,omitempty"`
	// Behind, Rate and Age are known of workers of this package alone.
	Behind *float64 `json:"behindSeconds,omitempty"`
	Rate   *float64 `json:"kilobytesPerSecond,omitempty"`
	Age    *float64 `json:"ageSeconds,omitempty"`
}

func newLeaseRow(l lease.Lease, now time.Time) leaseRow {
	row := leaseRow{
		Shard: string(l.Key), Owner: l.Owner, Language: languageOf(l),
		Position: positionOf(l), Children: len(l.Children), Paused: l.Paused,
	}
	if l.Owned() && !l.Stats.At.IsZero() {
		behind, rate := l.Stats.Behind.Seconds(), float64(l.Stats.Rate)/1024
		age := max(0, now.Sub(l.Stats.At).Seconds())
		row.Behind, row.Rate, row.Age = &behind, &rate, &age
	}
	return row
}

// languageOf returns the language of the owner: "go" for a worker of this package. Another one is
// most likely of the Java KCL.
func languageOf(l lease.Lease) string {
	switch {
	case l.Owner == "":
		return ""
	case l.Owned():
		return "go"
	default:
		return "java"
	}
}

// positionOf returns the checkpoint, and the time at which reading begins if that is known.
func positionOf(l lease.Lease) string {
	if l.Checkpoint.Sequence.IsNumber() {
		return l.Checkpoint.String()
	}
	word := string(l.Checkpoint.Sequence)
	if !l.From.IsZero() {
		word += " " + l.From.Format(time.RFC3339)
	}
	return word
}

// Cells implements rows.Row.
func (r leaseRow) Cells() []string {
	cells := []string{r.Shard, dash(r.Owner), dash(r.Language), r.Position, "-", "-", "-", "-"}
	if r.Age != nil {
		cells[4] = seconds(*r.Behind)
		cells[5] = fmt.Sprintf("%.1f KB/s", *r.Rate)
		cells[6] = seconds(*r.Age)
	}
	if r.Paused {
		cells[7] = "yes"
	}
	return cells
}

func seconds(n float64) string {
	return time.Duration(n * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
