package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace"
)

func listShardsCommand(con *console.Console) *cobra.Command {
	var open bool
	command := streamCommand(con, &cobra.Command{
		Use:   "list --stream NAME",
		Short: "List the shards of a stream, with their parents and their part of the key space",
		Long: `List the shards of a stream that are kept, open and closed, with their parents and
how much of the key space they have. With --output json a line is a shard.`,
		Example: "  runnel shards list --local --stream orders",
		Args:    usage.NoArgs,
	}, func(ctx context.Context, of *shardsOf, _ []string) error {
		shards, err := of.list(ctx)
		if err != nil {
			return err
		}
		out := rows.New(con.Out, con.JSON())
		if err := out.Head("SHARD", "STATE", "PARENTS", "PART", "HASH KEYS"); err != nil {
			return err
		}
		for _, shard := range shards {
			if open && !shard.Open() {
				continue
			}
			line := newShardLine(shard.ID, shard.Parents, shard.Range, shard.Open())
			if err := out.Row(line); err != nil {
				return err
			}
		}
		return out.Flush()
	})
	command.Flags().BoolVar(&open, "open", false, "only the shards that take records")
	return command
}

// shardLine is a shard as it is printed.
type shardLine struct {
	ShardID         string   `json:"shardId"`
	Parents         []string `json:"parents,omitempty"`
	StartingHashKey string   `json:"startingHashKey"`
	EndingHashKey   string   `json:"endingHashKey"`
	Open            bool     `json:"open"`

	keys keyspace.Range
}

func newShardLine(
	id runnel.ShardID, parents []runnel.ShardID, keys keyspace.Range, open bool,
) shardLine {
	line := shardLine{
		ShardID: string(id), StartingHashKey: keys.Start.String(),
		EndingHashKey: keys.End.String(), Open: open, keys: keys,
	}
	for _, parent := range parents {
		line.Parents = append(line.Parents, string(parent))
	}
	return line
}

func (l shardLine) state() string {
	if l.Open {
		return "open"
	}
	return "closed"
}

// Cells implements rows.Row.
func (l shardLine) Cells() []string {
	parents := "-"
	if len(l.Parents) > 0 {
		parents = fmt.Sprint(l.Parents)
	}
	part := fmt.Sprintf("%.2f%%", 100*l.keys.Part())
	return []string{l.ShardID, l.state(), parents, part, l.keys.String()}
}
