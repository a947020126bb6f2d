package usage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/internal/spell"
)

// NoArgs refuses every argument. The error of a command with subcommands assumes a misspelt
// subcommand. The error of a command with --stream assumes the name of a stream.
func NoArgs(c *cobra.Command, args []string) error {
	name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	switch {
	case len(args) == 0:
		return nil
	case c.HasSubCommands():
		return UnknownCommand(c, args[0])
	case c.Flags().Lookup("stream") != nil:
		return fmt.Errorf("%s takes no argument, and got %q; did you mean --stream %[2]s?",
			name, args[0])
	}
	return fmt.Errorf("%s takes no argument, and got %q", name, args[0])
}

// ExactArgs wants n arguments, and otherwise shows the command with their names.
func ExactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fmt.Errorf("%d arguments given: want %s", len(args), synopsis(c))
	}
}

// AtLeastArgs wants n arguments or more.
func AtLeastArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return ExactArgs(n)(c, args)
	}
}

// synopsis returns the command line of a command without its optional flags.
func synopsis(c *cobra.Command) string { return strings.TrimSuffix(c.UseLine(), " [flags]") }

// UnknownCommand returns the error for a word that is no subcommand of c.
func UnknownCommand(c *cobra.Command, word string) error {
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

// DidYouMean suggests the flag that is nearest to an unknown one.
func DidYouMean(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := spell.Near(unknown.GetSpecifiedName(), names); near != "" {
		return "; did you mean --" + near + "?"
	}
	return ""
}

// HelpCommand makes help for a command that does not exist an error.
func HelpCommand(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		found, rest, err := root.Find(args)
		if err == nil && found.HasSubCommands() {
			err = NoArgs(found, rest)
		}
		if err != nil {
			return err
		}
		return found.Help()
	}
}
