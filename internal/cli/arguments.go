package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/spell"
)

// noArgs refuses every argument. The error of a command with subcommands assumes a misspelt
// subcommand. The error of a command with --stream assumes the name of a stream.
func noArgs(c *cobra.Command, args []string) error {
	name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	switch {
	case len(args) == 0:
		return nil
	case c.HasSubCommands():
		return unknownCommand(c, args[0])
	case c.Flags().Lookup("stream") != nil:
		return fmt.Errorf("%s takes no argument, and got %q; did you mean --stream %[2]s?",
			name, args[0])
	}
	return fmt.Errorf("%s takes no argument, and got %q", name, args[0])
}

// exactArgs wants n arguments, and otherwise shows the command with their names.
func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fmt.Errorf("%d arguments given: want %s", len(args), synopsis(c))
	}
}

// atLeastArgs wants n arguments or more.
func atLeastArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return exactArgs(n)(c, args)
	}
}

// synopsis returns the command line of a command without its optional flags.
func synopsis(c *cobra.Command) string { return strings.TrimSuffix(c.UseLine(), " [flags]") }

// unknownCommand returns the error for a word that is no subcommand of c.
func unknownCommand(c *cobra.Command, word string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	message := fmt.Sprintf("unknown command %q for %q", word, c.CommandPath())
	if near := spell.Near(word, names); near != "" {
		message += "; did you mean " + near + "?"
	}
	return errors.New(message)
}

// helpCommand makes the help of a command that does not exist an error, as the command itself is.
func helpCommand(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		found, rest, err := root.Find(args)
		if err == nil && found.HasSubCommands() {
			err = noArgs(found, rest)
		}
		if err != nil {
			return err
		}
		return found.Help()
	}
}
