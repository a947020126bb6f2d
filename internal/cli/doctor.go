package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
)

// doctorResult is the output of doctor: the examination and its verdict.
type doctorResult struct {
	OK bool `json:"ok"`
	s3store.Examination
}

// doctorRaces is the number of races of an examination.
const doctorRaces = 200

func doctorCommand(con *console.Console) *cobra.Command {
	var place placeFlags
	var to string
	command := &cobra.Command{
		Use:   "doctor --to s3://BUCKET/PREFIX",
		Short: "Examine whether an archive may rely on a store",
		Long: `Examine whether an archive may rely on a store of S3.

The archive's promises need a store that creates an object only if its name is free (If-None-Match),
also for eight writers at once. The command tries that 200 times below PREFIX/runnel-doctor/, reads
and lists the objects, and deletes them where it may.

Status 0: an archive may rely on it. 1: it may not. 3: the store cannot be reached, or refuses.`,
		Example: "  runnel doctor --to s3://my-events/archive",
		Args:    usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			place.like(c)
			return runDoctor(c.Context(), con, &place, to)
		},
	}
	place.addFlags(command, true, true)
	command.Flags().StringVar(&to, "to", "", "the place of the archive: s3://BUCKET/PREFIX")
	return command
}

func runDoctor(ctx context.Context, con *console.Console, place *placeFlags, to string) error {
	if !s3store.IsURL(to) {
		return exit.Usage("--to %q: want s3://BUCKET/PREFIX", to)
	}
	store, err := place.open(ctx, to)
	if err != nil {
		return err
	}
	found, err := store.Examine(ctx, doctorRaces)
	switch {
	case ctx.Err() != nil:
		return exit.ErrInterrupt
	case err != nil:
		return exit.Outside(err)
	}
	if err := rows.Print(con.Out, con.JSON(), doctorResult{found.OK(), found}); err != nil {
		return err
	}
	if !found.OK() {
		return exit.No("an archive may not rely on this store")
	}
	return nil
}
