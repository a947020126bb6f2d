package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/opener"
)

// voidFlag is the flag --void of every command that reads records.
type voidFlag opener.Void

func (v *voidFlag) addFlag(flags *pflag.FlagSet) {
	flags.Var(v, "void", "the policy for an aggregate with records of another shard: "+
		strings.Join(opener.Voids, ", ")+"; auto decides by its producer")
}

// String returns the policy's name.
func (v *voidFlag) String() string { return opener.Void(*v).String() }

// Set takes the policy's name.
func (v *voidFlag) Set(text string) error {
	i := slices.Index(opener.Voids, text)
	if i < 0 {
		return fmt.Errorf("want one of %s", strings.Join(opener.Voids, ", "))
	}
	*v = voidFlag(i)
	return nil
}

// Type names the values in the help.
func (*voidFlag) Type() string { return "policy" }

// policy returns the worker's policy.
func (v *voidFlag) policy() consumer.VoidPolicy { return consumer.VoidPolicy(*v) }

// voidStop returns the command's error if a worker has met a void aggregate under --void stop, or
// nil.
func voidStop(e consumer.Event) error {
	void := new(consumer.VoidError)
	if e.Kind != consumer.EventFailed || !errors.As(e.Err, &void) {
		return nil
	}
	return stoppedAtVoid(void)
}

func stoppedAtVoid(err error) error {
	return exit.Usage("%w; another --void than stop goes on behind it", err)
}

// voidCounts returns the part of a progress line about void aggregates, empty if there are none.
func (n *workerCounts) voidCounts() (text string) {
	if dropped := n.voided.Load(); dropped > 0 {
		text = fmt.Sprintf(", %s records of void aggregates skipped", console.Thousands(dropped))
	}
	if delivered := n.voidTaken.Load(); delivered > 0 {
		text += fmt.Sprintf(", %s records of void aggregates taken",
			console.Thousands(delivered))
	}
	return text
}
