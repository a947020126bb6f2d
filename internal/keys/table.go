package keys

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/keytable"
)

// keyTable holds the flags of a command that keeps names in a file or in a table.
type keyTable struct {
	space       spaceFlag
	to          endpoint.Flags
	file, table string
}

func (f *keyTable) add(command *cobra.Command, file string) {
	f.space.add(command)
	f.to.AddFlags(command, true)
	flags := command.Flags()
	flags.StringVar(&f.file, "file", "", file)
	flags.StringVar(&f.table, "table", "",
		"the DynamoDB table of names and keys, which processes share; made if it is not there")
}

// check returns the space if either a file or a table is named.
func (f *keyTable) check() (allocate.Space, error) {
	if f.file != "" && f.table != "" {
		return allocate.Space{}, exit.Usage("--file and --table exclude each other")
	}
	return f.space.space()
}

// open opens the table.
func (f *keyTable) open(
	ctx context.Context, space allocate.Space,
) (*keytable.Table, aws.Config, error) {
	cfg, err := f.to.Load(ctx)
	if err != nil {
		return nil, cfg, err
	}
	table, err := keytable.Open(ctx, keytable.Config{
		DynamoDB: awsclient.DynamoDB(cfg), Table: f.table, Space: space,
	})
	return table, cfg, tableError(ctx, err)
}

// tableError sets the exit status of a table's error: wrong usage, or a failure outside.
func tableError(ctx context.Context, err error) error {
	wrong := []error{
		keytable.ErrUnknownName, keytable.ErrInvalidName, keytable.ErrUnusableTable,
		keytable.ErrNameMoving, keytable.ErrNameInUse, keytable.ErrNoLeaseTable,
		allocate.ErrSpaceFull, allocate.ErrRateOverflow,
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return exit.ErrInterrupt
	case slices.ContainsFunc(wrong, func(known error) bool { return errors.Is(err, known) }):
		return exit.Usage("%w", err)
	}
	return exit.Outside(err)
}

// printTable prints the names of a table.
func printTable(con *console.Console, list []keytable.Assigned) error {
	lines := make([]assignment, len(list))
	for i, one := range list {
		lines[i] = assignment{Name: one.Name, Key: one.Key.String(), Rate: one.Rate}
	}
	return printAssignments(con, lines)
}

// mapTable gives names keys in the table; without names it prints all.
func mapTable(
	ctx context.Context, con *console.Console, f *keyTable, space allocate.Space, rate uint64,
	names []string, all bool,
) error {
	table, _, err := f.open(ctx, space)
	if err != nil {
		return err
	}
	if all {
		return printTable(con, table.All())
	}
	list, err := table.Assign(ctx, rate, names...)
	if err != nil {
		return tableError(ctx, err)
	}
	return printTable(con, list)
}

// releaseTable removes names from the table.
func releaseTable(
	ctx context.Context, con *console.Console, f *keyTable, space allocate.Space,
	names []string, yes bool,
) error {
	table, _, err := f.open(ctx, space)
	if err != nil {
		return err
	}
	var list []keytable.Assigned
	for i, name := range names {
		one, known := table.Lookup(name)
		if !known || slices.Contains(names[:i], name) {
			return exit.Usage("table %s has no name %q, or you named it twice; nothing was "+
				"released", f.table, name)
		}
		list = append(list, one)
	}
	if err := printTable(con, list); err != nil {
		return err
	}
	if !yes {
		return exit.Usage("nothing was released: say --yes")
	}
	return tableError(ctx, table.Release(ctx, names...))
}
