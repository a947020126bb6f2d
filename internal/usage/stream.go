package usage

import (
	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/internal/streamref"
)

// StreamVar adds a flag that names a stream, by its name or ARN. A malformed ARN is refused when
// the flag is read. Text that stays, such as a label or a default, has streamref.Name of it.
func StreamVar(flags *pflag.FlagSet, stream *string, flag, help string) {
	flags.Var((*streamValue)(stream), flag, help)
}

type streamValue string

func (s *streamValue) String() string { return string(*s) }

func (s *streamValue) Set(text string) error {
	*s = streamValue(text)
	return streamref.Check(text)
}

// Type is what the help shows for the value, as for other texts.
func (*streamValue) Type() string { return "string" }
